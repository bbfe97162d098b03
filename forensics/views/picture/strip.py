"""A picture as rows of text cells: one row a lane, or one for all lanes that look alike.

A cell shows free memory as a block of that height, `│` where a phase begins and a sign where
something was found, so that it reads without colour; the views add colour and words.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from forensics.views.picture.alike import alike
from forensics.views.picture.model import FreePoint, Lane, Mark, Picture
from forensics.views.picture.scale import Scale

PHASE_STYLE = {
    "init": "white",
    "load": "blue",
    "kv_pool": "magenta",
    "graph_capture": "cyan",
    "warmup": "yellow",
    "serving": "green",
    "shutdown": "white",
}
"""Colours of phases, of the sixteen; the phase's name always stands with them."""

SIGN_STYLE = {"cause": "bold red", "echo": "red", "known": "bold yellow", "finding": "yellow"}
"""Colours of signs."""

SIGNS = {
    "cause": ("X", "the failure"),
    "echo": ("x", "failed in consequence"),
    "known": ("!", "could be known"),
    "finding": ("o", "found"),
}
"""Signs of marks, the most important first, and what they say."""


@dataclass(frozen=True, slots=True)
class Charset:
    """The characters of cells."""

    levels: str
    """Free memory from next to none to all."""
    unknown: str
    begin: str


BLOCKS = Charset("▁▂▃▄▅▆▇█", "·", "│")
ASCII = Charset("_,:;=+*#", "-", "|")


@dataclass(frozen=True, slots=True)
class Cell:
    """One column of a lane."""

    char: str
    phase: str | None
    """None where the rank has no phase: before it began."""
    mark: Mark | None = None
    """The most important mark in this column."""


@dataclass(frozen=True, slots=True)
class Row:
    """The cells of one lane, or of several that look alike."""

    lanes: tuple[Lane, ...]
    cells: tuple[Cell, ...]

    @property
    def text(self) -> str:
        """The characters alone."""
        return "".join(cell.char for cell in self.cells)


def sign_of(mark: Mark) -> str:
    """Which of `SIGNS` a mark has."""
    if mark.kind == "crash":
        return "echo" if mark.role == "consequence" else "cause"
    return "known" if mark.kind == "known" else "finding"


def rows_of(
    picture: Picture, scale: Scale, *, fold: bool = True, charset: Charset = BLOCKS
) -> list[Row]:
    """The rows of the lanes; with `fold`, lanes that look alike share the row of the first."""
    groups = alike(picture) if fold else [(lane,) for lane in picture.lanes]
    return [Row(group, lane_cells(group[0], scale, charset)) for group in groups]


def lane_cells(lane: Lane, scale: Scale, charset: Charset = BLOCKS) -> tuple[Cell, ...]:
    """The cells of one lane."""
    begins = {scale.column(b.begin) for b in lane.blocks[1:] if scale.shows(b.begin)}
    marks = _placed(lane.marks, scale)
    starts = [block.begin for block in lane.blocks]
    curve = _Curve(lane)
    cells = []
    for column in range(scale.width):
        left, right = scale.at(column), scale.at(column + 1)
        index = bisect_right(starts, max(left, left + (right - left) / 2)) - 1
        phase = lane.blocks[index].phase if index >= 0 else None
        if column in marks:
            char = SIGNS[sign_of(marks[column])][0]
        elif column in begins:
            char = charset.begin
        elif index < 0:
            char = " "
        else:
            char = _level(curve.free(left, right), lane.total_gib, charset)
        cells.append(Cell(char, phase, marks.get(column)))
    return tuple(cells)


def mark_cells(marks: Sequence[Mark], scale: Scale) -> tuple[Cell, ...]:
    """A row of marks that belong to no lane."""
    placed = _placed(marks, scale)
    return tuple(
        Cell(SIGNS[sign_of(mark)][0] if (mark := placed.get(column)) else " ", None, mark)
        for column in range(scale.width)
    )


def _placed(marks: Iterable[Mark], scale: Scale) -> dict[int, Mark]:
    """The mark to show in each column: the gravest sign of the gravest finding."""
    order = list(SIGNS)
    grave = ("critical", "warning", "info")
    placed: dict[int, Mark] = {}
    for mark in marks:
        if not scale.shows(mark.at):
            continue
        column = scale.column(mark.at)
        there = placed.get(column)
        rank = (order.index(sign_of(mark)), grave.index(mark.severity))
        if there is None or rank < (order.index(sign_of(there)), grave.index(there.severity)):
            placed[column] = mark
    return placed


def _level(free_gib: float | None, total_gib: float | None, charset: Charset) -> str:
    if free_gib is None or not total_gib:
        return charset.unknown
    steps = len(charset.levels)
    return charset.levels[min(max(int(free_gib / total_gib * steps), 0), steps - 1)]


class _Curve:
    """Free memory of a lane over time, straight between what the log says."""

    def __init__(self, lane: Lane) -> None:
        self._points: tuple[FreePoint, ...] = lane.free
        self._times = [point.at for point in lane.free]

    def free(self, begin: datetime, end: datetime) -> float | None:
        """GiB free in a cell; None before anything is known."""
        after = bisect_right(self._times, end)
        if not after:
            return None
        last = self._points[after - 1]
        if last.at >= begin or after == len(self._points):
            return last.free_gib
        coming = self._points[after]
        share = (end - last.at) / (coming.at - last.at)
        return last.free_gib + (coming.free_gib - last.free_gib) * share
