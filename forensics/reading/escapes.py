"""Takes out of a line what only a terminal understands."""

from __future__ import annotations

import re

SPECIAL = re.compile("[\x00-\x08\x0a-\x1f\x7f]")
"""Any character that needs care: every control except the tab."""

_COLUMN_ONE = re.compile(r"\x1b\[[01]?G")
_ESCAPE = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # colours, cursor
    r"|\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links
    r"|[()*+][0-9A-Za-z]"  # character sets
    r"|[ -/]*[0-Z\\^-~])?"
)
_CONTROLS = dict.fromkeys([*range(9), *range(10, 13), *range(14, 32), 127])
# Colour codes whose escape character was lost, as in text copied from a browser, or spelled out,
# as in JSON.
_BARE_COLOUR = re.compile(r"(?:\^\[|\\u001[bB]|\\x1[bB]|\\033|\\e)?\[\d{1,3}(?:;\d{1,3})*m")


def clean(text: str) -> str:
    r"""The line without escape sequences and control characters, `\t` and inner `\r` kept.

    Moving to the first column is what `\r` does, and becomes that.
    """
    if "\x1b" in text:
        text = _ESCAPE.sub("", _COLUMN_ONE.sub("\r", text))
    if SPECIAL.search(text) is not None:
        text = text.translate(_CONTROLS).rstrip("\r")
    if "[0m" in text:
        text = _BARE_COLOUR.sub("", text)
    return text.removeprefix("\ufeff")
