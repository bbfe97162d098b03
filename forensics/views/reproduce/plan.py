"""The plan in the terminal: what will run, the change, what is expected, and what differs here."""

from __future__ import annotations

from typing import Literal

from rich.console import Console
from rich.text import Text

from forensics.launch import DiffLine
from forensics.reproduce.model import ReproductionPlan, TrialPlan
from forensics.views.changes import diff_lines
from forensics.views.clean import one_line
from forensics.views.reproduce.words import (
    WEIGHT_STYLE,
    changes_of,
    command_of,
    expected,
    failure_words,
    holds_secrets,
    is_printable,
    measures,
    of_plan,
)
from forensics.views.terminal.page import Page
from forensics.views.words import duration, sentence

MAX_WIDTH = 100
_SIGN_STYLE = {"+": "green", "-": "red", " ": "dim", "...": "dim"}


def show_plan(plan: ReproductionPlan, console: Console) -> None:
    """Prints a plan."""
    page = Page(console, min(console.width, MAX_WIDTH))
    _draw_head(page, plan)
    _draw_launches(page, plan)
    _draw_change(page, plan)
    _draw_expected(page, plan)
    _draw_here(page, plan)
    _draw_consents(page, plan)
    _draw_commands(page, plan)
    _draw_notes(page, plan)
    page.show()


def _draw_head(page: Page, plan: ReproductionPlan) -> None:
    head = Text("PLAN", style="bold").append(f" for {one_line(of_plan(plan))}", style="not bold")
    if plan.failure:
        said = f": {failure_words(plan.failure)}. {sentence(plan.failure.title)}."
        head.append(one_line(said), style="not bold")
    page.paragraph(head, indent=0)
    if change := changes_of(plan):
        told = Text("Change: ", style="bold green").append(one_line(change), style="not green")
        page.paragraph(told, indent=0)


def _draw_launches(page: Page, plan: ReproductionPlan) -> None:
    note = "in this order; each ends at the line that decides it"
    page.heading("Launches", note if len(plan.trials) > 1 else "it ends at the line that decides")
    column = max((len(trial.name) for trial in plan.trials), default=0)
    for trial in plan.trials:
        limit = f"; at most {duration(trial.timeout_s)}"
        page.item(trial.name.ljust(column), expected(trial) + limit, label_style="bold")
    if plan.search is not None:
        page.item("search".ljust(column), f"of {plan.search.name}", label_style="bold")


def _draw_change(page: Page, plan: ReproductionPlan) -> None:
    if not plan.diff:
        return
    page.heading("Difference", "from the control to the fix")
    lines = [DiffLine(_sign(line), line[1:]) for line in plan.diff]
    for sign, text in diff_lines(lines):
        style = _SIGN_STYLE[sign]
        if sign == "...":
            page.paragraph(f"... {text}", indent=5, style=style)
        else:
            page.item(sign, text, style=style, label_style=style)


def _draw_expected(page: Page, plan: ReproductionPlan) -> None:
    page.heading("Judged", "fixed before anything runs")
    for line in plan.judged:
        page.item("-", line)
    roles = ("control", "fix")
    for trial in (trial for trial in plan.trials if trial.role in roles):
        rows = measures(trial.predicted, type(trial.predicted)())
        if rows:
            told = ", ".join(f"{number} {name}" for name, number, _, _ in rows)
            page.item(f"{trial.name} predicted", told)


def _draw_here(page: Page, plan: ReproductionPlan) -> None:
    machine = plan.machine
    page.heading("Here", one_line(" ".join(plan.transport)) if plan.transport else "")
    for gpu in machine.gpus:
        said = f"{gpu.name}, {gpu.free_gib:.2f} of {gpu.total_gib:.2f} GiB free"
        page.item(f"GPU {gpu.index}", said)
    if machine.host_total_gib is not None:
        said = f"{machine.host_free_gib or 0:.1f} of {machine.host_total_gib:.1f} GiB free"
        page.item("host ", said)
    if machine.python:
        versions = ", ".join(f"{name} {text}" for name, text in machine.versions.items())
        page.item("runs ", f"{machine.python}{f' with {versions}' if versions else ''}")
    for note in machine.notes:
        page.item("note ", note, label_style="dim", style="dim")
    if not plan.differences:
        said = "nothing differs from the log, as far as both are known"
        page.item("ok   ", said if plan.logs else "nothing here stands in the launch's way")
        return
    note = "from where the log was written" if plan.logs else "from what the launch asks for"
    page.heading("Differs", f"{note}, the gravest first")
    source = "in the log" if plan.logs else "asked for"
    column = max(len(difference.weight) for difference in plan.differences)
    for difference in plan.differences:
        there = f"{difference.in_log} {source}, " if difference.in_log else ""
        here = f"{difference.here} here" if difference.here else ""
        text = f"{difference.what}: {there}{here}. {sentence(difference.because)}."
        style = WEIGHT_STYLE[difference.weight]
        page.item(difference.weight.ljust(column), text, label_style=style)


def _draw_consents(page: Page, plan: ReproductionPlan) -> None:
    if not plan.consents:
        return
    page.heading("Foreign code", "runs only with --allow-foreign-code, or a yes of its own")
    for consent in plan.consents:
        page.item(consent.what, consent.because, label_style="bold yellow")


def _draw_commands(page: Page, plan: ReproductionPlan) -> None:
    page.heading("Commands")
    seen: list[TrialPlan] = []
    for trial in plan.trials:
        alike = next((other for other in seen if _alike(other, trial)), None)
        if alike is not None:
            page.paragraph(f"{trial.name}: as {alike.name}")
            continue
        seen.append(trial)
        page.paragraph(trial.name, style="bold")
        for line in command_of(trial, page.width - 4):
            page.raw(Text(f"    {line}"))
        if holds_secrets(trial):
            said = "Secrets are not shown; --script asks for them in variables."
            page.paragraph(said, indent=4, style="dim")
        if not is_printable(trial):
            said = "Not all of it can be shown; it runs as it is, and --script writes it so."
            page.paragraph(said, indent=4, style="dim")


def _draw_notes(page: Page, plan: ReproductionPlan) -> None:
    if plan.notes or plan.limits:
        page.heading("Notes")
    for note in [*plan.limits, *plan.notes]:
        page.item("-", note)


def _alike(one: TrialPlan, other: TrialPlan) -> bool:
    return (one.command, one.env, one.unset_env) == (other.command, other.env, other.unset_env)


def _sign(line: str) -> Literal["+", "-", " "]:
    match line[:1]:
        case "+" | "-" as sign:
            return sign
        case _:
            return " "
