"""The fixed words: every combination of what control, fix and confirmations can come to."""

from __future__ import annotations

import json
from datetime import datetime
from itertools import product

import pytest

from forensics.reproduce.model import EXIT_CODES, Failure, ReproductionPlan, TrialPlan, TrialResult
from forensics.reproduce.verdict import proven, verdict
from tests.reproduce.conftest import CAPTURE_OOM, plan_of, planned

BARE = CAPTURE_OOM.model_copy(update={"rule": "other-words", "rank": "TP7", "title": "a bare OOM"})
OTHER = Failure(
    rule="port-in-use", class_="port_in_use", phase="warmup", title="Port 30000 is taken", line=7
)

WAYS = ("passes", "fails-same", "fails-otherwise", "times-out", "interrupted", "not-started")
"""What one trial can come to; None: it was not run."""


def result(trial: TrialPlan, way: str, because: str = "so it was") -> TrialResult:
    outcome = {"passes": "passed", "times-out": "timed-out"}.get(way, way)
    failure = {"fails-same": BARE, "fails-otherwise": OTHER}.get(way)
    return TrialResult(
        name=trial.name,
        role=trial.role,
        command=trial.command,
        started_at=datetime(2026, 1, 1),
        ended_at=datetime(2026, 1, 1),
        outcome="failed" if failure else outcome,  # type: ignore[arg-type]
        phase="init",
        because=because,
        failure=failure,
        log=f"{trial.name}/log",
    )


CONTROL = planned(["serve", "--f", "0.97"], "control")
FIX = planned(["serve", "--f", "0.9"], "fix")
AGAIN = planned(["serve", "--f", "0.9"], "confirmation-1")


def of_fix(way: str | None) -> str | None:
    """The word that a try of the fix forces; None: it passed."""
    return {
        "passes": None,
        "fails-same": "not-confirmed",
        "fails-otherwise": "different-failure",
    }.get(way or "", "inconclusive")


def expected(control: str | None, fix: str | None, again: str | None) -> str:
    if control == "passes":
        return "not-reproduced"
    if control in (None, "interrupted", "not-started"):
        return "inconclusive"
    good = "confirmed" if control == "fails-same" else "fix-holds"
    return of_fix(fix) or of_fix(again) or good


def test_a_fix_that_fails_as_its_control_does_is_told_so() -> None:
    plan = plan_of(CONTROL, FIX, AGAIN)
    both = [result(CONTROL, "fails-otherwise"), result(FIX, "fails-otherwise")]
    assert ", as the control does, not with graph_capture_oom" in verdict(plan, both).because
    one = [result(CONTROL, "fails-same"), result(FIX, "fails-otherwise")]
    assert "as the control does" not in verdict(plan, one).because


@pytest.mark.parametrize(
    ("control", "fix", "again"), list(product((None, *WAYS), (None, *WAYS), (None, *WAYS)))
)
def test_every_combination(control: str | None, fix: str | None, again: str | None) -> None:
    plan = plan_of(CONTROL, FIX, AGAIN)
    results = [
        result(trial, way)
        for trial, way in ((CONTROL, control), (FIX, fix), (AGAIN, again))
        if way is not None
    ]
    ruling = verdict(plan, results)
    assert ruling.word == expected(control, fix, again)
    assert ruling.exit_code == EXIT_CODES[ruling.word]
    assert ruling.because
    good = ruling.word in ("confirmed", "fix-holds")
    assert proven(plan, ruling) == (FIX.command if good else None)


def test_all_words_occur() -> None:
    ways = (None, *WAYS)
    assert {expected(*ways) for ways in product(ways, ways, ways)} == set(EXIT_CODES)


