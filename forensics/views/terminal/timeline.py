"""The run in brief: its phases with their durations, what was found where, how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from rich.text import Text

from forensics.diagnosis import RunReport
from forensics.events import PHASES
from forensics.findings import Finding
from forensics.timeline.clock import NO_DATE
from forensics.views.clean import one_line, window
from forensics.views.terminal.page import Page
from forensics.views.terminal.words import PHASE, SEVERITY_STYLE, Places, duration

if TYPE_CHECKING:
    from forensics.incident import Run

_MOST_MARKS = 6
_PHASE_WIDTH = 14


@dataclass
class _Entry:
    """A row: when, at which line, and what."""

    time: datetime
    line: int
    text: Text
    note: str = ""


def draw_timeline(page: Page, report: RunReport, places: Places) -> None:
    """The section; nothing where the log has no times."""
    entries = _phases(report.run)
    if not entries:
        return
    entries += _marks(report, places, page.width) + _end(report, places)
    entries.sort(key=lambda entry: entry.time)
    days = {entry.time.date() for entry in entries}
    dated = entries[0].time.year != NO_DATE
    page.heading("Timeline", f"{entries[0].time:%Y-%m-%d}, the log's clock" if dated else "no date")
    form = "%H:%M:%S" if len(days) == 1 else "%m-%d %H:%M:%S"
    for entry in entries:
        row = Text(f"  {entry.time.strftime(form)}  ")
        column = row.cell_len + _PHASE_WIDTH
        row.append_text(entry.text)
        if entry.note:
            row.append(f"{'':{max(column - row.cell_len, 2)}}{entry.note:>13}", style="dim")
        page.raw(row)


def _phases(run: Run) -> list[_Entry]:
    """Where each phase begins, and how long it took."""
    begins: list[tuple[str, datetime, int]] = []
    reached = -1
    last = run.ended_at
    for event in run.events:
        if event.time is None or event.phase not in PHASES:
            continue
        if run.started_at and event.time.year == NO_DATE:
            continue  # before the first line that has a year
        last = max(last, event.time) if last else event.time
        if PHASES.index(event.phase) > reached:
            reached = PHASES.index(event.phase)
            begins.append((event.phase, event.time, event.line))
    if not begins:
        return []
    entries = []
    ends = [time for _, time, _ in begins[1:]] + [last]
    for (phase, time, line), end in zip(begins, ends, strict=True):
        took = duration(max((end - time).total_seconds(), 0)) if end else ""
        entries.append(_Entry(time, line, Text(PHASE[phase]), took))
    return entries


def _marks(report: RunReport, places: Places, width: int) -> list[_Entry]:
    """The lines at which something became knowable, but for the end itself."""
    marks: dict[tuple[str, int], _Entry] = {}
    for finding in report.findings:
        time = finding.known_at.time
        if time is None or finding.severity == "info" or _is_end(finding):
            continue
        key = (finding.known_at.source, finding.known_at.line)
        marks.setdefault(key, _mark(time, finding, places, width))
    return list(marks.values())[:_MOST_MARKS]


def _is_end(finding: Finding) -> bool:
    return finding.role in ("consequence", "root_cause")


def _mark(time: datetime, finding: Finding, places: Places, width: int) -> _Entry:
    place = places.at(finding.known_at)
    style = SEVERITY_STYLE[finding.severity]
    title = window(one_line(finding.title), max(width - 18 - len(place), 20))
    text = Text("  ! ", style=style).append(title, style="not bold default")
    return _Entry(time, finding.known_at.line, text.append(f"  {place}", style="not bold cyan"))


def _end(report: RunReport, places: Places) -> list[_Entry]:
    """The moment of ready, and the first failure."""
    run, entries = report.run, []
    if run.ready and run.ready.time:
        entries.append(_Entry(run.ready.time, run.ready.line, Text("ready", style="bold green")))
    if not run.failures:
        return entries
    failure = min(run.failures, key=lambda failure: (failure.event.time is None, failure.line))
    if failure.event.time:
        rank = f" on {failure.rank}" if failure.rank else ""
        text = Text(f"first failure{rank}", style="bold red")
        place = places.at_line(failure.event.source, failure.line)
        text.append(f"  {place}", style="not bold cyan")
        entries.append(_Entry(failure.event.time, failure.line, text))
    return entries
