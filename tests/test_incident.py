"""The whole line on the incident that the tool is built around, and on genuine logs.

Beside each log stands `<log>.expected.json`, what is known of its launches. For each run: the
outcome, phase and class of the root cause, the rank that failed first, bounds of the first bad
line, what the words must say, the first remedy, the line from which the trouble was known, and
classes of which no alarm may be raised.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from forensics import pipeline
from forensics.views.json import render

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
SUFFIX = ".expected.json"
LOGS = sorted(path.with_name(path.name.removesuffix(SUFFIX) + ".log")
              for path in FIXTURES.rglob(f"*{SUFFIX}"))  # fmt: skip


@cache
def document(log: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(render(pipeline.analyze([str(log)])))
    return found


def expected(log: Path) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = json.loads(log.with_suffix(SUFFIX).read_text())["runs"]
    return runs


def pairs(log: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    yield from zip(document(log)["runs"], expected(log), strict=True)


def root_cause(run: dict[str, Any]) -> dict[str, Any]:
    (cause,) = [finding for finding in run["findings"] if finding["id"] == run["root_cause"]]
    assert cause["role"] == "root_cause"
    return cause


ids = pytest.mark.parametrize("log", LOGS, ids=[log.stem for log in LOGS])


def test_every_log_says_what_is_expected_of_it() -> None:
    assert set(FIXTURES.glob("*.log")) <= set(LOGS)
    assert set((FIXTURES / "genuine").glob("*.log")) <= set(LOGS)


@ids
def test_outcome_and_phase(log: Path) -> None:
    for run, want in pairs(log):
        assert run["outcome"] == want["outcome"]
        assert run["phase"] == want.get("phase", run["phase"])


@ids
def test_the_root_cause(log: Path) -> None:
    for run, want in pairs(log):
        if want["class"] is None:
            assert run["root_cause"] is None
            assert not [f["title"] for f in run["findings"] if f["severity"] == "critical"]
            continue
        cause = root_cause(run)
        assert (cause["class"], cause["severity"]) == (want["class"], want["severity"])
        assert cause["rank"] == want.get("rank", cause["rank"])
        first, last = want["first_line"]
        assert first <= cause["first"]["line"] <= last
        words = f"{cause['title']} {cause['explanation']}"
        assert [said for said in want["says"] if said not in words] == []
        assert cause["evidence"]


@ids
def test_the_first_remedy(log: Path) -> None:
    for run, want in pairs(log):
        if (remedy := want.get("remedy")) is None:
            continue
        first = root_cause(run)["remedies"][0]
        effect = remedy.pop("effect", {})
        assert {key: first[key] for key in remedy} == remedy
        for name, (low, high) in effect.items():
            assert low <= first["effect"][name] <= high


@ids
def test_what_was_known_before_the_crash(log: Path) -> None:
    for run, want in pairs(log):
        if (early := want.get("known_from_line")) is None:
            continue
        first, last = early["line"]
        found = [f for f in run["findings"]
                 if f["role"] == "precursor" and f["class"] == early["class"]]  # fmt: skip
        assert [f["severity"] for f in found] == [early["severity"]]
        assert first <= found[0]["known_at"]["line"] <= last
        assert found[0]["known_at"]["line"] < root_cause(run)["first"]["line"]


@ids
def test_echoes_and_false_alarms(log: Path) -> None:
    for run, want in pairs(log):
        if "echoes" in want:
            assert root_cause(run)["facts"]["echo_ranks"] == want["echoes"]
        alarms = [f for f in run["findings"] if f["severity"] != "info"]
        assert not [f["title"] for f in alarms if f["class"] in want.get("no_alarm", [])]


def test_the_incident_is_understood_line_by_line() -> None:
    coverage = document(FIXTURES / "sglang-glm5-abc.log")["coverage"]
    assert coverage["recognised"] == coverage["lines"]
    assert coverage["ranks"] == [f"TP{rank}" for rank in range(8)]


def test_the_launch_is_read_back() -> None:
    a, b, c = (run["launch"]["flags"] for run in document(FIXTURES / "sglang-glm5-abc.log")["runs"])
    assert a == {}
    assert (b["mem_fraction_static"], b["max_running_requests"]) == (0.95, 8)
    assert (c["mem_fraction_static"], c["max_running_requests"]) == (0.88, 64)
    assert (c["tp_size"], c["attention_backend"]) == (8, "flashinfer")


def test_the_ledger_of_launch_b() -> None:
    (run,) = document(FIXTURES / "sglang-glm5.log")["runs"]
    rows = [row for row in run["memory"] if row["phase"] == "graph_capture"]
    assert {row["rank"] for row in rows} == {f"TP{rank}" for rank in range(8)}
    for row in rows:
        assert (row["weights_gib"], row["kv_pool_gib"]) == (61.20, 31.70)
    assert 0.96 in {row["free_gib"] for row in rows}


def test_the_fixtures_are_what_their_script_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in _script(monkeypatch).logs().items():
        assert (FIXTURES / name).read_bytes() == text.encode()


def _script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    scripts = FIXTURES.parent / "scripts"
    monkeypatch.syspath_prepend(str(scripts))
    spec = importlib.util.spec_from_file_location("make_incident", scripts / "make_incident.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "make_incident", module)
    spec.loader.exec_module(module)
    return module
