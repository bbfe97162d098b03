"""The memory ledger as bars, one for each set of ranks that are alike.

The bar is made of plain characters, so that it reads without colour and survives a paste.
"""

from __future__ import annotations

from typing import TypeAlias

from rich.text import Text

from forensics.diagnosis import RunReport
from forensics.views.clean import one_line
from forensics.views.ledger import SHOWN_GIB, Group, last_ledger
from forensics.views.terminal.page import Page
from forensics.views.words import PHASE, Places, fold_ranks

_MARKS = {
    "weights": ("#", "blue"),
    "KV pool": ("=", "magenta"),
    "graphs": ("+", "cyan"),
    "other": ("~", "yellow"),
    "free": (".", "green"),
    "unattributed": ("?", "dim"),
}
_Part: TypeAlias = tuple[str, float]
"""Name, size in GiB."""
_MOST_GROUPS = 6


def draw_memory(page: Page, report: RunReport, places: Places) -> None:
    """The section on memory; nothing where the log has no figures."""
    ledger = last_ledger(report)
    if not ledger.groups:
        return
    page.heading("Memory", f"GiB per GPU, {ledger.when}")
    for group in ledger.groups[:_MOST_GROUPS]:
        named = group.row.source and not places.single
        note = f"  {places.name(group.row.source)}" if named else ""
        if not ledger.one_phase:
            note += f"  {PHASE.get(group.row.phase, group.row.phase)}"
        _draw_group(page, group, note)
    if len(ledger.groups) > _MOST_GROUPS:
        page.paragraph(f"... {len(ledger.groups) - _MOST_GROUPS} more", style="dim")


def _draw_group(page: Page, group: Group, note: str) -> None:
    title = Text().append(one_line(fold_ranks(group.tags)) or "all ranks", style="bold")
    if len(group.tags) > 1:
        title.append(f"  {len(group.tags)} ranks alike")
        if group.spread_gib > SHOWN_GIB:
            title.append(f", within {group.spread_gib:.2f}")
    page.paragraph(title.append(note, style="dim"))
    parts = group.parts
    if len(parts) > 1 and not group.overlaps:
        end = f"] {group.sum_gib:.2f}{'' if group.row.total_gib else ' known'}"
        _draw_bar(page, parts, end)
    _draw_legend(page, parts)
    if group.overlaps:
        page.paragraph(overlap_words(group), style="dim")


def overlap_words(group: Group) -> str:
    """Why there is no bar."""
    return (
        f"These add up to {group.sum_gib:.2f}, more than the {group.there_gib or 0:.2f} there "
        "were: they were printed at different moments, and some memory is in two of them."
    )


def _draw_bar(page: Page, parts: list[_Part], end: str) -> None:
    bar = Text("  [")
    cells = _cells([max(size, 0.0) for _, size in parts], page.width - 4 - len(end))
    for (name, _), number in zip(parts, cells, strict=True):
        mark, style = _MARKS[name]
        bar.append(mark * number, style=style)
    page.raw(bar.append(end))


def _draw_legend(page: Page, parts: list[_Part]) -> None:
    """Marks, names and sizes; a part is never split over two lines."""
    line = Text()
    for name, size in parts:
        mark, style = _MARKS[name]
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
