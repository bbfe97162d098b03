"""A failure on a real GPU that the program itself reproduced, fixed and searched: what it kept.

`fixtures/h200-reproduce/README.md` says how the logs and verdicts came about.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forensics import pipeline
from forensics.diagnosis import RunReport
from forensics.probe.model import ProbeReport
from forensics.reproduce.figures import measured, predicted
from forensics.reproduce.flag_values import value_in
from forensics.reproduce.judge import failure_of, is_same
from forensics.reproduce.model import Reproduction, TrialPlan
from forensics.reproduce.search import best, next_trial
from forensics.reproduce.verdict import verdict

KEPT = Path(__file__).parents[2] / "fixtures" / "h200-reproduce"
FOLDERS = ("reproduce", "search")
FRACTION = "mem_fraction_static"
FAILS, PASSES = 0.9765, 0.975
"""Between these the boundary was measured before, by hand."""


def reproduction(folder: str) -> Reproduction:
    text = (KEPT / folder / "reproduction.json").read_text(encoding="utf-8")
    return Reproduction.model_validate_json(text)


def report_of(path: Path) -> RunReport:
    return pipeline.analyze([str(path)]).reports[-1]


TRIALS = [(folder, trial.name) for folder in FOLDERS for trial in reproduction(folder).trials]


def test_the_crash_is_diagnosed_as_what_it_is() -> None:
    report = report_of(KEPT / "crash.log")
    cause = report.root_cause
    assert report.run.outcome == "failed"
    assert cause is not None
    assert cause.rule == "graph-capture-oom"
    assert cause.remedies[0].name == FRACTION
    assert cause.remedies[0].to == 0.93


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_verdict_is_the_same_now_and_in_the_same_words(folder: str) -> None:
    kept = reproduction(folder)
    ruling = verdict(kept.plan, kept.trials)
    assert ruling.word == kept.verdict == "confirmed"
    assert ruling.because == kept.because
    assert ruling.exit_code == kept.exit_code == 0


@pytest.mark.parametrize(("folder", "name"), TRIALS)
def test_each_trial_came_to_what_was_expected_of_it(folder: str, name: str) -> None:
    kept = reproduction(folder)
    plan = next(trial for trial in kept.plan.trials if trial.name == name)
    result = next(trial for trial in kept.trials if trial.name == name)
    assert result.outcome == {"fails": "failed", "passes": "passed"}[plan.expects]
    assert result.cleaned_up
    assert result.gpu_returned
    report = report_of(KEPT / folder / result.log)
    if result.failure is not None:
        assert kept.plan.failure is not None
        assert is_same(kept.plan.failure, failure_of(report))
    seen = measured(report.run)
    assert seen.free_gib_at_capture == result.measured.free_gib_at_capture
    assert seen.kv_tokens == result.measured.kv_tokens
    assert seen.capture_gib == result.measured.capture_gib


@pytest.mark.parametrize(("folder", "name"), TRIALS)
def test_free_memory_at_capture_was_predicted_within_0_3_gib(folder: str, name: str) -> None:
    result = next(trial for trial in reproduction(folder).trials if trial.name == name)
    foretold, free = result.predicted.free_gib_at_capture, result.measured.free_gib_at_capture
    assert foretold is not None
    assert free is not None
    assert abs(foretold - free) <= 0.3
    if (at := value_in(result.command, FRACTION)) is not None:
        crash = measured(report_of(KEPT / "crash.log").run)
        assert predicted(crash, 0.9775, at).free_gib_at_capture == pytest.approx(free, abs=0.3)


def test_the_search_found_the_measured_boundary() -> None:
    kept = reproduction("search")
    assert kept.best["value"] == PASSES
    assert abs(kept.best["value"] - FAILS) <= 0.01
    tried = [trial.name for trial in kept.trials]
    assert tried == ["control", "search-1", "confirmation-1"]
    assert kept.command is not None
    assert value_in(kept.command, FRACTION) == PASSES


def test_the_search_would_go_the_same_way_again() -> None:
    kept = reproduction("search")
    ask = kept.plan.search
    assert ask is not None
    plan = kept.plan.model_copy(update={"trials": kept.plan.trials[:1]})
    for done in range(1, len(kept.trials)):
        following = next_trial(plan, kept.trials[:done], ask)
        assert isinstance(following, TrialPlan)
        assert following.name == kept.trials[done].name
        assert following.command == kept.trials[done].command
        plan = plan.model_copy(update={"trials": [*plan.trials, following]})
    assert next_trial(plan, kept.trials, ask) is None
    assert best(plan, kept.trials, ask) == kept.best


@pytest.mark.parametrize("path", sorted(KEPT.glob("probe-*.json")), ids=lambda path: path.stem)
def test_a_probe_of_the_same_geometry_began_with_as_much_free(path: Path) -> None:
    report = ProbeReport.model_validate(json.loads(path.read_text(encoding="utf-8")))
    assert report.gpu == "NVIDIA H200"
    assert report.measured is not None
    foretold = report.foretold
    assert foretold.free_gib_at_capture is not None
    assert abs(report.measured.free_gib_at_capture - foretold.free_gib_at_capture) <= 0.05


def test_no_path_of_the_machine_is_left_in_what_was_kept() -> None:
    for path in KEPT.rglob("*"):
        if path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            assert "/root" not in text
            assert "/tmp" not in text
