"""The text of the serving view: numbers, and what each rank carried over time."""

from __future__ import annotations

from rich.text import Text

from forensics.diagnosis import RunReport
from forensics.tui.charts import VALUES, chart
from forensics.tui.document import Document, Target
from forensics.tui.model import Loaded
from forensics.tui.serving_rows import Load, RankLoad, Series
from forensics.tui.store import LinePlace
from forensics.views.clean import one_line
from forensics.views.words import DOING, Places, count, duration

_NAME_WIDTH = 16
_FIGURE_WIDTH = 27
_STYLES = {
    "token usage": "magenta",
    "running": "cyan",
    "queued": "yellow",
    "decode tokens/s": "green",
    "prefill tokens/s": "blue",
}
_RETRACTED = "R"
_LEAST_CELLS = 12
_TALL_FROM = 110


def columns_for(width: int) -> int:
    """How many values a chart holds in a document of a width."""
    return _cells(width) * VALUES


def _cells(width: int) -> int:
    return max(width - _NAME_WIDTH - _FIGURE_WIDTH - 4, _LEAST_CELLS)


def write_serving(
    document: Document, loaded: Loaded, run_index: int, load: Load | None, rank: str | None = None
) -> None:
    """What a run served; of one rank alone where one is chosen and has served."""
    if load is None:
        document.page.heading("Serving")
        document.page.paragraph(_why_empty(loaded.report(run_index)))
        return
    _write_numbers(document, load)
    chosen = [one for one in load.ranks if one.rank == rank] if rank is not None else []
    places = Places(loaded.paths)
    for one in chosen or load.ranks:
        _write_rank(document, one, places, _cells(document.width))
    if chosen and len(load.ranks) > len(chosen):
        document.page.paragraph("Choose all ranks in the lanes to see the others.", style="dim")


def _why_empty(report: RunReport) -> str:
    run = report.run
    if run.ready is None:
        doing = DOING.get(run.phase, run.phase)
        ended = {"failed": "failed", "hung": "hung", "stopped": "was stopped"}
        how = ended.get(run.outcome, "was, when the log ends,")
        return f"Nothing was served: this launch never became ready; it {how} while {doing}."
    return (
        "It became ready, and no request was run until the log ends: there is neither a "
        "`Decode batch` nor a `Prefill batch` line with a time."
    )


def _write_numbers(document: Document, load: Load) -> None:
    page = document.page
    day = "" if load.begin.date() == load.end.date() else f"{load.end:%Y-%m-%d} "
    span = f"{load.begin:%Y-%m-%d %H:%M:%S} to {day}{load.end:%H:%M:%S}"
    column = duration(load.column_s * VALUES)
    page.heading("Serving", f"{span}, the log's clock; one cell is {column}")
    lines = load.lines
    told = [
        f"{count(lines.get('decode', 0), 'decode line')}",
        f"{count(lines.get('prefill', 0), 'prefill line')} of {load.prefilled:,} new tokens",
        f"{count(lines.get('access', 0), 'request')} in the access log",
        f"{count(load.retracted, 'request')} retracted" if load.retracted else "no retraction",
    ]
    page.paragraph("; ".join(told) + ".")
    if load.without_graph:
        page.paragraph(f"{count(load.without_graph, 'batch line')} ran without CUDA graph.")


def _write_rank(document: Document, load: RankLoad, places: Places, cells: int) -> None:
    page = document.page
    page.blank()
    title = Text(f"  {one_line(load.rank or 'one GPU')}", style="bold")
    page.raw(title.append("" if places.single else f"  {places.name(places.paths[load.source])}"))
    height = 2 if document.width >= _TALL_FROM else 1
    for series in load.series:
        _write_series(document, load.source, series, height)
    if any(load.retracted):
        _write_retractions(document, load, cells)


def _write_series(document: Document, source: int, series: Series, height: int) -> None:
    name = series.quantity.name
    top = max(series.peak, 1.0) if name == "token usage" else series.peak
    lines = chart(series.values, top, height)
    with document.leading_to(Target(LinePlace(source, series.peak_line))):
        for number, line in enumerate(lines, start=1):
            last = number == len(lines)
            row = Text(f"  {name if last else '':{_NAME_WIDTH}} ")
            row.append(line, style=_STYLES[name])
            document.page.raw(row.append(f" {_figures(series)}") if last else row)


def _write_retractions(document: Document, load: RankLoad, cells: int) -> None:
    pairs = zip(load.retracted[::VALUES], load.retracted[1::VALUES], strict=True)
    marks = "".join(_RETRACTED if sum(pair) else " " for pair in pairs)
    row = Text(f"  {'retracted':{_NAME_WIDTH}} ").append(f"{marks:{cells}}", style="bold red")
    row.append(f" {count(sum(load.retracted), 'request')}")
    if load.retract_line is None:
        document.page.raw(row)
        return
    with document.leading_to(Target(LinePlace(load.source, load.retract_line))):
        document.page.raw(row)


def _figures(series: Series) -> str:
    if series.quantity.name == "token usage":
        return f"peak {series.peak:.2f}"
    if series.mean is None:
        return f"peak {series.peak:,.0f}"
    return f"mean {_rate(series.mean)}, peak {_rate(series.peak)}"


def _rate(number: float) -> str:
    return f"{number:,.0f}" if number >= 10 else f"{number:.1f}"
