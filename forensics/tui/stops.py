"""Where one can jump to in a run: findings, warnings, tracebacks, in the order of time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from forensics.diagnosis import RunReport
from forensics.findings import Finding
from forensics.tui.store.classes import severity_of
from forensics.views.picture.places import Places

Kind = Literal["finding", "warning", "traceback"]


@dataclass(frozen=True, slots=True, order=True)
class Stop:
    """A place to jump to; stops are ordered by time, then by source and line."""

    at: datetime
    source: int
    line: int
    finding_id: str = ""
    rank: str = ""


class RunStops:
    """The stops of one run."""

    def __init__(self, report: RunReport, paths: list[str]) -> None:
        self.places = Places(report.run)
        self._paths = paths
        self._stops: dict[Kind, list[Stop]] = {
            "finding": sorted(self._findings(report)),
            "warning": sorted(self._events(report, warnings=True)),
            "traceback": sorted(self._events(report, warnings=False)),
        }

    def of(self, kind: Kind) -> list[Stop]:
        """All stops of a kind, in order."""
        return self._stops[kind]

    def next(self, kind: Kind, source: int, line: int, step: int) -> Stop | None:
        """The nearest stop behind a line (`step` 1) or before it (-1)."""
        here = (self.places.at(source, line), source, line)
        stops = self._stops[kind]
        if step > 0:
            return next((s for s in stops if (s.at, s.source, s.line) > here), None)
        return next((s for s in reversed(stops) if (s.at, s.source, s.line) < here), None)

    def place_of(self, finding: Finding) -> tuple[int, int]:
        """Source and line of the moment a finding is about: when it could be known, for a
        precursor; for all others the first line of the cause."""
        place = finding.known_at if finding.role == "precursor" else finding.first
        source = self._paths.index(place.source) if place.source in self._paths else 0
        return source, place.line

    def _findings(self, report: RunReport) -> Iterator[Stop]:
        for finding in report.findings:
            source, line = self.place_of(finding)
            at = self.places.at(source, line)
            yield Stop(at, source, line, finding.id, finding.rank or "")

    def _events(self, report: RunReport, *, warnings: bool) -> Iterator[Stop]:
        for event in report.run.events:
            wanted = severity_of(event) if warnings else event.traceback
            if wanted is not None:
                at = self.places.of(event)
                yield Stop(at, event.source, event.line, "", event.rank or "")
