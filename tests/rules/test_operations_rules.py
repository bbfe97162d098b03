"""Rules of networks, ports, hangs, slow starts, kills and transfers: one log that each must find,
one that looks alike and must stay silent. `expected.json` says what must be found."""

import json
from pathlib import Path
from typing import Any

import pytest

from forensics.diagnosis import Diagnosis
from forensics.findings import Finding
from forensics.pipeline import analyze

HERE = Path(__file__).parent
RULES = sorted(
    path.parent.name
    for path in HERE.glob("*/expected.json")
    if json.loads(path.read_text()).get("family") == "operations"
)


def diagnosed(rule: str, name: str) -> Diagnosis:
    return analyze([str(path) for path in sorted((HERE / rule).glob(f"{name}*.log"))])


def expected(rule: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((HERE / rule / "expected.json").read_text())
    return found


def findings(diagnosis: Diagnosis, rule: str) -> list[Finding]:
    return [f for report in diagnosis.reports for f in report.findings if f.rule == rule]


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_finds_its_own(rule: str) -> None:
    wanted, diagnosis = expected(rule), diagnosed(rule, "hit")
    finding = findings(diagnosis, rule)[0]
    run = diagnosis.reports[0].run
    said = {
        "class": finding.class_,
        "role": finding.role,
        "severity": finding.severity,
        "rank": finding.rank,
        "first": [Path(finding.first.source).name, finding.first.line],
        "outcome": run.outcome,
        "phase": run.phase,
        "remedies": [remedy.name for remedy in finding.remedies[:3]],
    }
    assert said == {name: wanted[name] for name in said}


@pytest.mark.parametrize("rule", RULES)
def test_what_looks_alike_is_left_alone(rule: str) -> None:
    if not list((HERE / rule).glob("miss*.log")):
        pytest.skip("nothing looks like it")
    diagnosis = diagnosed(rule, "miss")
    assert not findings(diagnosis, rule)
    roots = [report.root_cause.rule for report in diagnosis.reports if report.root_cause]
    assert roots == expected(rule).get("miss_root", [])


@pytest.mark.parametrize("rule", RULES)
def test_a_root_cause_is_one_and_has_evidence(rule: str) -> None:
    for report in diagnosed(rule, "hit").reports:
        assert len(report.with_role("root_cause")) <= 1
        for finding in report.findings:
            assert finding.evidence
            assert finding.known_at.source
