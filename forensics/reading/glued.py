"""Records and progress bars that begin in the middle of a physical line."""

from __future__ import annotations

import re
from collections.abc import Iterator

RECORD_START = (
    r"\[(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{3})?[^\]\n]{0,60}"
    r"|\d\d:\d\d:\d\d(?: [A-Za-z]+=?\d+)+)\]{1,2} "
)
"""The prefix of an SGLang record, the form before 0.4.1 (`[03:31:02 gpu=2]`) included."""

_START = re.compile(RECORD_START)
# The counter that ends a tqdm bar, with the next text or the next bar right behind it.
_BAR_END = re.compile(
    r"\[(?:\d+:)?[\d?]+:[\d?]+(?:<[\d:?]+)?, +[^\]\[\n]{1,80}\]"
    r"(?=[^\s,.;)\]'\"]| +\d{1,3}%\|)"
)
# Records that print what users sent, or settings: what looks like a record in there is theirs.
_QUOTES_OTHERS = re.compile(r"(?:Receive|Finish): obj=|server_args=|ServerArgs\(")
_QUOTE = re.compile(r"\\.|['\"]")
_BEFORE_STRING = frozenset("=:([{, \t")
_AFTER_STRING = frozenset(",)]}:;. \t")


def starts_record(text: str) -> bool:
    """Whether the text begins as an SGLang record."""
    return _START.match(text) is not None


def split_glued(text: str) -> list[str]:
    """Cut a line where a further record or bar begins; most lines come back whole."""
    if text.find("[", 1) < 0:
        return [text]
    cuts = _cuts(text)
    if not cuts:
        return [text]
    parts = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    return [part for part in parts if part.strip()] or [text]


def _cuts(text: str) -> list[int]:
    found = {match.start() for match in _START.finditer(text, 1)}
    if "s]" in text or "it]" in text or "s/it" in text:
        found |= {match.end() for match in _BAR_END.finditer(text)}
    if not found:
        return []
    quoting = _QUOTES_OTHERS.search(text)
    end = quoting.start() if quoting else len(text)
    cuts = sorted(cut for cut in found if 0 < cut <= end)
    return list(_outside_strings(text, cuts)) if cuts else []


def _outside_strings(text: str, cuts: list[int]) -> Iterator[int]:
    strings = _strings(text)
    begin, end = next(strings, (len(text), len(text)))
    for cut in cuts:
        while end < cut:
            begin, end = next(strings, (len(text), len(text)))
        if not begin < cut <= end:
            yield cut


def _strings(text: str) -> Iterator[tuple[int, int]]:
    """Places of quoted strings, in order: opened like a value and closed like one.

    A string that another record tore open never closes like that, and hides nothing.
    """
    opened = -1
    for match in _QUOTE.finditer(text):
        place = match.start()
        if match.end() - place > 1:
            continue
        quote = text[place]
        if opened >= 0 and text[opened] != quote:
            continue
        if opened >= 0 and (place + 1 == len(text) or text[place + 1] in _AFTER_STRING):
            yield opened, place
            opened = -1
        else:
            opened = place if place == 0 or text[place - 1] in _BEFORE_STRING else -1
