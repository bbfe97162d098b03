"""The marks of a picture: what was found, when it could be known, which processes failed."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.diagnosis import RunReport
from forensics.findings import Finding
from forensics.incident import Failure, Incident
from forensics.views.picture.model import Mark
from forensics.views.picture.places import Places

_Owner = tuple[int, str | None]
"""Source and rank; rank None: the launch as a whole."""


def marks_of(
    report: RunReport, incident: Incident, places: Places
) -> Iterator[tuple[_Owner, Mark]]:
    """Every mark of a run with the lane it belongs to."""
    sources = {source.path: index for index, source in enumerate(incident.sources)}
    for failure in report.run.failures:
        yield (failure.event.source, failure.rank), _crash(report, failure, places)
    for finding in report.findings:
        source = sources.get(finding.first.source, 0)
        for mark in _of_finding(finding, source, sources, places):
            yield (source, finding.rank), mark


def _of_finding(
    finding: Finding, source: int, sources: dict[str, int], places: Places
) -> Iterator[Mark]:
    first, known = finding.first, finding.known_at
    common = (finding.severity, finding.role, finding.id)
    at = places.at(source, first.line)
    if finding.role != "precursor" or (first.source, first.line) != (known.source, known.line):
        yield Mark(at, "finding", *common, first.line, source)
    if finding.role == "precursor":
        where = sources.get(known.source, 0)
        yield Mark(places.at(where, known.line, known.time), "known", *common, known.line, where)


def _crash(report: RunReport, failure: Failure, places: Places) -> Mark:
    """A failed process: the cause itself, or one that followed."""
    cause = report.root_cause
    event = failure.event
    is_cause = cause is not None and (
        cause.rank == failure.rank
        if cause.rank is not None
        else failure is min(report.run.failures, key=lambda one: one.line)
    )
    echo = next(iter(report.with_role("consequence")), None)
    named = cause if is_cause else echo
    return Mark(
        places.of(event),
        "crash",
        "critical" if is_cause or cause is None else "warning",
        "root_cause" if is_cause or cause is None else "consequence",
        named.id if named else None,
        failure.line,
        event.source,
    )
