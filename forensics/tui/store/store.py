"""Every line of the logs, whatever their size: index, text, filters and search, in threads.

The store shows what `forensics events` prints, line by line. Nothing here waits for a disk or
works through a log in the caller's thread, except for reading the few lines that are asked for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from forensics.reading import SAMPLE_LINES, Source
from forensics.tui.store.backing import Spool
from forensics.tui.store.classes import PART, ClassTable, LineClass
from forensics.tui.store.criteria import Criteria, Sieve
from forensics.tui.store.filling import Feed, fill
from forensics.tui.store.index import SourceIndex
from forensics.tui.store.rows import LinePlace, Rows

SHOWN_BYTES = 64 << 10
"""Bytes of a line that are shown at most."""

_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Line:
    """One line, ready to be shown; `text` is as it stands in the log, controls and all."""

    source: int
    number: int
    text: str
    rank: str | None = None
    kind: str = ""
    """Kind of the record that begins on it; empty for a line that begins none."""
    severity: str | None = None
    time: datetime | None = None
    cut: bool = False
    """Only its beginning is in `text`."""

    @property
    def begins(self) -> bool:
        """Whether a record begins on this line."""
        return bool(self.kind)


class EventStore:
    """The lines of some sources. `start` it, ask it, `close` it.

    `changed` is called from other threads whenever there is more to see. With `live`, the lines
    come by `feed`; else they are read from the sources.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        changed: Callable[[], object] = lambda: None,
        *,
        live: bool = False,
    ) -> None:
        self.sources = list(sources)
        self.table = ClassTable()
        self._changed = changed
        self._wake = threading.Condition()
        self._stop = threading.Event()
        self._rows: list[Rows] = []
        sample = 0 if live else SAMPLE_LINES
        self._indexes = [
            SourceIndex(source.index, self.table, self._tell, sample_lines=sample)
            for source in self.sources
        ]
        self._feeds: list[Feed] = []
        self._threads: list[threading.Thread] = []
        self._live = live

    def start(self) -> None:
        """Begin to read; at once, in threads."""
        for source, index in zip(self.sources, self._indexes, strict=True):
            if self._live:
                index.backing = spool = Spool()
                self._feeds.append(Feed(index, spool))
                work: Callable[[], None] = self._feeds[-1].work
            else:
                work = partial(fill, source, index, self._stop)
            thread = threading.Thread(target=work, name=f"index {source.path}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def feed(self, source: int, data: bytes) -> None:
        """Take bytes of a live source; returns at once."""
        self._feeds[source].put(data)

    def end(self, source: int) -> None:
        """A live source is over."""
        self._feeds[source].put(None)

    def close(self) -> None:
        """Stop all work and give the files up."""
        self._stop.set()
        for feed in self._feeds:
            feed.put(None)
        for rows in self._rows:
            rows.cancel()
        for thread in self._threads:
            thread.join(1.0)
        for index in self._indexes:
            if index.backing is not None:
                index.backing.close()

    def wait(self, timeout_s: float = 60.0) -> bool:
        """Wait until everything is indexed; false if that took too long."""
        for thread in self._threads:
            thread.join(timeout_s)
        return self.complete

    @property
    def complete(self) -> bool:
        """Whether all sources were read to their ends."""
        return all(index.complete for index in self._indexes)

    @property
    def notices(self) -> list[str]:
        """What the user should know about the sources."""
        return [index.notice for index in self._indexes if index.notice]

    def lines(self, source: int) -> int:
        """How many lines of a source are indexed by now."""
        return self._indexes[source].lines

    def share(self) -> float | None:
        """How much of all sources is indexed, 0 to 1; None where their sizes are not known."""
        if self.complete:
            return 1.0
        sizes = [source.size for source in self.sources]
        known = [size for size in sizes if size is not None]
        if len(known) < len(sizes) or not sum(known):
            return None
        return min(sum(index.stored for index in self._indexes) / sum(known), 1.0)

    def read(self, source: int, first: int, count: int) -> list[Line]:
        """Consecutive lines of a source; fewer at the end."""
        index = self._indexes[source]
        numbers = range(first, first + count)
        return [
            self._line(index, number, raw)
            for number, raw in zip(numbers, index.read(first, count), strict=False)
        ]

    def pick(self, places: Sequence[LinePlace]) -> list[Line]:
        """Single lines, in the order asked for; neighbours are read at once."""
        found: list[Line] = []
        at = 0
        while at < len(places):
            end = at + 1
            source, first = places[at]
            while end < len(places) and places[end] == (source, first + end - at):
                end += 1
            found += self.read(source, first, end - at)
            at = end
        return found

    def rows(self, criteria: Criteria, told: Callable[[], object] = lambda: None) -> Rows:
        """The lines that pass a filter; `told` is called, from another thread, as they are found.

        Cancel them when they are no longer shown.
        """
        self._rows = [r for r in self._rows if not (r.complete or r.cancelled)]
        found = Rows(criteria, self._indexes, Sieve(criteria, self.table), self._wake, told)
        self._rows.append(found)
        return found

    def classes(self) -> list[LineClass]:
        """Every rank, kind and severity seen so far, together as they occurred."""
        return self.table.entries[1:]

    def prefix(self, source: int) -> str | None:
        """The expression for the wrapper in front of every line of a source, if there is one."""
        return self._indexes[source].prefix

    def _line(self, index: SourceIndex, number: int, raw: bytes) -> Line:
        cut = len(raw) > SHOWN_BYTES
        text = raw[:SHOWN_BYTES].decode("utf-8", "replace")
        block = index.block_of(number)
        if block is None:
            return Line(index.source, number, text, cut=cut)
        place = number - block.first_line
        code, stamp = int(block.codes[place]), block.times[place]
        entry = self.table.entries[code]
        return Line(
            index.source,
            number,
            text,
            entry.rank,
            entry.kind if code != PART else "",
            entry.severity,
            None if stamp is None else _EPOCH + timedelta(seconds=int(stamp)),
            cut,
        )

    def _tell(self) -> None:
        with self._wake:
            self._wake.notify_all()
        self._changed()
