"""The phases of each rank as blocks.

A rank that prints nothing in a phase is taken to have done what all did, unless it is late: a step
of the start that its peers announce each for itself and it does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

from forensics.events import PHASES, Event
from forensics.incident import Run
from forensics.views.picture.model import Block
from forensics.views.picture.places import Places

_Change = tuple[datetime, str]

_OWN_STEPS = frozenset({"load", "kv_pool", "graph_capture"})
"""Steps that every rank announces for itself."""

_SHARED = frozenset({"serving", "shutdown"})
"""What a launch does as a whole."""


class SourcePhases:
    """What the ranks of one source did when."""

    def __init__(self, run: Run, source: int, places: Places) -> None:
        self._places = places
        self._end = places.end
        self._began: dict[str, datetime] = {}
        self._speakers: dict[str, set[str]] = {}
        self._ranks = {tag for place, tag in run.ranks if place == source}
        for event in run.events:
            if event.source != source or event.phase not in PHASES:
                continue
            self._began.setdefault(event.phase, places.of(event))
            if event.rank is not None:
                self._speakers.setdefault(event.phase, set()).add(event.rank)
        first = run.first_line.get(source)
        begin = places.begin if first is None else places.at(source, first)
        self._begin = min([begin, *self._began.values()])

    def blocks(self, events: Iterable[Event]) -> tuple[Block, ...]:
        """The blocks of one rank, from its events in order."""
        changes: list[_Change] = []
        for event in events:
            if event.phase in PHASES and (not changes or changes[-1][1] != event.phase):
                changes.append((self._places.of(event), event.phase))
        changes = self._inherited(changes)
        changes[0] = (self._begin, changes[0][1])
        return joined(changes, self._end)

    def _inherited(self, own: list[_Change]) -> list[_Change]:
        """The changes of a rank with those that it did not print."""
        own = [(self._shared(time, phase), phase) for time, phase in own]
        done = {phase for _, phase in own}
        furthest = max((PHASES.index(phase) for phase in done), default=-1)
        changes = list(own)
        late = False
        for index, phase in enumerate(PHASES):
            if phase not in self._began or phase in done:
                continue
            if index > furthest and self._all_say(phase):
                late = True
            elif phase in _SHARED or not late:
                _put(changes, (self._began[phase], phase))
        return changes or [(self._begin, PHASES[0])]

    def _shared(self, time: datetime, phase: str) -> datetime:
        """When a rank came to a phase: to what all do together with the first that says so."""
        return min(time, self._began[phase]) if phase in _SHARED else time

    def _all_say(self, phase: str) -> bool:
        """Whether a phase is one that each rank announces."""
        said = len(self._speakers.get(phase, ()))
        return phase in _OWN_STEPS and said > 0 and (said > 1 or len(self._ranks) <= 2)


def _put(changes: list[_Change], new: _Change) -> None:
    """Put a change where it keeps the order of phases; else leave it out."""
    at = sum(1 for time, _ in changes if time <= new[0])
    index = PHASES.index(new[1])
    before = PHASES.index(changes[at - 1][1]) if at else -1
    after = PHASES.index(changes[at][1]) if at < len(changes) else len(PHASES)
    if before < index < after:
        changes.insert(at, new)


def joined(changes: Sequence[_Change], end: datetime) -> tuple[Block, ...]:
    """Blocks from the changes of phase; each ends where the next begins."""
    ends = [*(time for time, _ in changes[1:]), end]
    return tuple(
        Block(phase, begin, max(stop, begin))
        for (begin, phase), stop in zip(changes, ends, strict=True)
    )


def whole(lanes: Iterable[Sequence[Block]], end: datetime) -> tuple[Block, ...]:
    """The phases of the launch: each from where the first rank came to it, in order."""
    began: dict[str, datetime] = {}
    for blocks in lanes:
        for block in blocks:
            began[block.phase] = min(block.begin, began.get(block.phase, block.begin))
    rising: list[_Change] = []
    for begin, phase in sorted(
        ((began[phase], phase) for phase in PHASES if phase in began), key=lambda one: one[0]
    ):
        if not rising or PHASES.index(phase) > PHASES.index(rising[-1][1]):
            rising.append((begin, phase))
    return joined(rising, end)
