"""Rules of memory: one log that each must find, one that looks alike and must stay silent.

A folder is named after its rule, with a variant after a dot where a rule has several.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from forensics.diagnosis import Diagnosis, RunReport
from forensics.findings import Finding
from forensics.pipeline import analyze

HERE = Path(__file__).parent
FOLDERS = sorted(
    path.parent.name
    for path in HERE.glob("*/expected.json")
    if json.loads(path.read_text()).get("family") == "memory"
)


def expected(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / folder / "expected.json").read_text())
    return found


def diagnosed(folder: str, name: str) -> Diagnosis:
    return analyze([str(HERE / folder / name)])


def found_by(diagnosis: Diagnosis, rule: str) -> tuple[RunReport, Finding]:
    """The last run in which a rule found something, and what it found."""
    return [(r, f) for r in diagnosis.reports for f in r.findings if f.rule == rule][-1]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_rule_finds_its_own(folder: str) -> None:
    wanted = expected(folder)
    report, finding = found_by(diagnosed(folder, "hit.log"), wanted["rule"])
    said = {
        "class": finding.class_,
        "role": finding.role,
        "severity": finding.severity,
        "rank": finding.rank,
        "first": finding.first.line,
        "known_at": finding.known_at.line,
        "outcome": report.run.outcome,
        "phase": report.run.phase,
        "root": report.root_cause.rule if report.root_cause else None,
        "remedies": [[r.name, r.direction, r.to] for r in finding.remedies[:3]],
    }
    assert said == {name: wanted[name] for name in said}


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_looks_alike_is_left_alone(folder: str) -> None:
    wanted = expected(folder)
    if "miss_root" not in wanted:
        pytest.skip("a variant: its rule's other folder has one")
    diagnosis = diagnosed(folder, "miss.log")
    rules = [f.rule for report in diagnosis.reports for f in report.findings]
    assert wanted["rule"] not in rules
    roots = [r.root_cause.rule if r.root_cause else None for r in diagnosis.reports]
    assert roots == wanted["miss_root"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_value_that_failed_before_is_not_proposed(folder: str) -> None:
    tried: list[float] = []
    for report in diagnosed(folder, "hit.log").reports:
        now = report.run.launch.number("mem_fraction_static")
        for finding in report.findings:
            for remedy in finding.remedies:
                if remedy.name == "mem_fraction_static" and remedy.direction == "decrease":
                    assert remedy.to < min([*tried, now or 1.0])
        if now is not None and report.run.outcome == "failed":
            tried.append(now)


@pytest.mark.parametrize("folder", FOLDERS)
def test_precursors_are_known_before_the_crash(folder: str) -> None:
    for report in diagnosed(folder, "hit.log").reports:
        if report.root_cause is None or report.run.outcome != "failed":
            continue
        for finding in report.with_role("precursor"):
            assert finding.known_at.line < report.root_cause.known_at.line


def test_a_healthy_server_is_left_in_peace() -> None:
    diagnosis = diagnosed("kv-retraction", "miss.log")
    assert [f.rule for report in diagnosis.reports for f in report.findings] == []
