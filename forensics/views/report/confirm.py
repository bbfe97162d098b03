"""How the cause is confirmed: the line that tries it, or what a reproduction has shown."""

from __future__ import annotations

import shlex

from forensics.diagnosis import RunReport
from forensics.reproduce.model import Figures, Reproduction, TrialPlan, TrialResult
from forensics.views.changes import shell_lines
from forensics.views.clean import one_line
from forensics.views.report.content import Confirmed, Trial
from forensics.views.report.sections import COMMAND_WIDTH
from forensics.views.words import DOING, count, ended, sentence, value

_MEANING = {
    "confirmed": "The launch failed again as in the log, and the change made it pass.",
    "fix-holds": "The changed launch passes here; that the old one fails was not shown here.",
    "not-confirmed": "The changed launch failed in the same way: the change is not the fix.",
    "different-failure": "The changed launch failed, but in another way than the log.",
    "not-reproduced": "The launch of the log did not fail here.",
    "inconclusive": "The trials decided nothing.",
}
"""The fixed words of a verdict, in a sentence each."""

_MOST_DIFFERENCES = 8


def reproduce_line(report: RunReport) -> str:
    """The command that would try cause and fix; empty where there is no launch to change."""
    return shlex.join(map(one_line, report.reproduce or []))


def confirmed(found: Reproduction) -> Confirmed:
    """What a reproduction says."""
    plans = {plan.name: plan for plan in found.plan.trials}
    differences = [
        ended(f"{sentence(one.what)}: {one.because}")
        for one in found.plan.differences
        if one.weight != "minor"
    ]
    return Confirmed(
        found.verdict,
        _MEANING[found.verdict],
        ended(sentence(one_line(found.because))),
        [_trial(trial, plans.get(trial.name)) for trial in found.trials],
        [ended(one_line(limit)) for limit in found.plan.limits],
        [one_line(text) for text in differences[:_MOST_DIFFERENCES]],
        shell_lines(found.command, {}, [], COMMAND_WIDTH) if found.command else [],
    )


def _trial(trial: TrialResult, plan: TrialPlan | None) -> Trial:
    where = DOING.get(trial.phase, trial.phase)
    outcome = trial.outcome if trial.outcome == "passed" else f"{trial.outcome} while {where}"
    changed = [
        f"{one.name}={'default' if one.to is None else value(one.to)}"
        for one in (plan.changes if plan else [])
    ]
    return Trial(
        one_line(trial.name),
        one_line(", ".join(changed)) or "as in the log",
        outcome,
        one_line(trial.because),
        _figures(trial.measured, trial.predicted),
    )


def _figures(measured: Figures, predicted: Figures) -> str:
    """Measured free memory and KV tokens, with what was predicted."""
    parts = []
    if measured.free_gib_at_capture is not None:
        foreseen = predicted.free_gib_at_capture
        said = f" (predicted {foreseen:.2f})" if foreseen is not None else ""
        parts.append(f"{measured.free_gib_at_capture:.2f} GiB free at capture{said}")
    if measured.kv_tokens is not None:
        tokens = predicted.kv_tokens
        said = f" (predicted {tokens:,})" if tokens is not None else ""
        parts.append(f"{count(measured.kv_tokens, 'KV token')}{said}")
    return ", ".join(parts)
