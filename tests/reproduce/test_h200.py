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
FOLDERS = ("reproduce", "search", "search-margin", "scale")
SEARCHES = ("search", "search-margin")
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
    if folder != "scale" and (at := value_in(result.command, FRACTION)) is not None:
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


def test_with_a_margin_the_search_leaves_it() -> None:
    kept = reproduction("search-margin")
    assert kept.best["value"] == 0.9675
    assert [trial.name for trial in kept.trials] == ["control", "search-1", "confirmation-1"]
    left = kept.trials[-1].measured.free_gib_after_capture
    assert left is not None
    # One step further less than the GiB that was asked for would have been left.
    assert 1.0 <= left < 1.0 + 139.13 * 0.0025


@pytest.mark.parametrize("folder", SEARCHES)
def test_the_search_would_go_the_same_way_again(folder: str) -> None:
    kept = reproduction(folder)
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


def test_scaled_down_to_a_smaller_card_the_same_fails_and_the_same_helps() -> None:
    here = {trial.name: trial.measured for trial in reproduction("scale").trials}
    there = {trial.name: trial.measured for trial in reproduction("reproduce").trials}
    assert here["control"].baseline_gib == pytest.approx(78.4, abs=0.1)
    assert there["control"].baseline_gib == pytest.approx(139.1, abs=0.1)
    for name in ("control", "fix"):
        free = there[name].free_gib_at_capture
        assert here[name].free_gib_at_capture == pytest.approx(free, abs=0.1)
    # Half the layers: graphs hold fewer kernels, and their buffers stay.
    assert here["control"].capture_need_gib == pytest.approx(1.09, abs=0.05)
    assert any("16 layers instead of 32" in limit for limit in reproduction("scale").plan.limits)


def probed(fraction: str) -> ProbeReport:
    text = (KEPT / f"probe-{fraction}.json").read_text(encoding="utf-8")
    return ProbeReport.model_validate(json.loads(text))


def test_the_probe_captures_where_the_server_does_and_takes_as_much() -> None:
    served = next(t for t in reproduction("search").trials if t.name == "search-1").measured
    report = probed("0.975")
    assert report.outcome == "captured"
    assert report.measured is not None
    assert report.measured.capture_gib == pytest.approx(served.capture_gib, abs=0.02)
    assert report.measured.free_gib_after_capture == pytest.approx(
        served.free_gib_after_capture, abs=0.05
    )


def test_the_probe_runs_out_where_the_server_did_by_the_same_request() -> None:
    report = probed("0.9775")
    cause = report_of(KEPT / "crash.log").run.failures[0].oom
    assert report.outcome == "out-of-memory"
    assert report.refusal is not None
    assert cause is not None
    assert report.refusal.batch == 512
    assert report.refusal.requested_gib == pytest.approx(cause.requested_gib)


@pytest.mark.parametrize("fraction", ["0.96", "0.975", "0.9775"])
def test_a_probe_takes_seconds_and_begins_with_what_was_foretold(fraction: str) -> None:
    report = probed(fraction)
    assert report.gpu == "NVIDIA H200"
    assert report.measured is not None
    assert report.elapsed_s is not None
    assert report.elapsed_s < 60
    free = report.foretold.free_gib_at_capture
    assert report.measured.free_gib_at_capture == pytest.approx(free, abs=0.05)
    assert report.foretold.capture_gib is not None
    if report.measured.capture_gib is not None:
        assert report.measured.capture_gib == pytest.approx(report.foretold.capture_gib, abs=0.02)


def test_no_path_of_the_machine_is_left_in_what_was_kept() -> None:
    for path in KEPT.rglob("*"):
        if path.is_file():
            text = path.read_text(encoding="utf-8", errors="replace")
            assert "/root" not in text
            assert "/tmp" not in text
