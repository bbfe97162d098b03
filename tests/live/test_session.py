"""At any moment the findings are those that `analyze` gives for the lines so far."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import pipeline
from forensics.diagnosis import Diagnosis
from forensics.live.session import Session

ROOT = Path(__file__).parents[2]
LOGS = sorted(
    [
        *(ROOT / "fixtures").glob("*.log"),
        *(ROOT / "fixtures/genuine").glob("*.log"),
        *(ROOT / "tests/rules").glob("*/hit.log"),
    ]
)
PREFIXES, OF_A_RULE = 8, 2
"""Prefixes of a log that are held against `analyze`; an analysis takes some 50 ms."""


def said(diagnosis: Diagnosis) -> list[object]:
    return [
        (report.run.outcome, report.run.phase, [f.model_dump() for f in report.findings])
        for report in diagnosis.reports
    ]


def prefixes(lines: int, log: Path) -> set[int]:
    """Numbers of lines, spread over the log and different for each log."""
    step = max(lines // (OF_A_RULE if log.name == "hit.log" else PREFIXES), 1)
    shift = sum(log.name.encode()) % step
    return {*range(1 + shift, lines + 1, step), lines}


@pytest.mark.parametrize("log", LOGS, ids=lambda log: f"{log.parent.name}/{log.stem}")
def test_a_session_says_what_analyze_says(log: Path, tmp_path: Path) -> None:
    prefix = tmp_path / log.name
    session = Session([str(prefix)])
    lines = log.read_bytes().split(b"\n")
    wanted = prefixes(len(lines), log)
    with prefix.open("wb", buffering=0) as out:
        for number, line in enumerate(lines, start=1):
            data = line + b"\n" if number < len(lines) else line
            out.write(data)
            session.feed(0, data)
            if number not in wanted:
                continue
            if number == len(lines):
                session.end(0)
            snapshot = said(session.snapshot())
            if session.is_log:
                assert snapshot == said(pipeline.analyze([str(prefix)])), f"line {number}"


@pytest.mark.parametrize("size", [1, 7, 1000, 1 << 20])
def test_portions_do_not_matter(size: int) -> None:
    data = (ROOT / "fixtures/genuine/h200-capture-failed.log").read_bytes()
    session, whole = Session(["log"]), Session(["log"])
    for start in range(0, len(data), size):
        session.feed(0, data[start : start + size])
    whole.feed(0, data)
    assert said(session.snapshot()) == said(whole.snapshot())


def test_looking_changes_nothing() -> None:
    lines = (ROOT / "fixtures/sglang-glm5.log").read_bytes().split(b"\n")
    looked, plain = Session(["log"]), Session(["log"])
    for number, line in enumerate(lines):
        looked.feed(0, line + b"\n")
        plain.feed(0, line + b"\n")
        if number % 40 == 0:
            looked.snapshot()
    assert said(looked.snapshot()) == said(plain.snapshot())


def test_an_unfinished_line_is_not_judged_but_seen() -> None:
    session = Session(["log"])
    session.feed(0, b"[2026-02-18 23:53:22] The server is fired up and re")
    assert not session.snapshot().reports
    assert session.sources[0].open_line.endswith(b"and re")
    session.feed(0, b"ady to roll!\n")
    assert session.snapshot().reports[0].run.ready is not None


def test_a_healthy_log_is_never_critical() -> None:
    healthy = [log for log in LOGS if "healthy" in log.name or "fixed" in log.name]
    assert healthy
    for log in healthy:
        session = Session([log.name])
        for number, line in enumerate(log.read_bytes().split(b"\n")):
            session.feed(0, line + b"\n")
            if number % 20 == 0:
                for report in session.snapshot().reports:
                    assert not [f for f in report.findings if f.severity == "critical"], number


def test_findings_of_two_files_are_those_of_analyze(tmp_path: Path) -> None:
    paths = [tmp_path / "a.log", tmp_path / "b.log"]
    sources = [ROOT / "fixtures/sglang-glm5.log", ROOT / "fixtures/genuine/cpu-healthy.log"]
    session = Session([str(path) for path in paths])
    for path, source in zip(paths, sources, strict=True):
        path.write_bytes(source.read_bytes())
    for index in (0, 1):
        session.feed(index, paths[index].read_bytes())
    assert said(session.snapshot()) == said(pipeline.analyze([str(path) for path in paths]))


def test_why_nothing_was_read_is_said(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    session = Session([str(log)])
    assert session.nothing_read() == f": there is no {log} yet"
    log.touch()
    assert session.nothing_read() == ": nothing was written"
    session.feed(0, b"[2026-03-01 10:00:00 TP0] Load weight begin. avail mem=78.50 GB\n")
    assert session.nothing_read() == ""
