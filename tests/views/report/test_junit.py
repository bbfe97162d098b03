"""JUnit for CI: a suite for each launch, a failed case for each kind of critical finding."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from forensics.pipeline import analyze
from forensics.rules import registry
from forensics.views.report import render


def suites(*logs: Path) -> ElementTree.Element:
    return ElementTree.fromstring(render(analyze(list(map(str, logs))), "junit"))


def test_a_suite_for_each_launch_and_a_case_for_each_class(root: Path) -> None:
    found = suites(root / "fixtures/sglang-glm5-abc.log")
    assert [suite.get("name") for suite in found] == ["run 1", "run 2", "run 3"]
    for suite in found:
        names = {case.get("name") for case in suite.iter("testcase")}
        assert {rule.class_ for rule in registry()} <= names


def test_counts_are_what_is_inside(root: Path) -> None:
    for log in ("fixtures/sglang-glm5-abc.log", "tests/rules/thin-reserve/miss.log"):
        found = suites(root / log)
        for element in (found, *found):
            assert int(element.get("tests", "-1")) == len(list(element.iter("testcase")))
            assert int(element.get("failures", "-1")) == len(list(element.iter("failure")))
            assert int(element.get("skipped", "-1")) == len(list(element.iter("skipped")))


def test_a_critical_finding_fails_its_case(root: Path) -> None:
    found = suites(root / "fixtures/sglang-glm5.log")
    failed = {case.get("name"): case.find("failure") for case in found.iter("testcase")}
    (name,) = [name for name, failure in failed.items() if failure is not None]
    failure = failed[name]
    assert name == "graph_capture_oom"
    assert failure is not None
    assert "sglang-glm5.log:214" in (failure.text or "")
    assert "To do: lower --mem-fraction-static from 0.95 to 0.88" in (failure.text or "")


def test_warnings_and_notes_fail_nothing_and_are_seen(root: Path) -> None:
    found = suites(root / "tests/rules/kv-retraction/hit.log")
    assert found.get("failures") == "0"
    assert any("kv-retraction" in (out.text or "") for out in found.iter("system-out"))
