"""Facts drawn from a timeline: runs, ranks, launch, outcome, memory. No opinions.

An `Incident` is everything that was read, as one deployment: several files are its nodes,
prefill and decode workers or replicas. A `Run` is one launch of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from forensics.events import Event, Traceback
from forensics.findings import MemoryRow
from forensics.grammar.oom import OutOfMemory
from forensics.launch import Launch
from forensics.memory import Ledger

if TYPE_CHECKING:
    import polars as pl


@dataclass(slots=True)
class Failure:
    """One process that failed: the record that says so, and what it was doing."""

    event: Event
    rank: str | None
    phase: str
    traceback: Traceback | None = None
    oom: OutOfMemory | None = None

    @property
    def line(self) -> int:
        """First line of the record."""
        return self.event.line


@dataclass(slots=True)
class RankFacts:
    """What one rank printed, in order: kinds are grammar rules."""

    tag: str
    source: int
    events: list[Event] = field(default_factory=list)
    ledger: Ledger | None = None
    phase: str = "init"
    last: Event | None = None


@dataclass(slots=True)
class Run:
    """One launch: what was started, how far it came, how it ended."""

    number: int
    sources: list[int] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    """Retained events in reading order; routine serving lines are in `serving` only."""
    counts: Counter[str] = field(default_factory=Counter)
    """How often each kind occurred, retained or not."""
    launch: Launch = field(default_factory=Launch)
    """What was started; of several nodes the first one's."""
    launches: dict[int, Launch] = field(default_factory=dict)
    """What each source started."""
    ranks: dict[tuple[int, str], RankFacts] = field(default_factory=dict)
    """By source and tag, since a prefill and a decode worker may both have a TP0."""
    failures: list[Failure] = field(default_factory=list)
    memory: list[MemoryRow] = field(default_factory=list)
    serving: pl.DataFrame | None = None
    """Routine serving lines, one row per minute, source, rank and lane (see `timeline.BUCKETS`)."""
    outcome: str = "unknown"
    phase: str = "init"
    started_at: datetime | None = None
    ended_at: datetime | None = None
    ready: Event | None = None
    readies: dict[int, Event] = field(default_factory=dict)
    """The line that says `ready`, of each source that has one."""
    lone_ledger: Ledger | None = None
    """The ledger of a launch on one GPU, which prints no rank tags."""
    first_line: dict[int, int] = field(default_factory=dict)
    last_line: dict[int, int] = field(default_factory=dict)

    def of(self, *kinds: str) -> Iterator[Event]:
        """Retained events of these kinds, in reading order."""
        return (event for event in self.events if event.kind in kinds)

    def first(self, *kinds: str) -> Event | None:
        """The first retained event of these kinds."""
        return next(self.of(*kinds), None)

    def launch_of(self, source: int) -> Launch:
        """What one source started; the run's launch where the source does not tell."""
        own = self.launches.get(source)
        return own if own is not None and (own.flags or own.command) else self.launch

    @property
    def tags(self) -> list[str]:
        """The rank tags seen, as the log spells them, in rank order."""
        return list(dict.fromkeys(facts.tag for facts in self.ordered_ranks()))

    def ordered_ranks(self) -> list[RankFacts]:
        """The ranks by source and number."""
        return [self.ranks[key] for key in sorted(self.ranks, key=_rank_order)]

    def ledgers(self) -> list[Ledger]:
        """The ledger of every rank, in rank order."""
        if self.lone_ledger is not None:
            return [self.lone_ledger]
        return [facts.ledger for facts in self.ordered_ranks() if facts.ledger is not None]


def _rank_order(key: tuple[int, str]) -> tuple[int, list[int]]:
    source, tag = key
    numbers = [int("".join(c for c in part if c.isdigit()) or 0) for part in tag.split()]
    return source, numbers


@dataclass(slots=True)
class SourceFacts:
    """One input: its size, how much of it was understood, and which node wrote it."""

    path: str
    bytes: int = 0
    lines: int = 0
    blank_lines: int = 0
    recognised_lines: int = 0
    is_log: bool = False
    """Something in it was recognised beyond doubt."""
    node: str | None = None
    wrapper: str | None = None
    notice: str | None = None
    """Something the reader had to say: cut archive, repaired bytes."""
    unknown_shapes: list[tuple[str, int]] = field(default_factory=list)
    """Lines that no rule of the grammar knows, numbers masked; most frequent first."""


@dataclass(slots=True)
class Incident:
    """Everything that was read, as facts."""

    sources: list[SourceFacts] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    """Inputs that were not read, each with the reason."""
