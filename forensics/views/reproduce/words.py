"""How a reproduction is told: verdicts, roles, weights, figures, commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from forensics.redact import REDACTED, redact
from forensics.reproduce.model import (
    AGAIN,
    Change,
    Failure,
    Figures,
    Goal,
    Reproduction,
    ReproductionPlan,
    TrialPlan,
    TrialResult,
    Weight,
    Word,
)
from forensics.views.changes import shell_lines
from forensics.views.clean import one_line
from forensics.views.words import DOING, amount, count, value

VERDICT: dict[Word, tuple[str, str]] = {
    "confirmed": ("CONFIRMED", "bold green"),
    "fix-holds": ("FIX HOLDS", "bold green"),
    "not-confirmed": ("NOT CONFIRMED", "bold red"),
    "different-failure": ("DIFFERENT FAILURE", "bold red"),
    "not-reproduced": ("NOT REPRODUCED", "bold yellow"),
    "inconclusive": ("INCONCLUSIVE", "bold yellow"),
}
"""The word of a verdict as it is printed, and its style."""

WEIGHT_STYLE: dict[Weight, str] = {"blocking": "bold red", "matters": "yellow", "minor": "dim"}

GOAL: dict[Goal, str] = {
    "capture": "all graphs captured",
    "ready": "ready",
    "health": "ready, and its health check answered",
    "generate": "ready, and a request answered",
    "load": "ready, and a burst of requests answered",
}
"""What a trial must come to."""

Row: TypeAlias = tuple[str, str, str, str]
"""A figure's name, predicted, measured, and how far off."""

MEASURES: tuple[tuple[str, str], ...] = (
    ("free_gib_at_capture", "GiB free at capture"),
    ("kv_tokens", "KV tokens"),
    ("capture_gib", "GiB of graphs"),
    ("free_gib_after_capture", "GiB free after capture"),
)
"""The figures that are held against each other, and their names."""


def change_words(change: Change) -> str:
    """`--mem-fraction-static 0.95 -> 0.88`, `SGLANG_X=0`, `PYTHONPATH unset`."""
    if change.kind == "env":
        return f"{change.name} unset" if change.to is None else f"{change.name}={value(change.to)}"
    flag = f"--{change.name.replace('_', '-')}"
    old = None if change.from_ is None else value(change.from_)
    if change.to is None:
        return f"{flag} {f'{old} ' if old else ''}left out"
    return f"{flag} {f'{old} -> ' if old else ''}{value(change.to)}"


def changes_of(plan: ReproductionPlan) -> str:
    """The change that the fix makes; empty where only a search is asked for."""
    fix = next((trial for trial in plan.trials if trial.changes), None)
    return ", ".join(map(change_words, fix.changes)) if fix else ""


def failure_words(failure: Failure) -> str:
    """`graph-capture-oom while capturing CUDA graphs`."""
    return f"{failure.rule} while {DOING.get(failure.phase, failure.phase)}"


def of_plan(plan: ReproductionPlan) -> str:
    """What is reproduced: the launch of a log, or one that was named."""
    if not plan.logs:
        return "the launch that was named"
    logs = ", ".join(plan.logs)
    return f"launch {plan.run} of {logs}" if plan.run is not None else logs


def expected(trial: TrialPlan) -> str:
    """What must come of a trial: `must fail`, `must be ready`."""
    if trial.expects == "fails":
        return "must fail"
    if trial.goal == "load" and trial.load:
        return f"must come to: ready, and {count(trial.load, 'request')} at once answered"
    return f"must come to: {GOAL[trial.goal]}"


def command_of(trial: TrialPlan, width: int) -> list[str]:
    """A trial's command to copy, its secrets masked."""
    return shell_lines(trial.command, trial.env, trial.unset_env, width)


def holds_secrets(trial: TrialPlan) -> bool:
    """Whether something of the command is masked where it is shown."""
    return REDACTED in " ".join(command_of(trial, 10**6))


def is_printable(trial: TrialPlan) -> bool:
    """Whether every word of the command can be shown as it is, its secrets aside."""
    return all(one_line(word) == redact(word) for word in (*trial.command, *trial.env.values()))


def measures(
    predicted: Figures, measured: Figures
) -> list[tuple[str, str | None, str | None, str | None]]:
    """The figures that are known: name, predicted, measured, and how far off it was."""
    rows = []
    for field, name in MEASURES:
        told, found = getattr(predicted, field), getattr(measured, field)
        if told is None and found is None:
            continue
        off = None if told is None or found is None else f"{found - told:+,.{_digits(found)}f}"
        rows.append((name, _number(told), _number(found), off))
    return rows


def outcome_words(result: TrialResult) -> str:
    """`passed`, `failed: graph-capture-oom`."""
    return f"{result.outcome}: {result.failure.rule}" if result.failure else result.outcome


def is_cut_short(reproduction: Reproduction) -> bool:
    """Whether trials are left that run when it is gone on with."""
    done = [result.name for result in reproduction.trials if result.outcome not in AGAIN]
    return any(trial.name not in done for trial in reproduction.plan.trials)


def proven(reproduction: Reproduction) -> TrialPlan | None:
    """The launch that is proven, with its variables."""
    if reproduction.command is None:
        return None
    roles = ("fix", "confirmation", "search")
    trials = [trial for trial in reproduction.plan.trials if trial.role in roles]
    same = [trial for trial in trials if trial.command == reproduction.command]
    if not trials:
        return None
    return (same or trials)[0].model_copy(update={"command": list(reproduction.command)})


def pairs(results: Sequence[TrialResult]) -> list[tuple[TrialResult, list[Row]]]:
    """Every trial that has figures, with these as words: predicted against measured."""
    found: list[tuple[TrialResult, list[Row]]] = []
    for result in results:
        rows = [
            (name, told or "-", seen or "-", off or "")
            for name, told, seen, off in measures(result.predicted, result.measured)
        ]
        if rows:
            found.append((result, rows))
    return found


def _number(number: float | None) -> str | None:
    return None if number is None else amount(number)


def _digits(number: float) -> int:
    return 0 if isinstance(number, int) else 2
