from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import forensics.rules
from forensics.rules import Rule

if TYPE_CHECKING:
    from conftest import Result

Run = Callable[..., "Result"]

RULES = (
    Rule("graph-capture-headroom", "graph_capture_oom", "critical", "precursor",
         "Too little memory is free when graph capture begins.", "a capture begin line", iter,
         "graph-capture"),
    Rule("scale-format", "numerics_scale_format", "warning", "context",
         "Block scales of one format are read as another.", "", iter, "scale-format"),
)  # fmt: skip


@pytest.fixture(autouse=True)
def _registry(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "graph-capture.md").write_text("---\nrule: x\n---\n\n# Headroom\n\nLower it.\n")
    monkeypatch.setattr(forensics.rules, "registry", lambda: RULES)
    monkeypatch.setattr("forensics.resources.playbook_dir", lambda: tmp_path)


def test_rules(run: Run) -> None:
    assert run("rules").out == (
        "graph-capture-headroom  critical  graph_capture_oom\n"
        "    Too little memory is free when graph capture begins.\n"
        "    needs: a capture begin line\n"
        "scale-format            warning   numerics_scale_format\n"
        "    Block scales of one format are read as another.\n"
    )
    data = json.loads(run("rules", "--format", "json").out)
    assert [(rule["id"], rule["role"]) for rule in data] == [
        ("graph-capture-headroom", "precursor"),
        ("scale-format", "context"),
    ]


def test_explain_prints_the_playbook_as_it_is_written_when_piped(run: Run) -> None:
    assert run("explain", "graph-capture-headroom").out == "# Headroom\n\nLower it.\n"


def test_explain_sets_the_playbook_in_a_terminal(run: Run) -> None:
    out = run("explain", "graph-capture-headroom", "--color", "always").out
    assert "Headroom" in out
    assert "# Headroom" not in out


def test_explain_a_rule_without_playbook_shows_the_rule(run: Run) -> None:
    assert run("explain", "scale-format").out.startswith("scale-format  warning")


def test_explain_an_unknown_rule_suggests_others(run: Run) -> None:
    result = run("explain", "graph-headroom")
    assert result.code == 2
    assert "no rule 'graph-headroom'; did you mean graph-capture-headroom" in result.err
    assert "`forensics rules` lists them" in run("explain", "zzz").err


def test_the_data_folders_are_found() -> None:
    done = subprocess.run(
        [sys.executable, "-c",
         "from forensics.resources import *; print(grammar_dir().is_dir(), playbook_dir().name)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "True playbooks\n"
