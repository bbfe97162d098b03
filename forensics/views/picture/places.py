"""Where a line of a source stands on the axis of a picture."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from forensics.timeline.clock import NO_DATE
from forensics.views.picture.model import LINE_ZERO, Axis, line_of

if TYPE_CHECKING:
    from forensics.events import Event
    from forensics.incident import Run


class Places:
    """Places of the lines of one run."""

    def __init__(self, run: Run, until: datetime | None = None) -> None:
        self.axis = _axis(run)
        self._lines: dict[int, list[int]] = {}
        self._times: dict[int, list[datetime]] = {}
        if self.axis != "line":
            self._learn(run)
        ends = self._ends(run)
        self.begin, self.end = min(ends), max(ends)
        if until is not None and self.axis != "line" and self._fits(until):
            self.end = max(self.end, until)

    def at(self, source: int, line: int, time: datetime | None = None) -> datetime:
        """The place of a line; without a time of its own that of the line before it."""
        if self.axis == "line":
            return LINE_ZERO + timedelta(seconds=line)
        own = time if time is not None and self._fits(time) else None
        lines = self._lines.get(source)
        if not lines:
            return own or self.begin
        near = self._times[source][max(bisect_right(lines, line) - 1, 0)]
        return near if own is None or near.replace(microsecond=0) == own else own

    def of(self, event: Event) -> datetime:
        """The place of an event."""
        return self.at(event.source, event.line, event.time)

    def line_at(self, source: int, at: datetime) -> int:
        """The last line of a source that stands at a place or before it."""
        if self.axis == "line":
            return max(line_of(at), 1)
        times = self._times.get(source)
        return self._lines[source][max(bisect_right(times, at) - 1, 0)] if times else 1

    def _fits(self, time: datetime) -> bool:
        return (time.year != NO_DATE) == (self.axis == "time")

    def _learn(self, run: Run) -> None:
        """The times by line, of events that have one."""
        timed = [(e.line, e.time, e.source) for e in run.events if e.time and self._fits(e.time)]
        timed.sort(key=lambda one: one[0])
        for line, time, source in timed:
            self._lines.setdefault(source, []).append(line)
            self._times.setdefault(source, []).append(time)
        self._times = {source: _spread(times) for source, times in self._times.items()}

    def _ends(self, run: Run) -> list[datetime]:
        if self.axis == "line":
            lines = [*run.first_line.values(), *run.last_line.values()] or [1]
            return [LINE_ZERO + timedelta(seconds=line) for line in lines]
        found = [time for times in self._times.values() for time in times]
        lasts = [facts.last for facts in run.ranks.values() if facts.last is not None]
        found += [e.time for e in lasts if e.time is not None and self._fits(e.time)]
        found += [at for at in (run.started_at, run.ended_at) if at is not None and self._fits(at)]
        return found + [time for time in _serving_ends(run) if self._fits(time)]


def _spread(times: list[datetime]) -> list[datetime]:
    """Lines of one whole second, in their order over that second: a phase may be shorter."""
    spread: list[datetime] = []
    for time, group in groupby(times):
        same = len(list(group))
        steps = range(same) if time.microsecond == 0 else [0] * same
        spread += [time + timedelta(seconds=step / same) for step in steps]
    return spread


def _axis(run: Run) -> Axis:
    """Times if they span anything, else lines."""
    for axis, fits in _KINDS.items():
        times = {event.time for event in run.events if event.time and fits(event.time)}
        if len(times | set(_serving_ends(run))) > 1 and times:
            return axis
    return "line"


_KINDS: dict[Axis, Callable[[datetime], bool]] = {
    "time": lambda time: time.year != NO_DATE,
    "undated": lambda time: time.year == NO_DATE,
}


def _serving_ends(run: Run) -> list[datetime]:
    """First and last time of the routine lines, which are not kept as events."""
    if run.serving is None or not run.serving.height:
        return []
    ends = (run.serving["time"].min(), run.serving["time"].max())
    return [time for time in ends if isinstance(time, datetime)]
