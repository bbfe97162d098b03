"""A line of a log as it may be shown: harmless, its parts told apart.

The text of a log is untrusted: escapes, controls, hidden characters and secrets are taken out
first, and what remains is never read as markup.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from forensics.grammar import load
from forensics.reading.glued import split_glued
from forensics.views.clean import clean

LONGEST = 64 << 10
"""Characters of a line that are looked at at most."""

_HEADS = 4
_MOST_PARTS = 50


@dataclass(frozen=True, slots=True)
class ShownLine:
    """The clean text of a line, and where its message and the values in it stand."""

    text: str
    message: int
    """Where the message begins, behind wrapper, time and rank."""
    values: tuple[tuple[int, int], ...] = ()
    """Begin and end of each value that the grammar reads from it."""


@lru_cache(maxsize=256)
def shown_line(raw: str, prefix: str | None, kind: str, longest: int = LONGEST) -> ShownLine:
    """A line with its wrapper's expression and its kind (empty: no record begins on it)."""
    text = clean(raw[:longest]).replace("\n", " ").rstrip("\r ")
    at, part = _part(text, kind)
    begin = at + _message_begin(part, prefix)
    return ShownLine(text, begin, _values(text[: at + len(part)], begin, kind))


def _part(text: str, kind: str) -> tuple[int, str]:
    """Of a line that several programs wrote at once, the record of a kind, and where it begins."""
    parts = split_glued(text) if kind else [text]
    at = 0
    for part in parts[:_MOST_PARTS] if len(parts) > 1 else []:
        at = text.index(part, at)
        match = load().match(part[_message_begin(part, None) :])
        if match is not None and match.kind == kind:
            return at, part
        at += len(part)
    return 0, text


def _message_begin(text: str, prefix: str | None) -> int:
    begin = 0
    if prefix and (match := _compiled(prefix).match(text)):
        begin = match.end()
    rest = text[begin:]
    for _ in range(_HEADS):
        head = load().head(rest)
        message = head.fields.get("message") if head else None
        if not isinstance(message, str) or not rest.endswith(message):
            break
        rest = message
    return len(text) - len(rest)


def _values(text: str, begin: int, kind: str) -> tuple[tuple[int, int], ...]:
    known = load().kinds.get(kind)
    if known is None:
        return ()
    match = _compiled(known.regex).match(text[begin:].rstrip())
    if match is None:
        return ()
    spans = {match.span(group) for group in known.groups}
    return tuple(_apart(sorted((a + begin, b + begin) for a, b in spans if 0 <= a < b)))


def _apart(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans without overlaps: of nested ones the outer."""
    kept: list[tuple[int, int]] = []
    for begin, end in spans:
        if not kept or begin >= kept[-1][1]:
            kept.append((begin, end))
    return kept


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
