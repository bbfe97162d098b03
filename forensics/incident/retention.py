"""Which events are kept, so that memory does not grow with the log.

Routine serving lines become rows (`forensics.timeline.serving`). Of every other kind the first
and the last ones of a run are kept: a cause is among the first, an end among the last.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from forensics.events import OTHER, Event
from forensics.timeline import ROUTINE

FIRST, LAST = 600, 400
"""Events of one kind and run that are kept, from its beginning and from its end."""

ROWS = ROUTINE | {"retract", "retract_test"}
"""Kinds that also become rows."""

_FLUSH = 5_000


@dataclass(slots=True)
class Kept:
    """The events of one run of one source."""

    counts: Counter[str] = field(default_factory=Counter)
    rows: list[Event] = field(default_factory=list)
    """Routine events that are not yet rows."""
    first: Event | None = None
    last: Event | None = None
    last_by_rank: dict[str | None, Event] = field(default_factory=dict)
    _heads: dict[str, list[Event]] = field(default_factory=dict)
    _tails: dict[str, deque[Event]] = field(default_factory=dict)

    def add(self, event: Event) -> bool:
        """Take an event; true when `rows` is due to be turned into rows."""
        self.counts[event.kind] += 1
        self.first = self.first or event
        self.last = event
        if event.kind != OTHER:
            self.last_by_rank[event.rank] = event
        if event.kind in ROWS:
            self.rows.append(event)
            if event.kind in ROUTINE and not _worth_keeping(event):
                return len(self.rows) >= _FLUSH
        head = self._heads.setdefault(event.kind, [])
        if len(head) < FIRST:
            head.append(event)
        else:
            self._tails.setdefault(event.kind, deque(maxlen=LAST)).append(event)
        return len(self.rows) >= _FLUSH

    def of(self, kind: str) -> list[Event]:
        """The first events of one kind, in reading order."""
        return self._heads.get(kind, [])

    def copy(self) -> Kept:
        """The same events, kept apart from now on."""
        return Kept(
            counts=self.counts.copy(),
            rows=list(self.rows),
            first=self.first,
            last=self.last,
            last_by_rank=dict(self.last_by_rank),
            _heads={kind: list(head) for kind, head in self._heads.items()},
            _tails={kind: tail.copy() for kind, tail in self._tails.items()},
        )

    def events(self) -> list[Event]:
        """The kept events in reading order."""
        kept: list[Event] = []
        for part in (*self._heads.values(), *self._tails.values()):
            kept += part
        kept.sort(key=lambda event: event.line)
        return kept


def _worth_keeping(event: Event) -> bool:
    """An access line that is no success is an event of its own."""
    status = event.number("status") if event.kind == "http_access" else None
    return status is not None and status >= 400


def take_rows(kept: Iterable[Kept]) -> list[Event]:
    """The routine events that wait to become rows; they are handed over once."""
    taken: list[Event] = []
    for item in kept:
        taken += item.rows
        item.rows = []
    return taken
