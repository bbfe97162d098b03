"""Every rule has a playbook with its five sections, no playbook is without a rule, all render."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from forensics.pipeline import analyze
from forensics.releases import releases, table
from forensics.rules import registry
from forensics.views.report.playbook import SECTIONS, parse, plain

Program = Callable[..., subprocess.CompletedProcess[str]]
ROOT = Path(__file__).resolve().parents[2]
PLAYBOOKS = sorted(set((ROOT / "playbooks").glob("*.md")) - {ROOT / "playbooks" / "README.md"})
NAMES = {path.stem for path in PLAYBOOKS}
RULES = sorted((ROOT / "forensics/rules").glob("*.py"))
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
def test_a_playbook_has_its_sections(path: Path) -> None:
    text = path.read_text()
    assert re.match(r"# \S.{0,78}\n\n## ", text)
    page = parse(path.stem, text)
    assert list(page.sections) == list(SECTIONS)
    assert {
        name: len(page.of(name).text) for name in SECTIONS if len(page.of(name).text) < 40
    } == {}
    assert len(text) < 4_000
    referred = re.findall(r"see `([\w-]+)`", text)
    assert [name for name in referred if name not in NAMES] == []


@pytest.mark.parametrize("path", PLAYBOOKS, ids=lambda path: path.stem)
def test_what_is_explained_shows_nothing_of_reports(path: Path) -> None:
    page = plain(path.read_text())
    assert "<!--" not in page
    assert not re.search(r"\{\w+\}", page)


def facts_that_exist() -> set[str]:
    """Names of facts in the rules' code, of flags, and of what every report adds."""
    named = set(re.findall(r'"(\w+)"', "\n".join(p.read_text() for p in RULES)))
    return (
        named | set(table(releases()[-1]).fields) | {"fix_from", "fix_to", "rank", "ranks_in_all"}
    )


@pytest.mark.parametrize("path", PLAYBOOKS, ids=lambda path: path.stem)
def test_what_a_report_adds_is_made_of_facts_that_rules_give(path: Path) -> None:
    said = re.findall(r"<!-- here: (.*?) -->", path.read_text(), re.S)
    names = {name for sentence in said for name in re.findall(r"\{(\w+)\}", sentence)}
    assert sorted(names - facts_that_exist()) == []


def test_a_report_says_what_is_known_and_nothing_else() -> None:
    text = (
        "# T\n\n## What it means\n\nAbout.\n\n<!-- here: {a_gib} of {b}. -->\n<!-- here: {c}. -->\n"
    )
    section = parse("t", text, {"a_gib": 1.5, "b": 2048, "c": None}).of("What it means")
    assert (section.text, section.here) == ("About.", ["1.50 of 2,048."])


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
