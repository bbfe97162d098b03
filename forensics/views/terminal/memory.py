"""The memory ledger as bars, one for each set of ranks that are alike.

The bar is made of plain characters, so that it reads without colour and survives a paste.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from rich.text import Text

from forensics.diagnosis import RunReport
from forensics.findings import MemoryRow, Place
from forensics.views.clean import one_line
from forensics.views.terminal.page import Page
from forensics.views.terminal.words import DOING, PHASE, Places, fold_ranks

ALIKE_GIB = 0.3
"""Ranks whose figures differ by no more than this are drawn as one."""

SHOWN_GIB = 0.05
"""What is smaller is not drawn, and a difference between ranks no larger is not told."""

_PARTS = (
    ("#", "weights", "weights_gib", "blue"),
    ("=", "KV pool", "kv_pool_gib", "magenta"),
    ("+", "graphs", "graphs_gib", "cyan"),
    ("~", "other", "other_gib", "yellow"),
    (".", "free", "free_gib", "green"),
)
_UNKNOWN = "?"
_Part: TypeAlias = tuple[str, str, float, str]
"""Mark, name, size in GiB, style."""
_MOST_GROUPS = 6


@dataclass
class _Group:
    row: MemoryRow
    tags: list[str]
    spread_gib: float = 0.0


def draw_memory(page: Page, report: RunReport, places: Places) -> None:
    """The section on memory; nothing where the log has no figures."""
    groups = _groups(report)
    if not groups:
        return
    phases = list(dict.fromkeys(group.row.phase for group in groups))
    when = f"while {DOING.get(phases[0], phases[0])}" if len(phases) == 1 else "as last printed"
    page.heading("Memory", f"GiB per GPU, {when}")
    for group in groups[:_MOST_GROUPS]:
        named = group.row.source and not places.single
        note = f"  {places.name(group.row.source)}" if named else ""
        if len(phases) > 1:
            note += f"  {PHASE.get(group.row.phase, group.row.phase)}"
        _draw_group(page, group, note)
    if len(groups) > _MOST_GROUPS:
        page.paragraph(f"... {len(groups) - _MOST_GROUPS} more", style="dim")


def _groups(report: RunReport) -> list[_Group]:
    """The last row of each rank up to the failure, folded where alike."""
    rows = [row for row in report.run.memory if _has_figures(row)]
    phase = report.run.phase
    of_phase = [row for row in rows if row.phase == phase]
    if of_phase and (cause := report.root_cause):
        of_phase = [row for row in rows if row.phase == phase or _precedes(row, cause.first)]
    last: dict[tuple[str, str], MemoryRow] = {}
    for row in of_phase if report.run.outcome == "failed" and of_phase else rows:
        last[row.source, row.rank] = row
    order = {tag: number for number, tag in enumerate(report.run.tags)}
    groups: list[_Group] = []
    for row in sorted(last.values(), key=lambda row: (row.source, order.get(row.rank, 0))):
        group = next((one for one in groups if _spread(one.row, row) <= ALIKE_GIB), None)
        if group:
            group.tags.append(row.rank)
            group.spread_gib = max(group.spread_gib, _spread(group.row, row))
        else:
            groups.append(_Group(row, [row.rank]))
    return groups


def _precedes(row: MemoryRow, place: Place) -> bool:
    return row.source == place.source and (row.line or 0) < place.line


def _has_figures(row: MemoryRow) -> bool:
    return any(getattr(row, field) is not None for _, _, field, _ in _PARTS)


def _spread(one: MemoryRow, two: MemoryRow) -> float:
    """The largest difference of two rows, GiB; infinite where they cannot be compared."""
    if (one.phase, one.source) != (two.phase, two.source):
        return math.inf
    largest = 0.0
    for field in ("total_gib", *(field for _, _, field, _ in _PARTS)):
        first, second = getattr(one, field), getattr(two, field)
        if (first is None) != (second is None):
            return math.inf
        if first is not None:
            largest = max(largest, abs(first - second))
    return largest


def _draw_group(page: Page, group: _Group, note: str) -> None:
    row = group.row
    title = Text().append(one_line(fold_ranks(group.tags)) or "all ranks", style="bold")
    if len(group.tags) > 1:
        title.append(f"  {len(group.tags)} ranks alike")
        if group.spread_gib > SHOWN_GIB:
            title.append(f", within {group.spread_gib:.2f}")
    page.paragraph(title.append(note, style="dim"))
    parts = [
        (mark, name, size, style)
        for mark, name, field, style in _PARTS
        if (size := getattr(row, field)) is not None and (size > SHOWN_GIB or field == "free_gib")
    ]
    sizes = [max(size, 0.0) for _, _, size, _ in parts]
    total = max(row.total_gib or 0.0, sum(sizes))
    if total - sum(sizes) > SHOWN_GIB:
        parts.append((_UNKNOWN, "unattributed", total - sum(sizes), "dim"))
    if len(parts) > 1:
        end = f"] {total:.2f}{'' if row.total_gib else ' known'}"
        _draw_bar(page, parts, end)
    _draw_legend(page, parts)


def _draw_bar(page: Page, parts: list[_Part], end: str) -> None:
    bar = Text("  [")
    cells = _cells([size for _, _, size, _ in parts], page.width - 4 - len(end))
    for (mark, _, _, style), number in zip(parts, cells, strict=True):
        bar.append(mark * number, style=style)
    page.raw(bar.append(end))


def _draw_legend(page: Page, parts: list[_Part]) -> None:
    """Marks, names and sizes; a part is never split over two lines."""
    line = Text()
    for mark, name, size, style in parts:
        part = Text("  ").append(mark, style=style).append(f" {name} {size:.2f}")
        if line.cell_len + part.cell_len + 1 > page.width:
            page.raw(line)
            line = Text()
        line.append(" " if line else "").append_text(part)
    page.raw(line)


def _cells(sizes: list[float], width: int) -> list[int]:
    """Cells for each size: proportional, at least one for what is not zero, `width` in all."""
    total = sum(sizes)
    if total <= 0:
        return [0] * len(sizes)
    cells = [max(round(size / total * width), 1) if size > 0 else 0 for size in sizes]
    cells[cells.index(max(cells))] += width - sum(cells)
    return cells
