"""The run in brief: its phases with their durations, what was found where, how it ended."""

from __future__ import annotations

from rich.text import Text

from forensics.diagnosis import RunReport
from forensics.views.clean import one_line, window
from forensics.views.moments import Moment, has_date, moments
from forensics.views.terminal.page import Page
from forensics.views.words import PHASE, SEVERITY_STYLE, Places, duration

_PHASE_WIDTH = 14


def draw_timeline(page: Page, report: RunReport, places: Places) -> None:
    """The section; nothing where the log has no times."""
    rows = moments(report, places.paths)
    if not rows:
        return
    days = {row.time.date() for row in rows}
    when = f"{rows[0].time:%Y-%m-%d}, the log's clock" if has_date(rows) else "no date"
    page.heading("Timeline", when)
    form = "%m-%d %H:%M:%S" if len(days) > 1 and has_date(rows) else "%H:%M:%S"
    for row in rows:
        stamp = f"  {row.time.strftime(form)}  "
        line = Text(stamp)
        column = line.cell_len + _PHASE_WIDTH
        line.append_text(_said(row, places, page.width))
        if row.took_s is not None:
            took = duration(row.took_s)
            wide = max(column - line.cell_len, 2) + 13
            note = f"{took:>{wide}}" if line.cell_len + wide <= page.width else f"  {took}"
            line.append(note, style="dim")
        if line.cell_len <= page.width:
            page.raw(line)
        else:
            page.item(row.time.strftime(form), line[len(stamp) :], indent=2)


def _said(row: Moment, places: Places, width: int) -> Text:
    place = f"  {places.at(row.place)}" if row.place else ""
    match row.kind:
        case "phase":
            return Text(PHASE[row.phase])
        case "ready":
            return Text("ready", style="bold green")
        case "failure":
            rank = f" on {one_line(row.rank)}" if row.rank else ""
            text = Text(f"first failure{rank}", style="bold red")
        case "mark":
            assert row.finding is not None
            text = Text("  ! ", style=SEVERITY_STYLE[row.finding.severity])
            title = window(one_line(row.finding.title), max(width - 16 - len(place), 20))
            text.append(title, style="not bold default")
    return text.append(place, style="not bold cyan")
