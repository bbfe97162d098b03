"""`report.md` of a run folder: the verdict, what it rests on, and the plan, for people.

The same reproduction gives the same text. Nothing of a log is read as markup.
"""

from __future__ import annotations

from forensics.reproduce.model import Reproduction, ReproductionPlan, TrialPlan
from forensics.views.clean import one_line
from forensics.views.report.markdown import NO_BREAK, cell, code, fence, prose, table, wrapped
from forensics.views.reproduce.words import (
    VERDICT,
    changes_of,
    command_of,
    failure_words,
    of_plan,
    outcome_words,
    pairs,
    proven,
)
from forensics.views.words import PHASE, duration, sentence

_WIDTH = 100


def render_report(reproduction: Reproduction) -> str:
    """The report as Markdown, with a newline at its end."""
    parts = [
        *_head(reproduction),
        *_trials(reproduction),
        *_figures(reproduction),
        *_proven(reproduction),
        *_plan(reproduction.plan),
        *_here(reproduction.plan),
        _line(f"Written by {reproduction.tool}, {reproduction.created_at:%Y-%m-%d %H:%M %Z}."),
    ]
    return "\n\n".join(part for part in parts if part).replace(NO_BREAK, " ") + "\n"


def _line(text: str) -> str:
    return wrapped(prose(one_line(text)))


def _items(texts: list[str]) -> str:
    return "\n".join(wrapped(prose(one_line(text)), hang="  ", lead="- ") for text in texts)


def _head(reproduction: Reproduction) -> list[str]:
    plan, word = reproduction.plan, VERDICT[reproduction.verdict][0].capitalize()
    said = f"**{word}.** {prose(one_line(sentence(reproduction.because).rstrip('.') + '.'))}"
    what = f"Reproduced: {of_plan(plan)}"
    if plan.failure:
        what += f", {failure_words(plan.failure)}: {plan.failure.title}"
    parts = ["# Reproduction", wrapped(said), _line(f"{what}.")]
    if change := changes_of(plan):
        parts.append(wrapped(f"Change: {code(one_line(change))}"))
    if reproduction.best.get("value") is not None:
        best = reproduction.best
        bad = best.get("known_bad")
        fails = "" if bad is None else f"; {bad} does not hold"
        parts.append(_line(f"Best value of {best.get('name')}: {best['value']}{fails}."))
    return parts


def _trials(reproduction: Reproduction) -> list[str]:
    rows = [
        [
            cell(result.name, as_code=True),
            cell(outcome_words(result)),
            cell(PHASE.get(result.phase, result.phase)),
            cell(duration((result.ended_at - result.started_at).total_seconds())),
            cell(one_line(result.because)),
            cell(result.log, as_code=True),
        ]
        for result in reproduction.trials
    ]
    header = ["trial", "outcome", "phase", "took", "because", "log"]
    return ["## Trials", table(header, rows)] if rows else []


def _figures(reproduction: Reproduction) -> list[str]:
    rows = [
        [cell(result.name, as_code=True), *map(cell, row)]
        for result, found in pairs(reproduction.trials)
        for row in found
    ]
    header = ["trial", "figure", "predicted", "measured", "off by"]
    return ["## Predicted against measured", table(header, rows, numbers=3)] if rows else []


def _proven(reproduction: Reproduction) -> list[str]:
    trial = proven(reproduction)
    return ["## Proven launch", _command(trial)] if trial is not None else []


def _plan(plan: ReproductionPlan) -> list[str]:
    parts = ["## Plan", _items(plan.judged)]
    if plan.diff:
        parts += ["From control to fix:", fence([_diff_line(line) for line in plan.diff], "diff")]
    for trial in plan.trials:
        if trial.role == "control":
            parts += ["The control:", _command(trial)]
    notes = [*plan.limits, *plan.notes]
    return [*parts, "## Notes", _items(notes)] if notes else parts


def _diff_line(line: str) -> str:
    return f"{line[:1]} {one_line(line[1:])}"


def _here(plan: ReproductionPlan) -> list[str]:
    machine = plan.machine
    said = [
        f"GPU {gpu.index}: {gpu.name}, {gpu.free_gib:.2f} of {gpu.total_gib:.2f} GiB free"
        for gpu in machine.gpus
    ]
    said += [f"{name} {version}" for name, version in machine.versions.items()]
    said += machine.notes
    if plan.transport:
        said.append(f"Run through {' '.join(plan.transport)}")
    parts = ["## Machine", _items(said)] if said else []
    rows = [
        [
            cell(difference.weight),
            cell(one_line(difference.what)),
            cell(one_line(difference.in_log or "")),
            cell(one_line(difference.here or "")),
            cell(one_line(difference.because)),
        ]
        for difference in plan.differences
    ]
    if rows:
        header = ["weight", "what", "in the log", "here", "because"]
        parts += ["## Differences", table(header, rows)]
    if plan.consents:
        told = [f"{consent.what}: {consent.because}" for consent in plan.consents]
        parts += ["## Foreign code that was allowed", _items(told)]
    return parts


def _command(trial: TrialPlan) -> str:
    return fence(command_of(trial, _WIDTH), "sh")
