"""From a report to its picture."""

from __future__ import annotations

import os
from collections import defaultdict
from datetime import datetime

from forensics.diagnosis import RunReport
from forensics.events import Event
from forensics.incident import Incident, Run
from forensics.views.picture.marks import marks_of
from forensics.views.picture.model import FreePoint, Lane, Mark, Picture
from forensics.views.picture.phases import SourcePhases, whole
from forensics.views.picture.places import Places

_FAILED = ("failed", "hung")


def picture(report: RunReport, incident: Incident, until: datetime | None = None) -> Picture:
    """The picture of a run; every run has at least one lane.

    `until`: the present in the log's clock, for a launch that goes on though it writes nothing.
    """
    run = report.run
    places = Places(run, until)
    marks: dict[tuple[int, str | None], list[Mark]] = defaultdict(list)
    for owner, mark in marks_of(report, incident, places):
        marks[owner].append(mark)
    keys = _lanes(run)
    groups = _groups(run, keys, incident)
    phases = {source: SourcePhases(run, source, places) for source in run.sources or [0]}
    lanes = []
    for key in keys:
        source, rank = key
        free = _free(run, source, rank, incident, places)
        lanes.append(
            Lane(
                rank,
                groups[key],
                phases[source].blocks(_events(run, source, rank)),
                free,
                _total(run, source, rank, incident, free),
                tuple(sorted(marks.pop(key, []), key=lambda mark: mark.at)),
                source,
            )
        )
    rest = [mark for group in marks.values() for mark in group]
    return Picture(
        run=run.number,
        begin=places.begin,
        end=places.end,
        lanes=tuple(lanes),
        crash_at=_crash_at(report, places),
        axis=places.axis,
        phases=whole((lane.blocks for lane in lanes), places.end),
        marks=tuple(sorted(rest, key=lambda mark: mark.at)),
    )


def _lanes(run: Run) -> list[tuple[int, str | None]]:
    """The ranks in order; a source without tags has one lane."""
    keys: list[tuple[int, str | None]] = []
    for source in run.sources or [0]:
        own = [facts.tag for facts in run.ordered_ranks() if facts.source == source]
        keys += [(source, tag) for tag in own] if own else [(source, None)]
    return keys


def _groups(
    run: Run, keys: list[tuple[int, str | None]], incident: Incident
) -> dict[tuple[int, str | None], str]:
    """What each lane folds into: source and leading parts of the tag, where they tell apart."""
    several = len({source for source, _ in keys}) > 1
    parts: dict[tuple[int, str | None], list[str]] = {key: [] for key in keys}
    for source, rank in keys:
        if several:
            parts[source, rank].append(_name(incident, source))
    leading = {key: (key[1] or "").split()[:-1] for key in keys}
    heads = {(key[0], *leading[key][:1]) for key in keys if leading[key]}
    if 1 < len(heads) < len(keys):
        for key in keys:
            parts[key] += leading[key][:1]
    return {key: " ".join(words) for key, words in parts.items()}


def _name(incident: Incident, source: int) -> str:
    """The node that wrote a source, else its file's name."""
    facts = incident.sources[source]
    return facts.node or os.path.basename(facts.path.rstrip("/")) or facts.path


def _events(run: Run, source: int, rank: str | None) -> list[Event]:
    if rank is None:
        return [event for event in run.events if event.source == source]
    return [event for event in run.ranks[source, rank].events if event.rank == rank]


def _free(
    run: Run, source: int, rank: str | None, incident: Incident, places: Places
) -> tuple[FreePoint, ...]:
    """What the ledger, the bar of the capture and a refused request say of free memory."""
    path = incident.sources[source].path if incident.sources else ""
    points = [
        FreePoint(places.at(source, row.line, row.at), row.free_gib, row.line)
        for row in run.memory
        if row.source == path and row.free_gib is not None and (rank is None or row.rank == rank)
    ]
    ranks = {rank, None} if _is_first(run, source, rank) else {rank}  # rank 0's bar has no tag
    for event in run.of("capture_progress"):
        free = event.number("avail_gib")
        if event.source == source and event.rank in ranks and free is not None:
            points.append(FreePoint(places.of(event), free, event.line))
    for failure in run.failures:
        mine = failure.event.source == source and failure.rank == rank
        if mine and failure.oom and failure.oom.free_gib is not None:
            points.append(FreePoint(places.of(failure.event), failure.oom.free_gib, failure.line))
    return tuple(sorted(points, key=lambda point: (point.at, point.line)))


def _is_first(run: Run, source: int, rank: str | None) -> bool:
    return rank == next((f.tag for f in run.ordered_ranks() if f.source == source), None)


def _total(
    run: Run, source: int, rank: str | None, incident: Incident, free: tuple[FreePoint, ...]
) -> float | None:
    """What the log says of the rank's GPU, else the most that any GPU of the run had."""
    path = incident.sources[source].path if incident.sources else ""
    own = [
        row.total_gib
        for row in run.memory
        if row.source == path and row.total_gib and (rank is None or row.rank == rank)
    ]
    if own:
        return max(own)
    sizes = [size for row in run.memory for size in (row.total_gib, row.free_gib) if size]
    return max([*sizes, *(point.free_gib for point in free)], default=None)


def _crash_at(report: RunReport, places: Places) -> datetime | None:
    run = report.run
    if run.outcome not in _FAILED:
        return None
    if run.failures:
        return min(places.of(failure.event) for failure in run.failures)
    if report.root_cause is None:
        return places.end
    first = report.root_cause.first
    return places.at(run.sources[0] if run.sources else 0, first.line)
