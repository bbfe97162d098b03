"""A run in brief, as data: its phases with their durations, what was found where, how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from forensics.diagnosis import RunReport
from forensics.events import PHASES, Event
from forensics.findings import Finding, Place
from forensics.timeline.clock import NO_DATE

if TYPE_CHECKING:
    from forensics.incident import Failure, Run

MomentKind = Literal["phase", "mark", "ready", "failure"]

_DAY_S = 86_400.0
LONGEST_START_S = _DAY_S
"""A phase of a start that seems to last longer has its ends on two clocks: none is told."""

_MOST_MARKS = 6


@dataclass(frozen=True, slots=True)
class Moment:
    """One row of a timeline: when, what, and where it stands."""

    kind: MomentKind
    time: datetime
    line: int
    phase: str = ""
    """Of a phase that begins."""
    took_s: float | None = None
    """How long that phase lasted; None where it is not known."""
    finding: Finding | None = None
    """Of a mark: what became knowable."""
    place: Place | None = None
    rank: str | None = None
    """Of the first failure."""


def moments(report: RunReport, paths: list[str]) -> list[Moment]:
    """The rows in the order of time; empty where the log has no times. `paths` name the sources."""
    rows = _phases(report.run)
    if not rows:
        return []
    rows += _marks(report) + _ends(report, paths)
    rows = [row for row in rows if not _without_date(report.run, row.time)]
    return sorted(rows, key=lambda row: row.time)


def has_date(rows: list[Moment]) -> bool:
    """Whether the log tells the day, not the time of day alone."""
    return bool(rows) and rows[0].time.year != NO_DATE


def _without_date(run: Run, time: datetime) -> bool:
    """A time of day before the first line that has a date: it cannot be held against others."""
    return time.year == NO_DATE and run.started_at is not None and run.started_at.year != NO_DATE


def _phases(run: Run) -> list[Moment]:
    """Where each phase begins, and how long it took."""
    begins: list[tuple[str, datetime, Event]] = []
    reached = -1
    last = run.ended_at
    for event in run.events:
        if event.time is None or event.phase not in PHASES or _without_date(run, event.time):
            continue
        last = max(last, event.time) if last else event.time
        if PHASES.index(event.phase) > reached:
            reached = PHASES.index(event.phase)
            begins.append((event.phase, event.time, event))
    if not begins:
        return []
    ends = [time for _, time, _ in begins[1:]] + [_failed(run) or last]
    return [
        Moment("phase", time, event.line, phase, _took(phase, time, end))
        for (phase, time, event), end in zip(begins, ends, strict=True)
    ]


def _took(phase: str, begin: datetime, end: datetime | None) -> float | None:
    if end is None:
        return None
    seconds = elapsed_s(begin, end)
    known = PHASES.index(phase) >= PHASES.index("serving") or seconds < LONGEST_START_S
    return seconds if known else None


def _failed(run: Run) -> datetime | None:
    """When a run that failed did so: what others say later is no part of its last phase."""
    times = [failure.event.time for failure in run.failures if failure.event.time]
    return min(times) if times and run.outcome == "failed" else None


def elapsed_s(begin: datetime, end: datetime) -> float:
    """Seconds between two moments, at least 0; without a year only the time of day counts."""
    seconds = max((end - begin).total_seconds(), 0.0)
    undated = begin.year == NO_DATE and end.year == NO_DATE
    return seconds % _DAY_S if undated else seconds


def _marks(report: RunReport) -> list[Moment]:
    """The lines at which something became knowable, but for the end itself."""
    marks: dict[tuple[str, int], Moment] = {}
    for finding in report.findings:
        known = finding.known_at
        ends = finding.role in ("consequence", "root_cause")
        if known.time is None or finding.severity == "info" or ends:
            continue
        mark = Moment("mark", known.time, known.line, finding=finding, place=known)
        marks.setdefault((known.source, known.line), mark)
    return list(marks.values())[:_MOST_MARKS]


def _ends(report: RunReport, paths: list[str]) -> list[Moment]:
    """The moment of ready, and the first failure; of a run that lives on, its first trouble."""
    run, cause = report.run, report.root_cause
    found = []
    if run.ready and run.ready.time:
        found.append(Moment("ready", run.ready.time, run.ready.line))
    if run.failures:
        failure = _first(report)
        event = failure.event
        if event.time:
            source = paths[event.source] if event.source < len(paths) else ""
            place = Place(source=source, line=failure.line)
            if cause is not None and cause.first.source == source and _of(failure, cause):
                place = cause.first
            found.append(Moment("failure", event.time, place.line, place=place, rank=failure.rank))
    elif cause is not None and cause.known_at.time is not None:
        found.append(_began(cause, cause.known_at.time))
    return found


def _first(report: RunReport) -> Failure:
    """The failure of the root cause's rank, else the first one."""
    cause, failures = report.root_cause, report.run.failures
    mine = [f for f in failures if cause is not None and _of(f, cause)]
    return min(mine or failures, key=lambda failure: (failure.event.time is None, failure.line))


def _of(failure: Failure, cause: Finding) -> bool:
    return cause.rank is None or failure.rank == cause.rank


def _began(cause: Finding, time: datetime) -> Moment:
    known = cause.known_at
    return Moment("mark", time, known.line, finding=cause, place=known, rank=cause.rank)
