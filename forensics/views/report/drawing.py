"""Lanes and memory as shapes with places, for the templates to draw as SVG.

Nothing here is markup: texts are plain and the templates escape them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from forensics.diagnosis import RunReport
from forensics.findings import Finding
from forensics.incident import Incident
from forensics.views.clean import one_line
from forensics.views.ledger import Group, last_ledger
from forensics.views.picture import Lane, Mark, Picture, picture
from forensics.views.picture.alike import alike
from forensics.views.picture.scale import Scale, scale_of
from forensics.views.picture.strip import SIGNS, sign_of
from forensics.views.words import PHASE, Places, duration, fold_ranks, sentence

WIDTH = 960
LABEL = 130
COLUMN = 8
"""Pixels of one column of the picture's scale, which gives short phases some columns."""

LANE = 44
GAP = 10
HEAD = 40
MOST_LANES = 24
_ROW = 24
_LETTER = 7.0
_SHORT = {"CUDA graphs": "graphs", "KV pool": "KV"}
_BAR = 26
_LEAST_LABEL = 46
"""Pixels that a figure needs inside its part of a bar."""


@dataclass(slots=True)
class Box:
    """A rectangle with what it means."""

    x: float
    width: float
    name: str
    title: str
    label: str = ""


@dataclass(slots=True)
class Sign:
    """A mark: where, which kind, what it says."""

    x: float
    kind: str
    title: str


@dataclass(slots=True)
class LaneShape:
    """One lane: a rank, or all that look alike."""

    y: float
    label: str
    boxes: list[Box]
    free: str
    """Path of the area under free memory; empty where it is not known."""
    signs: list[Sign]
    title: str


@dataclass(slots=True)
class Lanes:
    """The picture of a run."""

    height: float
    heads: list[tuple[float, str, str]]
    """Place, phase and time of each begin."""
    lanes: list[LaneShape]
    crash: float | None
    common: list[Sign]
    """Marks of the launch as a whole, below the lanes."""
    legend: list[tuple[str, str]]
    notes: list[str]


@dataclass(slots=True)
class MemoryBar:
    """Parts of one GPU's memory."""

    y: float
    label: str
    boxes: list[Box]
    total: str


@dataclass(slots=True)
class MemoryBars:
    """The ledger as bars."""

    height: float
    bars: list[MemoryBar] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


