"""Rules of other packages: found through entry points, shown and run like our own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

RULE = """
from forensics.rules import Skip, rule, threshold

LEAST = threshold("site_least_ranks", 4, "ranks", "Fewer ranks are worth a word")


@rule("site-few-ranks", class_="none", severity="warning", role="context",
      summary="The site's launches have more ranks", needs="rank tags", playbook="site-ranks")
def few_ranks(case):
    if not case.run.tags:
        yield Skip("no rank tags")
        return
    if len(case.run.tags) < case.threshold(LEAST):
        event = case.run.events[0]
        yield case.finding("site-few-ranks", "none", event, severity="warning", role="context",
                           title="Few ranks", explanation="The site starts more.")
"""
LOG = (
    "[2026-03-01 10:00:00 TP0] Load weight begin. avail mem=78.50 GB\n"
    "[2026-03-01 10:00:01 TP1] Load weight begin. avail mem=78.50 GB\n"
)


@dataclass
class Site:
    """A folder on the path of modules with an installed package of rules."""

    root: Path

    def install(self, name: str, text: str) -> None:
        package = self.root / name
        (package / "playbooks").mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "rules.py").write_text(text)
        (package / "playbooks" / "site-ranks.md").write_text("# Few ranks\n\nStart more.\n")
        info = self.root / f"{name}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[forensics.rules]\n{name} = {name}.rules\n")

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "forensics", *argv],
            env={**os.environ, "PYTHONPATH": str(self.root)},
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
        )

    def diagnose(self, *argv: str) -> dict[str, object]:
        done = self.run("analyze", "--json", "few.log", *argv)
        assert done.returncode == 0
        (run,) = json.loads(done.stdout)["runs"]
        return {finding["rule"]: finding for finding in run["findings"]}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    (tmp_path / "few.log").write_text(LOG)
    return Site(tmp_path)


def test_rules_of_another_package_run(site: Site) -> None:
    site.install("site_rules", RULE)
    found = site.diagnose()
    assert isinstance(found["site-few-ranks"], dict)
    assert found["site-few-ranks"]["playbook"] == "site-ranks"
    rules = json.loads(site.run("rules", "--format", "json").stdout)
    assert "site-few-ranks" in {rule["id"] for rule in rules}
    assert "# Few ranks" in site.run("explain", "site-few-ranks").stdout
    assert "site-few-ranks" not in site.diagnose("--ignore", "site-few-ranks")


def test_their_thresholds_can_be_set(site: Site) -> None:
    site.install("site_rules", RULE)
    (site.root / "forensics.toml").write_text("[thresholds]\nsite_least_ranks = 2\n")
    assert "site-few-ranks" not in site.diagnose()
    assert "site_least_ranks = 2" in site.run("config").stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named"),
        (RULE + "\nraise SystemExit(3)", "SystemExit: 3"),
        (RULE.replace('"site-few-ranks", class_', '"tp-split", class_'), "rule id tp-split is tak"),
        ("def half(:", "SyntaxError"),
    ],
)
def test_a_broken_package_is_one_line_and_stops_nothing(site: Site, text: str, said: str) -> None:
    site.install("broken_rules", text)
    done = site.run("analyze", "--json", "few.log")
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("forensics: rules 'broken_rules' of broken_rules were not loaded: ")
    assert said in line
    rules = {rule["id"] for rule in json.loads(site.run("rules", "--format", "json").stdout)}
    assert "site-few-ranks" not in rules
    assert "tp-split" in rules


def test_a_rule_that_raises_is_skipped_and_named(site: Site) -> None:
    site.install("site_rules", RULE.replace("len(case.run.tags)", "len(case.run.nothing)"))
    done = site.run("analyze", "--json", "few.log")
    assert (done.returncode, done.stderr) == (0, "")
    (run,) = json.loads(done.stdout)["runs"]
    because = {skipped["rule"]: skipped["because"] for skipped in run["skipped_rules"]}
    assert because["site-few-ranks"].startswith("internal error: AttributeError: ")
    shown = site.run("analyze", "-v", "few.log").stdout
    assert "site-few-ranks  internal error: AttributeError" in shown


def test_a_rule_that_yields_something_else_is_skipped(site: Site) -> None:
    site.install("site_rules", f"{RULE.partition('        event =')[0]}        yield 'text'")
    (run,) = json.loads(site.run("analyze", "--json", "few.log").stdout)["runs"]
    because = {skipped["rule"]: skipped["because"] for skipped in run["skipped_rules"]}
    assert because["site-few-ranks"] == "internal error: TypeError: it gave a str, not a finding"


def test_no_rule_of_our_own_raises(site: Site, fixtures: Path) -> None:
    logs = sorted([*fixtures.glob("*.log"), *(fixtures / "genuine").glob("*.log")])
    for log in logs:
        for run in json.loads(site.run("analyze", "--json", str(log)).stdout)["runs"]:
            skipped = [f"{one['rule']}: {one['because']}" for one in run["skipped_rules"]]
            assert [line for line in skipped if "internal error" in line] == []
