"""Runs the program in this process, over a line that is faked."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import pytest

from forensics.cli import app
from forensics.diagnosis import Coverage, Diagnosis, RunReport
from forensics.events import Event
from forensics.findings import Evidence, Finding, KnownAt, Place, Severity
from forensics.incident import Incident, Run, SourceFacts
from forensics.reading import InputError, Source
from forensics.rules import Settings


class NotALog(Exception):
    """Stands for the pipeline's."""


@dataclass
class Result:
    """What a run of the program left."""

    code: int
    out: str
    err: str


@dataclass
class Line:
    """A pipeline that answers what it is told to."""

    severity: Severity | None = "critical"
    error: BaseException | None = None
    calls: list[tuple[list[str], Settings]] = field(default_factory=list)

    def analyze(self, paths: list[str], settings: Settings, progress: Any) -> Diagnosis:
        self.calls.append((paths, settings))
        if self.error:
            raise self.error
        progress(10, 100)
        return diagnosis(self.severity)

    def events(self, paths: list[str], progress: Any) -> Iterator[tuple[Source, Event]]:
        source = Source(0, "a.log")
        yield source, Event(0, 1, "begin", "x, y", fields={"avail_gib": 0.96})
        if self.error:
            raise self.error
        yield source, Event(0, 2, "other", "z 12 ab12cd34ef")


def diagnosis(severity: Severity | None) -> Diagnosis:
    reports = []
    for number in (1, 2):
        run = Run(number, outcome="failed" if severity == "critical" else "ready")
        reports.append(RunReport(run))
    if severity:
        finding = Finding(
            id="f1",
            rule="some-rule",
            class_="not_memory",
            severity=severity,
            role="root_cause" if severity == "critical" else "context",
            title="Something happened",
            explanation="Because.",
            first=Place(source="a.log", line=3),
            known_at=KnownAt(source="a.log", line=3, time=datetime(2026, 1, 1)),
            evidence=[Evidence(source="a.log", line=3, text="bad")],
        )
        reports[1].findings = [finding]
        reports[1].root_cause = finding if severity == "critical" else None
    source = SourceFacts("a.log", bytes=30, lines=10, blank_lines=2, recognised_lines=7)
    shapes = [("odd line # at #", 6), ("other line", 1)]
    runs = [report.run for report in reports]
    return Diagnosis(Incident([source], runs), reports, Coverage(8, 7, unknown_shapes=shapes))


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Line:
    fake = Line()
    module = types.ModuleType("forensics.pipeline")
    vars(module).update(
        InputError=InputError, NotALog=NotALog, analyze=fake.analyze, events=fake.events
    )
    monkeypatch.setitem(sys.modules, "forensics.pipeline", module)
    monkeypatch.setattr("forensics.pipeline", module, raising=False)
    return fake


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    def call(*argv: str) -> Result:
        with pytest.raises(SystemExit) as stop:
            app(list(argv), prog_name="forensics")
        captured = capsys.readouterr()
        return Result(int(stop.value.code or 0), captured.out, captured.err)

    return call
