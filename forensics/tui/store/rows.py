"""The rows that a filter lets through, found in a thread of their own as the index grows."""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import polars as pl

from forensics.tui.store.block import LineBlock
from forensics.tui.store.criteria import Criteria, Sieve
from forensics.tui.store.index import MOST_READ_BYTES, SourceIndex

_PUBLISH_EVERY_S = 0.05


class LinePlace(NamedTuple):
    """A line: its source and its number from 1."""

    source: int
    line: int


@dataclass(frozen=True, slots=True)
class _Part:
    """The rows of one block."""

    source: int
    first_line: int
    last_line: int
    count: int
    places: pl.Series | None
    """Places in the block; None for every line of it."""
    version: int


@dataclass(frozen=True, slots=True)
class _Table:
    """All rows at one moment; replaced as a whole, so that any thread may read it."""

    parts: tuple[_Part, ...] = ()
    ends: tuple[int, ...] = ()
    firsts: tuple[LinePlace, ...] = ()

    @classmethod
    def of(cls, parts: Sequence[_Part]) -> _Table:
        ends = tuple(accumulate(part.count for part in parts))
        firsts = tuple(LinePlace(part.source, part.first_line) for part in parts)
        return cls(tuple(parts), ends, firsts)


class Rows:
    """The lines that pass a filter, in reading order; their number grows while it is at work."""

    def __init__(
        self,
        criteria: Criteria,
        sources: Sequence[SourceIndex],
        sieve: Sieve,
        wake: threading.Condition,
        told: Callable[[], object],
    ) -> None:
        self.criteria = criteria
        self.complete = False
        """All that is indexed was looked at, and no more will come."""
        self._sources = sources
        self._sieve = sieve
        self._wake = wake
        self._told = told
        self.cancelled = False
        """Nobody looks at it any more."""
        self._parts: dict[LinePlace, _Part] = {}
        self._reached: dict[int, int] = {}
        self._table = _Table()
        self._published = 0.0
        self._thread = threading.Thread(target=self._work, name="filter", daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        table = self._table
        return table.ends[-1] if table.ends else 0

    def place(self, row: int) -> LinePlace:
        """The line of a row.

        Raises:
            IndexError: there is no such row.
        """
        table = self._table
        if not 0 <= row < (table.ends[-1] if table.ends else 0):
            raise IndexError(row)
        number = bisect_right(table.ends, row)
        part = table.parts[number]
        within = row - (table.ends[number] - part.count)
        place = within if part.places is None else int(part.places[within])
        return LinePlace(part.source, part.first_line + place)

    def slice(self, row: int, count: int) -> list[LinePlace]:
        """The lines of consecutive rows; fewer at the end."""
        end = min(row + count, len(self))
        try:
            return [self.place(number) for number in range(max(row, 0), end)]
        except IndexError:
            return []  # the rows were found anew in between

    def row_of(self, source: int, line: int) -> int:
        """The row of a line, or of the last one before it that passes; 0 where there is none."""
        table = self._table
        if not table.parts:
            return 0
        number = max(bisect_right(table.firsts, LinePlace(source, line)) - 1, 0)
        part = table.parts[number]
        before = table.ends[number] - part.count
        place = line - part.first_line if part.source == source else part.last_line
        if place < 0:
            return before
        if part.places is None:
            return before + min(place, part.count - 1)
        at_most = bisect_right(part.places, place)
        return max(before + at_most - 1, 0)

    def holds(self, source: int, line: int) -> bool:
        """Whether a line passes, as far as it was looked at."""
        return self._at(self.row_of(source, line)) == (source, line)

    def after(self, source: int, line: int) -> LinePlace | None:
        """The first row behind a line; None where there is none by now."""
        row = self.row_of(source, line)
        here = self._at(row)
        return here if here and here > (source, line) else self._at(row + 1)

    def before(self, source: int, line: int) -> LinePlace | None:
        """The last row in front of a line; None where there is none by now."""
        row = self.row_of(source, line)
        here = self._at(row)
        return here if here and here < (source, line) else self._at(row - 1)

    def _at(self, row: int) -> LinePlace | None:
        found = self.slice(row, 1) if row >= 0 else []
        return found[0] if found else None

    def reached(self, source: int, line: int) -> bool:
        """Whether everything up to a line was looked at."""
        return all(
            self._reached.get(index.source, 0) >= (line if index.source == source else index.lines)
            for index in self._sources[: source + 1]
        )

    def cancel(self) -> None:
        """Stop the work; what was found stays."""
        self.cancelled = True
        with self._wake:
            self._wake.notify_all()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until it is complete; false if that took too long."""
        self._thread.join(timeout_s)
        return self.complete

    def _work(self) -> None:
        while not self.cancelled:
            ended = all(source.complete for source in self._sources)
            if self._pass():
                continue
            if ended:
                self.complete = True
                self._told()
                return
            with self._wake:
                self._wake.wait(0.25)

    def _pass(self) -> bool:
        """Look at the blocks that are new or have changed; true if there were any."""
        found = False
        for source in self._sources:
            for block in list(source.blocks):
                if self.cancelled:
                    return False
                key = LinePlace(block.source, block.first_line)
                known = self._parts.get(key)
                if known is not None and known.version == block.version:
                    continue
                part = self._part(source, block)
                if part is None:
                    continue
                self._parts[key] = part
                self._reached[part.source] = max(self._reached.get(part.source, 0), part.last_line)
                found = True
                self._publish(least_s=_PUBLISH_EVERY_S)
        if found:
            self._publish()
        return found

    def _publish(self, least_s: float = 0.0) -> None:
        """Make what was found by now the rows; not more often than is worth it."""
        now = time.monotonic()
        if now - self._published >= least_s:
            self._published = now
            parts = [self._parts[at] for at in sorted(self._parts) if self._parts[at].count]
            self._table = _Table.of(parts)
            self._told()

    def _part(self, source: SourceIndex, block: LineBlock) -> _Part | None:
        places = self._sieve.by_class(block)
        if self._sieve.reads_text and (places is None or len(places)):
            if source.backing is None:
                return None
            text = source.backing.read(block.offset, min(block.size, 2 * MOST_READ_BYTES))
            passing = self._sieve.by_text(text, places)
            places = None if len(passing) == block.lines else passing
        count = block.lines if places is None else len(places)
        return _Part(block.source, block.first_line, block.last_line, count, places, block.version)