def lanes_of(report: RunReport, incident: Incident, places: Places) -> Lanes | None:
    """The picture of a run as shapes; None where it did not get beyond one phase."""
    drawn = picture(report, incident)
    if len(drawn.phases) < 2:
        return None
    scale = scale_of(drawn, (WIDTH - LABEL) // COLUMN)
    titles = {finding.id: finding for finding in report.findings}
    groups = alike(drawn)
    shown = groups[:MOST_LANES]
    shapes = [
        _lane(drawn, group, scale, titles, places, HEAD + number * (LANE + GAP))
        for number, group in enumerate(shown)
    ]
    common = [_sign(mark, scale, titles) for mark in drawn.marks if _worth(mark)]
    kinds = {sign.kind for shape in shapes for sign in shape.signs} | {s.kind for s in common}
    notes = [] if scale.even else ["Short phases are drawn wider than they were."]
    if drawn.axis == "line":
        notes.append("The axis is of lines, for want of times.")
    if len(groups) > len(shown):
        notes.append(f"{len(groups) - len(shown)} more sets of ranks are not drawn.")
    return Lanes(
        HEAD + len(shapes) * (LANE + GAP) + (_ROW if common else 0),
        _heads(drawn, scale),
        shapes,
        _x(scale, drawn.crash_at) if drawn.crash_at else None,
        sorted(common, key=lambda sign: sign.x),
        [(kind, words) for kind, (_, words) in SIGNS.items() if kind in kinds],
        notes,
    )


def _worth(mark: Mark) -> bool:
    """Whether a mark of the whole launch is shown: neither notes nor echoes."""
    return mark.kind == "known" or (mark.severity != "info" and mark.role != "consequence")


def _x(scale: Scale, at: datetime) -> float:
    """The pixel of a place on the axis."""
    at = min(max(at, scale.begin), scale.end)
    part = min(max(bisect_right(scale.times, at) - 1, 0), len(scale.times) - 2)
    span = (scale.times[part + 1] - scale.times[part]).total_seconds()
    share = (at - scale.times[part]).total_seconds() / span if span else 0.0
    columns = scale.edges[part] + share * (scale.edges[part + 1] - scale.edges[part])
    return round(LABEL + columns * COLUMN, 1)


def _heads(drawn: Picture, scale: Scale) -> list[tuple[float, str, str]]:
    places = [_x(scale, block.begin) for block in drawn.phases]
    heads = []
    for block, x, end in zip(drawn.phases, places, [*places[1:], float(WIDTH)], strict=True):
        name = PHASE[block.phase]
        name = name if len(name) * _LETTER < end - x else _SHORT.get(name, name)
        heads.append((x, name, drawn.label(block.begin)))
    return heads


def _lane(
    drawn: Picture,
    group: Sequence[Lane],
    scale: Scale,
    titles: dict[str, Finding],
    places: Places,
    y: float,
) -> LaneShape:
    lane = group[0]
    tags = [one_line(one.rank) for one in group if one.rank is not None]
    label = fold_ranks(tags) if tags else "GPU"
    source = f", {places.name(places.paths[lane.source])}" if not places.single else ""
    boxes = []
    for block in lane.blocks:
        x, end = _x(scale, block.begin), _x(scale, block.end)
        took = duration((block.end - block.begin).total_seconds())
        title = f"{PHASE[block.phase]}, from {drawn.label(block.begin)}, {took}"
        boxes.append(Box(x, round(max(end - x, 1.0), 1), block.phase, title))
    signs = [_sign(mark, scale, titles) for mark in lane.marks]
    return LaneShape(
        y, label if len(label) <= 18 else f"{label[:16]}...", boxes, _area(lane, scale, y),
        sorted(signs, key=lambda sign: sign.x), f"{label}{source}",
    )  # fmt: skip


def _sign(mark: Mark, scale: Scale, titles: dict[str, Finding]) -> Sign:
    kind = sign_of(mark)
    finding = titles.get(mark.finding_id or "")
    said = sentence(one_line(finding.title)) if finding else SIGNS[kind][1]
    return Sign(_x(scale, mark.at), kind, f"{said} (line {mark.line})")


def _area(lane: Lane, scale: Scale, y: float) -> str:
    """Free memory as steps: it holds until the next line that tells it."""
    if not lane.free or not lane.total_gib or not lane.blocks:
        return ""
    bottom = y + LANE

    def height(free: float) -> float:
        return round(bottom - LANE * min(max(free / (lane.total_gib or 1.0), 0.0), 1.0), 1)

    points = [(_x(scale, point.at), height(point.free_gib)) for point in lane.free]
    end = _x(scale, lane.blocks[-1].end)
    path = f"M{points[0][0]} {bottom}V{points[0][1]}"
    for x, level in points[1:]:
        path += f"H{x}V{level}"
    return f"{path}H{max(end, points[-1][0])}V{bottom}Z"


def memory_bars(report: RunReport) -> MemoryBars | None:
    """The ledger as bars; None where nothing can be drawn to scale."""
    groups = [
        group for group in last_ledger(report).groups if len(group.parts) > 1 and not group.overlaps
    ][:MOST_LANES]
    if not groups:
        return None
    most = max(group.sum_gib for group in groups)
    bars = [_bar(group, number * (_BAR + GAP), most) for number, group in enumerate(groups)]
    names = list(dict.fromkeys(box.name for bar in bars for box in bar.boxes))
    return MemoryBars(len(bars) * (_BAR + GAP), bars, names)


def _bar(group: Group, y: float, most_gib: float) -> MemoryBar:
    room = WIDTH - LABEL - 70
    boxes, x = [], float(LABEL)
    for name, size in group.parts:
        width = round(max(size, 0.0) / most_gib * room, 1)
        label = f"{size:.2f}" if width >= _LEAST_LABEL else ""
        boxes.append(Box(round(x, 1), width, name, f"{name} {size:.2f} GiB", label))
        x += width
    tags = one_line(fold_ranks(group.tags)) or "all"
    total = f"{group.sum_gib:.2f}" if group.row.total_gib else f"{group.sum_gib:.2f} known"
    return MemoryBar(y, tags if len(tags) <= 18 else f"{tags[:16]}...", boxes, total)
