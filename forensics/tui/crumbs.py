"""The top line: which log, run, rank, phase and finding one looks at; and the line of runs."""

from __future__ import annotations

import os
from collections.abc import Iterable

from rich.text import Text
from textual import events
from textual.message import Message
from textual.widget import Widget

from forensics.diagnosis import RunReport
from forensics.tui.model import Loaded, Selection
from forensics.views.clean import one_line
from forensics.views.verdict import verdict_words
from forensics.views.words import PHASE, Places, duration

TONE_STYLE = {"bad": "bold red", "warn": "bold yellow", "good": "bold green"}


class Crumbs(Widget):
    """One line: the trail, and at its right what is going on."""

    DEFAULT_CSS = "Crumbs { height: 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._trail = Text()
        self._state = Text()

    def trail(self, text: Text) -> None:
        """Set the trail."""
        self._trail = text
        self.refresh()

    def state(self, text: str, style: str = "") -> None:
        """Set what is going on; empty for nothing."""
        self._state = Text(one_line(text), style=style)
        self.refresh()

    def render(self) -> Text:
        """Trail at the left, state at the right; the state is kept whole."""
        width = self.size.width
        state = self._state.copy()
        state.truncate(width)
        room = width - state.cell_len - (1 if state else 0)
        trail = self._trail.copy()
        trail.truncate(max(room, 0), overflow="ellipsis", pad=bool(state))
        line = Text(no_wrap=True, end="").append_text(trail)
        return line.append(" ").append_text(state) if state else line


class RunChosen(Message):
    """The user chose a run."""

    def __init__(self, run_index: int) -> None:
        super().__init__()
        self.run_index = run_index


class RunBar(Widget):
    """The runs of the input, the chosen one reversed; hidden where there is one."""

    DEFAULT_CSS = "RunBar { height: 1; display: none; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._labels: list[tuple[str, str]] = []
        self._chosen = 0

    def show(self, loaded: Loaded, run_index: int) -> None:
        """Draw the runs."""
        self._labels = [_run_label(report) for report in loaded.diagnosis.reports]
        self._chosen = run_index
        self.display = len(self._labels) > 1
        self.refresh()

    def render(self) -> Text:
        """The runs from the first that leaves the chosen one in sight."""
        line = Text(no_wrap=True, end="")
        for number in range(self._first(), len(self._labels)):
            label, style = self._labels[number]
            chosen = number == self._chosen
            line.append(f" {label} ", style=f"{style} reverse" if chosen else style)
            line.append(" ")
        line.truncate(self.size.width, overflow="ellipsis")
        return line

    def _first(self) -> int:
        room, first = self.size.width, self._chosen
        used = self._width(self._chosen)
        while first > 0 and used + self._width(first - 1) <= room:
            first -= 1
            used += self._width(first)
        return first

    def _width(self, number: int) -> int:
        return len(self._labels[number][0]) + 3

    def on_click(self, event: events.Click) -> None:
        """Choose the run under the mouse."""
        x = 0
        for number in range(self._first(), len(self._labels)):
            x += self._width(number)
            if event.x < x:
                self.post_message(RunChosen(number))
                return


def _run_label(report: RunReport) -> tuple[str, str]:
    word, tone, _ = verdict_words(report)
    phase = PHASE.get(report.run.phase, report.run.phase)
    where = f" {phase}" if tone == "bad" else ""
    return f"Run {report.run.number} {word}{where}", TONE_STYLE[tone].removeprefix("bold ")


def names_of(paths: Iterable[str]) -> Text:
    """The logs, before anything is known of them."""
    names = [one_line(os.path.basename(path.rstrip("/")) or path) for path in paths]
    return Text(", ".join(names), style="bold")


def trail_of(loaded: Loaded, selection: Selection) -> Text:
    """Log > run > rank > phase > what is selected."""
    places = Places(loaded.paths)
    report = loaded.report(selection.run)
    word, style = _word_of(loaded, report)
    name = places.name(loaded.paths[selection.source]) if loaded.paths else ""
    line = Text(name, style="bold")
    runs = len(loaded.diagnosis.reports)
    run = f"run {report.run.number} of {runs} " if runs > 1 else ""
    line.append(" > ", style="dim").append(run).append(word, style=style)
    finding = loaded.finding(selection.run, selection.finding_id)
    if selection.rank:
        line.append(" > ", style="dim").append(one_line(selection.rank))
    phase = finding.phase if finding and finding.phase else report.run.phase
    line.append(" > ", style="dim").append(PHASE.get(phase, phase))
    if selection.line is not None:
        line.append(" > ", style="dim").append(f"line {selection.line}")
    if finding:
        line.append(" > ", style="dim").append(one_line(finding.title))
    elif report.run.started_at and report.run.ended_at:
        took = duration((report.run.ended_at - report.run.started_at).total_seconds())
        line.append(f"  {took}", style="dim")
    return line


def _word_of(loaded: Loaded, report: RunReport) -> tuple[str, str]:
    """How the run ended; one that is followed and has not ended is still on its way."""
    word, tone, _ = verdict_words(report)
    if loaded.live and report.run.outcome == "unknown" and tone == "warn":
        return "STARTING", "bold"
    return word, TONE_STYLE[tone]
