"""What a filter lets through, as typed: `rank:TP4 kind:capture* sev:warning out of memory`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

import polars as pl

from forensics.findings import Severity
from forensics.tui.store.block import LineBlock
from forensics.tui.store.classes import PART, ClassTable, grade

KEYS = ("rank", "kind", "sev", "source", "re")
"""Words that may stand in front of a colon."""

_LOOKED_AT = 1_000
"""Characters of a line in which hits are shown."""

_TOKEN = re.compile(r"(-?)(rank|kind|sev|source):(\"[^\"]*\"|\S+)")
_SPELLED: dict[str, Severity] = {
    "c": "critical",
    "critical": "critical",
    "error": "critical",
    "w": "warning",
    "warn": "warning",
    "warning": "warning",
    "i": "info",
    "info": "info",
}


class CriteriaError(ValueError):
    """What was typed is no filter; the text is one line for the user."""


@dataclass(frozen=True, slots=True)
class Criteria:
    """A filter over lines; an empty field asks for nothing."""

    ranks: tuple[str, ...] = ()
    """Patterns of rank tags, of which one must fit: `TP4`, `DP0*`, `none` for the main process."""
    not_ranks: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    """Patterns of kinds, of which one must fit."""
    not_kinds: tuple[str, ...] = ()
    severity: Severity | None = None
    """The mildest severity that is let through."""
    sources: tuple[int, ...] = ()
    texts: tuple[str, ...] = ()
    """What the line must contain, all of them: see `expression`."""
    parts: bool = False
    """Lines that begin no record count too."""

    @property
    def by_class(self) -> bool:
        """Whether it asks for anything that a line's class tells."""
        asked = (self.ranks, self.not_ranks, self.kinds, self.not_kinds, self.severity)
        return any(asked) or not self.parts

    def lets(self, rank: str | None, kind: str, severity: Severity | None) -> bool:
        """Whether lines of a class pass."""
        name = rank or "none"
        return (
            (not self.ranks or _fits(name, self.ranks))
            and not _fits(name, self.not_ranks)
            and (not self.kinds or _fits(kind, self.kinds))
            and not _fits(kind, self.not_kinds)
            and (self.severity is None or grade(severity) >= grade(self.severity))
        )


def expression(text: str) -> str:
    """A typed text as an expression for Rust's engine, whose time no expression can exhaust.

    It stands for itself, or is an expression behind `re:`. Small letters stand for large ones too.
    """
    if text.startswith("re:"):
        body = text.removeprefix("re:").strip()
        plain = re.sub(r"\\.", "", body)
    else:
        body, plain = re.escape(text).replace(r"\ ", " "), text
    return body if plain != plain.lower() else f"(?i){body}"


def hits(text: str, typed: str) -> list[tuple[int, int]]:
    """Begin and end of what a typed text finds in a line.

    Nothing for an expression that Python's engine might take too long over.
    """
    wanted = expression(typed)
    if typed.startswith("re:") and not _is_calm(wanted):
        return []
    try:
        found = [match.span() for match in re.finditer(wanted, text[:_LOOKED_AT])]
    except re.error:
        return []
    return [(begin, end) for begin, end in found if begin < end]


def _is_calm(pattern: str) -> bool:
    """Whether trying every way to match costs little: one repetition at most, of no group."""
    bare = re.sub(r"\\.|\[[^\]]*\]|\(\?i\)", "x", pattern)
    return len(re.findall(r"[*+{?]", bare)) <= 1 and not re.search(r"\)[*+{?]", bare)


def parse_criteria(typed: str, *, parts: bool = False) -> Criteria:
    """A filter from what was typed.

    Raises:
        CriteriaError: a severity is unknown, a source is no number, or an expression is wrong.
    """
    found: dict[str, list[str]] = {}
    for match in _TOKEN.finditer(typed):
        found.setdefault(match[1] + match[2], []).append(match[3].strip('"'))
    text = " ".join(_TOKEN.sub(" ", typed).split())
    criteria = Criteria(
        ranks=tuple(found.get("rank", ())),
        not_ranks=tuple(found.get("-rank", ())),
        kinds=tuple(found.get("kind", ())),
        not_kinds=tuple(found.get("-kind", ())),
        severity=_severity(found.get("sev", [])),
        sources=tuple(_source(word) for word in found.get("source", ())),
        texts=(text,) if text else (),
        parts=parts,
    )
    check(criteria)
    return criteria


def check(criteria: Criteria) -> None:
    """Raise `CriteriaError` where the expression cannot be used."""
    for text in criteria.texts:
        if not text.startswith("re:"):
            continue
        try:
            pl.Series([""]).str.contains(expression(text))
        except pl.exceptions.PolarsError as error:
            reason = str(error).strip().splitlines()[-1].removeprefix("error: ")
            raise CriteriaError(f"not an expression: {reason}") from error


class Sieve:
    """Finds the lines of a block that pass a filter; made once for a filter and a store."""

    def __init__(self, criteria: Criteria, table: ClassTable) -> None:
        self.criteria = criteria
        self._table = table
        self._wanted: list[int] = []
        self._judged = 0
        self._expressions = [expression(text) for text in criteria.texts]

    @property
    def reads_text(self) -> bool:
        """Whether the text of a block is needed to tell."""
        return bool(self._expressions)

    def by_class(self, block: LineBlock) -> pl.Series | None:
        """The places that pass by class alone; None for all of them."""
        if self.criteria.sources and block.source not in self.criteria.sources:
            return pl.Series(dtype=pl.UInt32)
        if not self.criteria.by_class:
            return None
        wanted = pl.Series(self._codes(), dtype=pl.UInt16)
        fits = block.codes.is_in(wanted.implode())
        places = fits.arg_true()
        if block.extra:
            chosen = set(self._wanted)
            more = [at for at, codes in block.extra.items() if chosen.intersection(codes)]
            if more:
                places = pl.concat([places, pl.Series(more, dtype=pl.UInt32)]).unique().sort()
        return None if len(places) == block.lines else places

    def by_text(self, text: bytes, places: pl.Series | None) -> pl.Series:
        """Of these places of a block with this text, those that pass by their text."""
        if not text.isascii():
            text = text.decode("utf-8", "replace").encode()
        frame = pl.read_lines(text, row_index_name="place")
        if places is not None:
            frame = frame[places.filter(places < frame.height)]
        for wanted in self._expressions:
            frame = frame.filter(pl.col("line").str.contains(wanted))
        return frame["place"].cast(pl.UInt32)

    def _codes(self) -> list[int]:
        while self._judged < len(self._table):
            entry = self._table.entries[self._judged]
            if self._judged == PART:
                asks = self.criteria
                free = not (asks.ranks or asks.kinds or asks.severity)
                passes = asks.parts and free
            else:
                passes = self.criteria.lets(entry.rank, entry.kind, entry.severity)
            if passes:
                self._wanted.append(self._judged)
            self._judged += 1
        return self._wanted


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    folded = name.lower()
    return any(fnmatchcase(folded, pattern.lower()) for pattern in patterns)


def _severity(words: list[str]) -> Severity | None:
    if not words:
        return None
    word = words[-1].lower()
    if word not in _SPELLED:
        raise CriteriaError(f"no severity {word}: critical, warning or info")
    return _SPELLED[word]


def _source(word: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise CriteriaError(f"source:{word} is no number: sources count from 1")
    return int(word) - 1
