"""The lines of the lanes as text: names of phases, rows, marks, times."""

from __future__ import annotations

from datetime import datetime

from rich.style import Style
from rich.text import Text

from forensics.tui.lane_rows import LABEL, LaneRow
from forensics.views.picture import Lane, Picture
from forensics.views.picture.scale import Scale
from forensics.views.picture.strip import (
    PHASE_STYLE,
    SIGN_STYLE,
    Cell,
    lane_cells,
    mark_cells,
    sign_of,
)
from forensics.views.words import PHASE

_SHORT = {"CUDA graphs": "graphs", "KV pool": "KV"}
_FREE_WIDTH = 7


def label_width(rows: list[LaneRow]) -> int:
    """Columns of the labels: the cursor, the name and what is free."""
    drawn = [row for row in rows if not row.folds or row.folded]
    names = max((len(row.label) + 2 * bool(row.key) for row in drawn), default=0)
    free = _FREE_WIDTH if any(lane.free for row in rows for lane in row.lanes) else 0
    return min(names, LABEL + 2) + free + 3


def heads(picture: Picture, scale: Scale, margin: int) -> Text:
    """The names of the phases, each above where it begins."""
    line = Text(" " * margin)
    shown = [b for b in picture.phases if b.begin <= scale.end and b.end >= scale.begin]
    begins = [scale.column(max(block.begin, scale.begin)) for block in shown]
    ends = [*begins[1:], scale.width + 1]
    for block, begin, end in zip(shown, begins, ends, strict=True):
        word = PHASE.get(block.phase, block.phase)
        word = (
            word if len(word) < end - begin else _SHORT.get(word, word)[: max(end - begin - 1, 0)]
        )
        line.append(" " * (begin + margin - line.cell_len))
        line.append(word, style=f"bold {PHASE_STYLE.get(block.phase, '')}")
    return line


def times(picture: Picture, scale: Scale, margin: int, at: datetime | None) -> Text:
    """Where phases begin, on the axis; the selected place in front of all."""
    width = scale.width
    cells = [" "] * width
    taken = [False] * (width + 1)

    def put(column: int, text: str, *, must: bool = False) -> None:
        begin = min(column, width - len(text))
        span = range(max(begin - 1, 0), min(begin + len(text) + 1, width))
        if begin < 0 or (not must and any(taken[place] for place in span)):
            return
        for place in span:
            taken[place] = True
        cells[begin : begin + len(text)] = text

    if at is not None and scale.shows(at):
        put(scale.column(at), f"^{picture.label(at)}", must=True)
    begins = [b.begin for b in picture.phases if scale.shows(b.begin)]
    for place in [scale.begin, scale.end, *begins]:
        put(scale.column(place), picture.label(place))
    return Text(" " * margin + "".join(cells), style="dim")


def row_line(
    row: LaneRow, scale: Scale, margin: int, *, cursor: bool, chosen: bool, at: datetime | None
) -> Text:
    """One lane with its label; the head of an open group has no cells."""
    sign = "> " if cursor else "  "
    fold = ("+ " if row.folded else "- ") if row.folds else ("  " if row.key else "")
    name = f"{fold}{row.label}"
    lane = row.drawn
    free = _free_at(lane, at)
    if row.folds and not row.folded:
        return Text(f"{sign}{name}", style="bold" if cursor or chosen else "dim")
    room = margin - len(sign) - len(free) - 1
    line = Text(f"{sign}{name[:room]:<{room}}{free} ", style="bold" if cursor or chosen else "")
    if chosen:
        line.stylize("reverse", 2, 2 + len(name[:room]))
    append_cells(line, lane_cells(lane, scale), scale, at)
    return line


def marks_line(picture: Picture, scale: Scale, margin: int, at: datetime | None) -> Text:
    """The marks of the launch as a whole."""
    line = Text(f"  {'launch':<{margin - 2}}", style="dim")
    append_cells(line, mark_cells(picture.marks, scale), scale, at)
    return line


def append_cells(line: Text, cells: tuple[Cell, ...], scale: Scale, at: datetime | None) -> None:
    """Cells in their colours; the selected place is reversed."""
    selected = scale.column(at) if at is not None and scale.shows(at) else -1
    for column, cell in enumerate(cells):
        name = (
            SIGN_STYLE[sign_of(cell.mark)] if cell.mark else PHASE_STYLE.get(cell.phase or "", "")
        )
        style = Style.parse(name) if name else Style()
        line.append(cell.char, style + Style(reverse=True) if column == selected else style)


def _free_at(lane: Lane, at: datetime | None) -> str:
    """What was free at a place, as last said before it; at the end of the run without one."""
    known = [point for point in lane.free if at is None or point.at <= at]
    if not lane.free:
        return ""
    return f"{known[-1].free_gib:>{_FREE_WIDTH}.2f}" if known else " " * _FREE_WIDTH
