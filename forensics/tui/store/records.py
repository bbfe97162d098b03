"""The records of one source, with the kind and rank that every other view gives them.

Routine lines are known in bulk; all others are unwrapped and assembled as the timeline does it.
"""

from __future__ import annotations

from collections.abc import Iterable

from forensics.events import Event
from forensics.grammar import load
from forensics.reading import Unwrapper, detect
from forensics.reading.wrapper_kinds import JSON
from forensics.timeline.assembly import Assembler
from forensics.tui.store.classes import ClassTable
from forensics.tui.store.routine import Found, RoutineReader

_BULK_FROM = 16 << 10
"""Bytes from which it pays to look for routine lines in bulk."""

Lines = list[tuple[int, str]]
"""Lines with their numbers."""


class RecordFinder:
    """Finds the records of one source, fed in reading order.

    The first `sample_lines` lines are held back until they tell what stands around every line.
    """

    def __init__(self, source: int, table: ClassTable, sample_lines: int) -> None:
        self._table = table
        self._sample_lines = sample_lines
        self._held: Lines = []
        self._unwrapper: Unwrapper | None = None
        self._assembler = Assembler(source, load())
        self._routine: RoutineReader | None = None

    @property
    def prefix(self) -> str | None:
        """The expression for what stands in front of every line, if anything does."""
        return self._unwrapper.hot_prefix if self._unwrapper else None

    def bulk(self, data: bytes, first_line: int) -> Found | None:
        """The routine lines of a block, and which lines remain; None where that does not pay."""
        unwrapper = self._unwrapper
        if unwrapper is None or len(data) < _BULK_FROM:
            return None
        as_json = unwrapper.name == JSON.name
        if not (unwrapper.bulk_ok or as_json):
            return None
        if self._routine is None:
            prefix = unwrapper.hot_prefix
            self._routine = RoutineReader(load(), self._table, prefix, as_json=as_json)
        return self._routine.read(data, first_line)

    def events(self, lines: Lines) -> list[Event]:
        """The records that are finished with these lines."""
        if self._unwrapper is None:
            self._held += lines
            if len(self._held) < self._sample_lines:
                return []
            lines = self._begin()
        return self._assembled(lines)

    def open_events(self) -> list[Event]:
        """The records that may still grow."""
        return self._assembler.peek()

    def finish(self) -> list[Event]:
        """The records that were still open at the end of the source."""
        found = self._assembled(self._begin()) if self._unwrapper is None else []
        if self._unwrapper is not None:
            for piece in self._unwrapper.flush():
                found += self._assembler.add(piece)
        return [*found, *self._assembler.flush()]

    def _begin(self) -> Lines:
        held, self._held = self._held, []
        self._unwrapper = detect([text for _, text in held[: self._sample_lines]])
        return held

    def _assembled(self, lines: Iterable[tuple[int, str]]) -> list[Event]:
        assert self._unwrapper is not None
        found: list[Event] = []
        unwrap, add = self._unwrapper.pieces, self._assembler.add
        for number, text in lines:
            for piece in unwrap(number, text):
                found += add(piece)
        self._assembler.take_tally()
        return found
