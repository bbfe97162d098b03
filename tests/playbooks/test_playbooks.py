"""Every rule has a playbook with its three parts, no playbook is without a rule, all render."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from forensics.pipeline import analyze
from forensics.rules import registry

Program = Callable[..., subprocess.CompletedProcess[str]]
PARTS = ["What it means", "Confirm", "Fix"]
MORE = "What does not help"
ROOT = Path(__file__).resolve().parents[2]
PLAYBOOKS = sorted((ROOT / "playbooks").glob("*.md"))
NAMES = {path.stem for path in PLAYBOOKS}
NOT_RULES = {"unknown-failure", "echo-failures"}
"""Findings that are no rule's, but the choice of the root cause's."""
LIVE = {"silent-launch", "stopped-process", "gone-without-a-word"}
"""Findings of a launch that is being watched."""


def named_in_code() -> set[str]:
    """Names that stand in the rules' code: a rule's findings may have names of their own."""
    text = "\n".join(path.read_text() for path in (ROOT / "forensics/rules").glob("*.py"))
    return set(re.findall(r'"([\w-]+)"', text))


@pytest.mark.parametrize("rule", registry(), ids=lambda rule: rule.id)
def test_every_rule_has_a_playbook(rule: object) -> None:
    assert rule.playbook in NAMES  # type: ignore[attr-defined]


def test_no_playbook_is_without_a_rule() -> None:
    used = {rule.playbook for rule in registry()} | NOT_RULES | LIVE | named_in_code()
    assert sorted(NAMES - used) == []


@pytest.mark.parametrize("path", PLAYBOOKS, ids=lambda path: path.stem)
def test_a_playbook_has_its_parts(path: Path) -> None:
    text = path.read_text()
    assert re.match(r"# \S.{0,78}\n\n\*\*", text)
    parts = re.findall(r"^\*\*(.+?)\.\*\*", text, re.M)
    assert parts in (PARTS, [*PARTS, MORE])
    assert len(text) < 3_000
    referred = re.findall(r"see `([\w-]+)`", text)
    assert [name for name in referred if name not in NAMES] == []


def logs() -> list[Path]:
    folders = [ROOT / "fixtures", ROOT / "fixtures" / "genuine", *(ROOT / "tests/rules").glob("*")]
    return [log for folder in folders for log in sorted(folder.glob("*.log"))]


def test_every_finding_names_a_playbook_that_exists() -> None:
    missing = {}
    for log in logs():
        for report in analyze([str(log)]).reports:
            for finding in report.findings:
                if finding.playbook not in NAMES:
                    missing[finding.rule] = finding.playbook
    assert missing == {}


def test_explain_takes_rules_and_playbooks(program: Program) -> None:
    by_rule, by_name = program("explain", "ninja-missing"), program("explain", "jit-toolchain")
    assert by_rule.returncode == by_name.returncode == 0
    assert by_rule.stdout == by_name.stdout
    wrong = program("explain", "jit-toolchan")
    assert (wrong.returncode, "did you mean jit-toolchain" in wrong.stderr) == (2, True)
    listed = json.loads(program("rules", "--format", "json").stdout)
    assert {rule["playbook"] for rule in listed} <= NAMES
