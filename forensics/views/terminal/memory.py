"""The memory ledger as bars, one for each set of ranks that are alike.

The bar is made of plain characters, so that it reads without colour and survives a paste.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.text import Text

from forensics.diagnosis import RunReport
from forensics.findings import MemoryRow
from forensics.views.clean import one_line
from forensics.views.terminal.page import Page
from forensics.views.terminal.words import DOING, PHASE, Places, fold_ranks

ALIKE_GIB = 0.05
"""Ranks whose figures differ by no more than this are drawn as one."""

_PARTS = (
    ("#", "weights", "weights_gib", "blue"),
    ("=", "KV pool", "kv_pool_gib", "magenta"),
    ("+", "graphs", "graphs_gib", "cyan"),
    ("~", "other", "other_gib", "yellow"),
    (".", "free", "free_gib", "green"),
)
_UNKNOWN = "?"
_MOST_GROUPS = 6


@dataclass
class _Group:
    row: MemoryRow
    tags: list[str]


def draw_memory(page: Page, report: RunReport, places: Places) -> None:
    """The section on memory; nothing where the log has no figures."""
    groups = _groups(report)
    if not groups:
        return
    phases = list(dict.fromkeys(group.row.phase for group in groups))
    when = f"while {DOING.get(phases[0], phases[0])}" if len(phases) == 1 else "as last printed"
    page.heading("Memory", f"GiB per GPU, {when}")
    for group in groups[:_MOST_GROUPS]:
        note = "" if places.single else f"  {places.name(group.row.source)}"
        if len(phases) > 1:
            note += f"  {PHASE.get(group.row.phase, group.row.phase)}"
        _draw_group(page, group, note)
    if len(groups) > _MOST_GROUPS:
        page.paragraph(f"... {len(groups) - _MOST_GROUPS} more", style="dim")


def _groups(report: RunReport) -> list[_Group]:
    """The last row of each rank up to the phase of the run, folded where alike."""
    rows = [row for row in report.run.memory if _has_figures(row)]
    of_phase = [row for row in rows if row.phase == report.run.phase]
    last: dict[tuple[str, str], MemoryRow] = {}
    for row in of_phase if report.run.outcome == "failed" and of_phase else rows:
        last[row.source, row.rank] = row
    order = {tag: number for number, tag in enumerate(report.run.tags)}
    groups: list[_Group] = []
    for row in sorted(last.values(), key=lambda row: (row.source, order.get(row.rank, 0))):
        group = next((group for group in groups if _alike(group.row, row)), None)
        if group:
            group.tags.append(row.rank)
        else:
            groups.append(_Group(row, [row.rank]))
    return groups


def _has_figures(row: MemoryRow) -> bool:
    return any(getattr(row, field) is not None for _, _, field, _ in _PARTS)


def _alike(one: MemoryRow, two: MemoryRow) -> bool:
    fields = ["total_gib", *(field for _, _, field, _ in _PARTS)]
    for field in fields:
        first, second = getattr(one, field), getattr(two, field)
        if (first is None) != (second is None):
            return False
        if first is not None and abs(first - second) > ALIKE_GIB:
            return False
    return one.phase == two.phase and one.source == two.source


def _draw_group(page: Page, group: _Group, note: str) -> None:
    row = group.row
    title = Text("  ").append(one_line(fold_ranks(group.tags)) or "all ranks", style="bold")
    if len(group.tags) > 1:
        title.append(f"  {len(group.tags)} ranks alike")
    page.raw(title.append(note, style="dim"))
    _draw_bar(page, row)


def _draw_bar(page: Page, row: MemoryRow) -> None:
    known = [(mark, name, getattr(row, field), style) for mark, name, field, style in _PARTS]
    sizes = [max(size or 0.0, 0.0) for _, _, size, _ in known]
    total = max(row.total_gib or 0.0, sum(sizes))
    marks = [mark for mark, *_ in known] + [_UNKNOWN]
    styles = [style for *_, style in known] + ["dim"]
    rest = total - sum(sizes)
    end = f"] {total:.2f}{'' if row.total_gib else ' known'}"
    cells = _cells([*sizes, rest if rest > ALIKE_GIB else 0.0], page.width - 4 - len(end))
    bar = Text("  [")
    for mark, style, number in zip(marks, styles, cells, strict=True):
        bar.append(mark * number, style=style)
    page.raw(bar.append(end))
    legend = [(mark, name, size, style) for mark, name, size, style in known if size is not None]
    if rest > ALIKE_GIB:
        legend.append((_UNKNOWN, "unattributed", rest, "dim"))
    _draw_legend(page, legend)


def _draw_legend(page: Page, parts: list[tuple[str, str, float, str]]) -> None:
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