@pytest.mark.parametrize(
    ("ways", "settled"),
    [
        ((), False),
        (("fails-same",), False),
        (("fails-otherwise",), False),
        (("times-out",), False),
        (("passes",), True),
        (("not-started",), True),
        (("fails-same", "passes"), False),
        (("fails-same", "fails-same"), True),
        (("fails-same", "fails-otherwise"), True),
        (("fails-same", "times-out"), True),
        (("fails-same", "passes", "passes"), True),
    ],
)
def test_no_trial_is_run_that_could_change_nothing(ways: tuple[str, ...], settled: bool) -> None:
    plan = plan_of(CONTROL, FIX, AGAIN)
    results = [result(trial, way) for trial, way in zip(plan.trials, ways, strict=False)]
    assert verdict(plan, results).settled is settled


@pytest.mark.parametrize(
    ("fix", "word"),
    [
        ("passes", "fix-holds"),
        ("fails-same", "not-confirmed"),
        ("fails-otherwise", "different-failure"),
    ],
)
def test_without_a_control(fix: str, word: str) -> None:
    assert verdict(plan_of(FIX), [result(FIX, fix)]).word == word


@pytest.mark.parametrize(
    ("control", "fix", "word"),
    [
        ("fails-same", "passes", "confirmed"),
        ("fails-same", "fails-same", "not-confirmed"),
        ("fails-same", "fails-otherwise", "different-failure"),
        ("passes", None, "not-reproduced"),
    ],
)
def test_without_a_log_the_control_says_what_the_failure_is(
    control: str, fix: str | None, word: str
) -> None:
    plan = plan_of(CONTROL, FIX, failure=None)
    results = [result(CONTROL, control)] + ([result(FIX, fix)] if fix else [])
    assert verdict(plan, results).word == word


def test_with_neither_a_failing_fix_is_not_confirmed() -> None:
    ruling = verdict(plan_of(FIX, failure=None), [result(FIX, "fails-otherwise")])
    assert ruling.word == "not-confirmed"
    assert "Port 30000 is taken" in ruling.because


def test_another_failure_is_named_with_its_line() -> None:
    ruling = verdict(
        plan_of(CONTROL, FIX), [result(CONTROL, "fails-same"), result(FIX, "fails-otherwise")]
    )
    assert "port_in_use in warmup (Port 30000 is taken, line 7)" in ruling.because
    assert "graph_capture_oom" in ruling.because


def test_memory_that_was_not_given_back_is_not_laid_on_the_fix() -> None:
    held = result(CONTROL, "fails-same").model_copy(update={"gpu_returned": False})
    plan = plan_of(CONTROL, FIX, AGAIN)
    ruling = verdict(plan, [held, result(FIX, "fails-same")])
    assert ruling.word == "inconclusive"
    assert "GPU memory of control" in ruling.because
    results = [held, result(FIX, "passes"), result(AGAIN, "passes")]
    assert verdict(plan, results).word == "confirmed"


def test_a_search_changes_no_word() -> None:
    tried = planned(["serve", "--f", "0.96"], "search-1")
    better = planned(["serve", "--f", "0.95"], "confirmation-1")
    plan = plan_of(CONTROL, FIX, tried, better)
    results = [result(CONTROL, "fails-same"), result(FIX, "passes"), result(tried, "fails-same")]
    assert verdict(plan, results).word == "confirmed"
    assert verdict(plan, [*results, result(better, "fails-same")]).word == "confirmed"


def test_a_search_without_a_fix_is_judged_by_what_it_confirmed() -> None:
    found = planned(["serve", "--f", "0.95"], "search-1")
    again = planned(["serve", "--f", "0.95"], "confirmation-1")
    plan = plan_of(CONTROL, found, again)
    results = [result(CONTROL, "fails-same"), result(found, "passes")]
    assert verdict(plan_of(CONTROL, found), results).word == "inconclusive"
    ruling = verdict(plan, [*results, result(again, "passes")])
    assert ruling.word == "confirmed"
    assert proven(plan, ruling) == found.command


def test_a_plan_survives_its_document() -> None:
    plan = plan_of(CONTROL, FIX, AGAIN)
    text = json.dumps(plan.model_dump(mode="json", by_alias=True))
    assert ReproductionPlan.model_validate_json(text) == plan
