"""The verdict: what the trials say of the fix, in fixed words, with the evidence in one sentence.

| control | fix and its confirmations | verdict |
| --- | --- | --- |
| fails as in the log | pass | `confirmed` |
| skipped, fails otherwise, or came to no end in time | pass | `fix-holds` |
| passes | whatever they do | `not-reproduced` |
| interrupted, not started | whatever they do | `inconclusive` |
| else | one fails where GPU memory of an earlier trial was not given back | `inconclusive` |
| else | one fails as before | `not-confirmed` |
| else | one fails otherwise | `different-failure` |
| else | one came to no end in time, or says nothing | `inconclusive` |

Where there is no failure from a log to compare with, the control's own counts; without either, a
fix that fails is `not-confirmed`. What a search tries beside the fix changes no word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from forensics.reproduce.judge import is_same
from forensics.reproduce.model import (
    EXIT_CODES,
    Failure,
    ReproductionPlan,
    TrialPlan,
    TrialResult,
    Word,
)


@dataclass(frozen=True, slots=True)
class Ruling:
    """A verdict; `settled`: no trial that was not run yet could change it."""

    word: Word
    because: str
    settled: bool = True

    @property
    def exit_code(self) -> int:
        """The exit code of the contract."""
        return EXIT_CODES[self.word]


@dataclass(frozen=True, slots=True)
class _Control:
    """What the control showed; `shown` is the failure that the fix must be rid of."""

    as_in_log: bool
    said: str
    shown: Failure | None
    here: Failure | None = None
    """How it failed here, where that is not as in the log."""


def verdict(plan: ReproductionPlan, results: Sequence[TrialResult]) -> Ruling:
    """What the trials that were run so far say."""
    by_name = {result.name: result for result in results}
    control = _control(plan, by_name)
    if isinstance(control, Ruling):
        return control
    fix = _fix(plan)
    if fix is None:
        return Ruling("inconclusive", f"{control.said}; no fix was tried", settled=False)
    tries = [fix, *_confirmations(plan, fix)]
    for trial in tries:
        result = by_name.get(trial.name)
        if result is not None and (before := _held_memory(results, result)):
            said = f"GPU memory of {before} was not given back before {trial.name} failed"
            return Ruling("inconclusive", said)
        if (ruling := _ruling(trial, result, control)) is not None:
            return ruling
    passed = _passes(tries, by_name)
    return Ruling("confirmed" if control.as_in_log else "fix-holds", f"{control.said}; {passed}")


def proven(plan: ReproductionPlan, ruling: Ruling) -> list[str] | None:
    """The command that a good verdict is about; scaled down, the original's."""
    fix = _fix(plan)
    good = ruling.word in ("confirmed", "fix-holds")
    return list(fix.stands_for or fix.command) if good and fix is not None else None


def _control(plan: ReproductionPlan, by_name: dict[str, TrialResult]) -> _Control | Ruling:
    trial = next((trial for trial in plan.trials if trial.role == "control"), None)
    if trial is None:
        return _Control(False, "No control was run", plan.failure)
    result = by_name.get(trial.name)
    if result is None:
        return Ruling("inconclusive", "The control was not run", settled=False)
    match result.outcome:
        case "passed":
            shown = f" the failure of the log, {_named(plan.failure)}," if plan.failure else ""
            said = f"The control passes here ({result.because}):{shown or ' it'} does not show"
            return Ruling("not-reproduced", said)
        case "interrupted" | "not-started":
            return Ruling("inconclusive", f"The control says nothing: {result.because}")
        case "timed-out":
            said = f"The control came to no end in time ({result.because})"
            return _Control(False, said, plan.failure)
    shown_here, awaited = result.failure, plan.failure
    if shown_here is None or (awaited is not None and not is_same(awaited, shown_here)):
        instead = f", not with {_named(awaited)} as in the log" if awaited else ""
        said = f"The control fails with {_of(result)}{instead}"
        return _Control(False, said, awaited, result.failure)
    where = " as in the log" if awaited else ""
    return _Control(True, f"The control fails{where} with {_of(result)}", shown_here)


def _ruling(trial: TrialPlan, result: TrialResult | None, control: _Control) -> Ruling | None:
    """What a try of the fix decides; None where it passed."""
    what = "The fix" if trial.role != "confirmation" else f"The fix passed once, but {trial.name}"
    if result is None:
        said = "The fix was not run" if trial.role != "confirmation" else f"{what} was not run"
        return Ruling("inconclusive", said, settled=False)
    match result.outcome:
        case "passed":
            return None
        case "failed":
            before = control.shown
            if before is not None and (
                result.failure is None or not is_same(before, result.failure)
            ):
                alike = control.here and result.failure and is_same(control.here, result.failure)
                also = ", as the control does" if alike else ""
                said = f"{what} fails with {_of(result)}{also}, not with {_named(before)}"
                return Ruling("different-failure", said)
            same = " in the same way" if before is not None else ""
            return Ruling("not-confirmed", f"{what} fails{same} with {_of(result)}")
        case "timed-out":
            said = f"{what} came to no end in time ({result.because})"
            return Ruling("inconclusive", said)
        case _:
            return Ruling("inconclusive", f"{what} says nothing: {result.because}")


def _held_memory(results: Sequence[TrialResult], failed: TrialResult) -> str | None:
    """Of a trial that failed, an earlier one after which less GPU memory was free than before."""
    if failed.outcome != "failed":
        return None
    earlier = results[: next(i for i, one in enumerate(results) if one is failed)]
    return next((one.name for one in earlier if one.gpu_returned is False), None)


def _fix(plan: ReproductionPlan) -> TrialPlan | None:
    """The fix; of a search without one, the value that it went on to confirm."""
    fix = next((trial for trial in plan.trials if trial.role == "fix"), None)
    confirmed = [trial for trial in plan.trials if trial.role == "confirmation"]
    if fix is not None or not confirmed:
        return fix
    last = confirmed[-1]
    return next((t for t in plan.trials if t.role == "search" and _alike(t, last)), last)


def _confirmations(plan: ReproductionPlan, fix: TrialPlan) -> list[TrialPlan]:
    """Repetitions of the fix; those of another value belong to a search."""
    return [
        trial
        for trial in plan.trials
        if trial.role == "confirmation" and trial is not fix and _alike(trial, fix)
    ]


def _alike(one: TrialPlan, other: TrialPlan) -> bool:
    return (one.command, one.env, one.unset_env) == (other.command, other.env, other.unset_env)


def _passes(tries: list[TrialPlan], by_name: dict[str, TrialResult]) -> str:
    said = by_name[tries[0].name].because
    if len(tries) == 1:
        return f"the fix passes ({said})"
    return f"the fix passes {len(tries)} times out of {len(tries)} ({said})"


def _of(result: TrialResult) -> str:
    return _named(result.failure) if result.failure else f"no known cause ({result.because})"


def _named(failure: Failure | None) -> str:
    if failure is None:
        return "no known cause"
    at = f", line {failure.line}" if failure.line is not None else ""
    return f"{failure.class_} in {failure.phase} ({failure.title}{at})"
