"""Makes text of a log safe to show: no terminal escapes, no hidden characters, no secrets.

A log is untrusted input. Its text may carry escape sequences that rewrite the screen or
characters that reverse the reading order; every view shows it through `one_line` or `clean`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from forensics.redact import redact

_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    r"|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)"  # OSC: titles, links, clipboard
    r"|\x1b[@-Z\\^_=>78]"
)
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 but tab and newline, DEL, C1
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # bidi, invisible
    "\ud800-\udfff]"  # lone surrogates: undecodable bytes
)
_SPACES = re.compile(r"\s+")
_LEAD = 22
"""Characters shown before the first key, so that its words are read with it."""


def clean(text: str) -> str:
    """The text without escapes, controls and secrets; newlines stay, tabs become spaces."""
    return redact(strip_controls(text).replace("\t", "    "))


def strip_controls(text: str) -> str:
    """The text without escapes, controls and hidden characters; tabs and newlines stay."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


def one_line(text: str) -> str:
    """The text as one clean line: every run of white space is one space."""
    return _SPACES.sub(" ", clean(text)).strip()


def window(text: str, width: int, keys: Sequence[str] = ()) -> str:
    """At most `width` characters of a line, around the part that holds most of the `keys`."""
    if len(text) <= width:
        return text
    hits = {key: [m.start() for m in re.finditer(re.escape(key), text)] for key in set(keys)}
    room = max(width - 8, 1)

    def held(start: int) -> int:
        return sum(any(start <= at < start + room for at in places) for places in hits.values())

    starts = [_word_start(text, max(at - _LEAD, 0)) for places in hits.values() for at in places]
    start = max([0, *sorted(starts)], key=held)
    if start > len(text) - (width - 4):
        start = _word_start(text, len(text) - (width - 4))
    head = "... " if start else ""
    tail = text[start : start + width - len(head)]
    if start + len(tail) >= len(text):
        return head + tail
    cut = tail[:-4].rsplit(" ", 1)[0] if " " in tail[width // 2 : -4] else tail[:-4]
    return f"{head}{cut} ..."


def _word_start(text: str, at: int) -> int:
    """The start of the first word at or after a position that is not far from it."""
    space = text.find(" ", at, at + _LEAD)
    return at if space < 0 or at == 0 else space + 1
