"""The verdict in the terminal: the fixed word, the trials, predicted against measured."""

from __future__ import annotations

from shlex import quote

from rich.console import Console
from rich.text import Text

from forensics.reproduce.model import Reproduction
from forensics.views.clean import one_line
from forensics.views.reproduce.plan import MAX_WIDTH
from forensics.views.reproduce.words import (
    VERDICT,
    command_of,
    holds_secrets,
    is_cut_short,
    outcome_words,
    pairs,
    proven,
)
from forensics.views.terminal.page import Page
from forensics.views.words import PHASE, duration, sentence, value

_STYLE = {"passed": "green", "failed": "red"}


def show_verdict(
    reproduction: Reproduction, folder: str, console: Console, *, quiet: bool = False
) -> None:
    """Prints what came of a plan; quiet prints the verdict alone."""
    page = Page(console, min(console.width, MAX_WIDTH))
    word, style = VERDICT[reproduction.verdict]
    said = sentence(one_line(reproduction.because)).rstrip(".")
    page.paragraph(Text().append(word, style=style).append(f". {said}."), 0)
    if not quiet:
        _draw_trials(page, reproduction)
        _draw_figures(page, reproduction)
        _draw_best(page, reproduction)
        _draw_command(page, reproduction)
        page.blank()
        page.paragraph(f"Kept in {folder}", indent=0, style="dim")
        if any(map(holds_secrets, reproduction.plan.trials)):
            page.paragraph("Its logs are as SGLang wrote them, and may hold the secrets.", 0)
        if reproduction.verdict == "inconclusive" and is_cut_short(reproduction):
            page.paragraph(f"Go on: forensics reproduce --resume {quote(folder)}", indent=0)
    page.show()


def _draw_trials(page: Page, reproduction: Reproduction) -> None:
    if not reproduction.trials:
        return
    page.heading("Trials")
    column = max(len(result.name) for result in reproduction.trials)
    for result in reproduction.trials:
        took = duration((result.ended_at - result.started_at).total_seconds())
        phase = PHASE.get(result.phase, result.phase)
        line = Text().append(outcome_words(result), style=_STYLE.get(result.outcome, "yellow"))
        line.append(f" at {phase} after {took}. {one_line(sentence(result.because))}.")
        page.item(result.name.ljust(column), line, label_style="bold")
        if not result.cleaned_up:
            page.paragraph("Not all of its processes could be ended.", 4, "bold red")
        if result.gpu_returned is False:
            page.paragraph("It did not give all GPU memory back.", 4, "yellow")


def _draw_figures(page: Page, reproduction: Reproduction) -> None:
    told = pairs(reproduction.trials)
    if not told:
        return
    page.heading("Figures", "predicted, measured, and how far off")
    rows = [(result.name, *row) for result, found in told for row in found]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for name, what, predicted, measured, off in rows:
        cells = (
            name.ljust(widths[0]),
            what.ljust(widths[1]),
            predicted.rjust(widths[2]),
            measured.rjust(widths[3]),
            off.rjust(widths[4]),
        )
        page.raw(Text(f"  {'  '.join(cells)}"))


def _draw_best(page: Page, reproduction: Reproduction) -> None:
    best = reproduction.best
    if best.get("value") is None:
        return
    page.heading("Best value")
    bad = best.get("known_bad")
    fails = "" if bad is None else f"; {value(bad)} does not hold"
    page.paragraph(f"{best.get('name')} = {value(best['value'])}{fails}")


def _draw_command(page: Page, reproduction: Reproduction) -> None:
    trial = proven(reproduction)
    if trial is None:
        return
    page.heading("Proven launch")
    for line in command_of(trial, page.width - 2):
        page.raw(Text(f"  {line}"))
