"""The small picture: a lane for each rank, or for all that look alike; free memory and marks."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from forensics.views.picture import Mark, Picture
from forensics.views.picture.alike import label_of
from forensics.views.picture.scale import Scale, scale_of
from forensics.views.picture.strip import (
    ASCII,
    BLOCKS,
    PHASE_STYLE,
    SIGN_STYLE,
    SIGNS,
    Cell,
    Row,
    mark_cells,
    rows_of,
    sign_of,
)
from forensics.views.terminal.page import Page
from forensics.views.words import PHASE, Places

_SHORT = {"CUDA graphs": "graphs", "KV pool": "KV"}
_LABEL = 16
_MOST_ROWS = 12
_LEAST_WIDTH = 48


def draw_lanes(page: Page, picture: Picture, places: Places) -> None:
    """The section; nothing for a launch that did not get beyond one phase."""
    if len(picture.phases) < 2 or page.width < _LEAST_WIDTH:
        return
    charset = ASCII if page.console.options.ascii_only else BLOCKS
    scale_width = page.width - _LABEL - 4
    scale = scale_of(picture, scale_width)
    rows = rows_of(picture, scale, charset=charset)
    page.heading("Lanes", _note(picture, scale))
    page.raw(_heads(picture, scale))
    several = len({lane.source for lane in picture.lanes}) > 1
    source = -1
    for row in rows[:_MOST_ROWS]:
        if several and row.lanes[0].source != source:
            source = row.lanes[0].source
            page.paragraph(places.name(places.paths[source]), style="dim")
        page.raw(_row(label_of(row.lanes, _LABEL), row.cells))
    if len(rows) > _MOST_ROWS:
        page.paragraph(f"... {len(rows) - _MOST_ROWS} more", style="dim")
    marks = [mark for mark in picture.marks if _worth(mark)]
    common = mark_cells(marks, scale)
    if any(cell.mark for cell in common):
        page.raw(_row("", common))
    _draw_legend(page, rows[:_MOST_ROWS], common)


def _note(picture: Picture, scale: Scale) -> str:
    """What the height and the width of a lane mean."""
    totals = {lane.total_gib for lane in picture.lanes if lane.total_gib}
    free = any(lane.free for lane in picture.lanes)
    parts = []
    if free and totals:
        parts.append(f"free GPU memory, 0 to {max(totals):.2f} GiB")
    if picture.axis == "line":
        parts.append("by line, for want of times")
    elif not scale.even:
        parts.append("short phases drawn wider than they were")
    return "; ".join(parts)


def _worth(mark: Mark) -> bool:
    """Whether a mark of the whole launch is shown: no notes, and no echoes: they have crosses."""
    return mark.kind == "known" or (mark.severity != "info" and mark.role != "consequence")


def _heads(picture: Picture, scale: Scale) -> Text:
    """The names of the phases, each above where it begins."""
    line = Text(" " * (_LABEL + 4))
    begins = [scale.column(block.begin) for block in picture.phases]
    ends = [*begins[1:], scale.width + 1]
    for block, begin, end in zip(picture.phases, begins, ends, strict=True):
        word = PHASE.get(block.phase, block.phase)
        word = word if len(word) < end - begin else _SHORT.get(word, word)[: end - begin - 1]
        line.append(" " * (begin + _LABEL + 4 - line.cell_len))
        line.append(word, style=PHASE_STYLE.get(block.phase, ""))
    return line


def _row(label: str, cells: Sequence[Cell]) -> Text:
    line = Text(f"  {label:<{_LABEL}}  ")
    for cell in cells:
        style = SIGN_STYLE[sign_of(cell.mark)] if cell.mark else PHASE_STYLE.get(cell.phase or "")
        line.append(cell.char, style=style or "")
    return line


def _draw_legend(page: Page, rows: Sequence[Row], common: Sequence[Cell]) -> None:
    """What the signs say that occur."""
    cells = [*common, *(cell for row in rows for cell in row.cells)]
    there = {sign_of(cell.mark) for cell in cells if cell.mark}
    legend = Text()
    for name, (sign, words) in SIGNS.items():
        if name in there:
            legend.append("   " if legend else "").append(sign, style=SIGN_STYLE[name])
            legend.append(f" {words}", style="dim")
    if legend:
        page.paragraph(legend, indent=_LABEL + 4)
