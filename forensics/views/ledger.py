"""The memory ledger as views show it: the last figures of each rank, alike ranks as one."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from forensics.diagnosis import RunReport
from forensics.findings import MemoryRow, Place
from forensics.views.words import DOING

ALIKE_GIB = 0.3
"""Ranks whose figures differ by no more than this are shown as one."""

SHOWN_GIB = 0.05
"""What is smaller is not shown, and a difference between ranks no larger is not told."""

_ROUNDING_GIB = 1.0
"""Sums that exceed what there is by more than rounding and a CUDA context hold parts twice."""

PARTS = (
    ("weights", "weights_gib"),
    ("KV pool", "kv_pool_gib"),
    ("graphs", "graphs_gib"),
    ("other", "other_gib"),
    ("free", "free_gib"),
)
"""Name and field of each part, in the order in which a launch takes them."""

UNATTRIBUTED = "unattributed"


@dataclass(slots=True)
class Group:
    """Ranks whose figures are alike."""

    row: MemoryRow
    tags: list[str]
    spread_gib: float = 0.0
    """The largest difference between two of them."""
    there_gib: float | None = None
    """What the GPU has: its printed size, else the most that was ever seen free."""

    @property
    def parts(self) -> list[tuple[str, float]]:
        """Name and GiB of each known part; what is not attributed comes last."""
        found = [
            (name, size)
            for name, field_name in PARTS
            if (size := getattr(self.row, field_name)) is not None
            and (size > SHOWN_GIB or name == "free")
        ]
        rest = (self.row.total_gib or 0.0) - sum(max(size, 0.0) for _, size in found)
        return [*found, (UNATTRIBUTED, rest)] if rest > SHOWN_GIB else found

    @property
    def sum_gib(self) -> float:
        """What the parts add up to."""
        return sum(max(size, 0.0) for _, size in self.parts)

    @property
    def overlaps(self) -> bool:
        """The parts add up to more than there is: some memory is in two of them."""
        return self.there_gib is not None and self.sum_gib > self.there_gib + _ROUNDING_GIB


@dataclass(slots=True)
class LastLedger:
    """The last figures before a run's end, and the moment that they are of."""

    groups: list[Group] = field(default_factory=list)
    when: str = ""
    """After "GiB per GPU": `while capturing CUDA graphs`."""
    one_phase: bool = True
    """All figures are of one phase."""


def last_ledger(report: RunReport) -> LastLedger:
    """The last row of each rank up to the failure; empty where the log has no figures."""
    groups = _groups(report)
    phases = list(dict.fromkeys(group.row.phase for group in groups))
    if len(phases) != 1:
        return LastLedger(groups, "as last printed", one_phase=False)
    doing = f"while {DOING.get(phases[0], phases[0])}"
    now = phases[0] == report.run.phase
    return LastLedger(groups, doing if now else f"as last printed, {doing}")


def _groups(report: RunReport) -> list[Group]:
    rows = [row for row in report.run.memory if _has_figures(row)]
    last = {(row.source, row.rank): row for row in _of_the_end(report, rows)}
    order = {tag: number for number, tag in enumerate(report.run.tags)}
    groups: list[Group] = []
    for row in sorted(last.values(), key=lambda row: (row.source, order.get(row.rank, 0))):
        group = next((one for one in groups if _spread(one.row, row) <= ALIKE_GIB), None)
        if group:
            group.tags.append(row.rank)
            group.spread_gib = max(group.spread_gib, _spread(group.row, row))
        else:
            groups.append(Group(row, [row.rank], there_gib=_there(row, rows)))
    return groups


def _of_the_end(report: RunReport, rows: list[MemoryRow]) -> list[MemoryRow]:
    """The rows that may be shown: of a failed run those of its phase, or before its cause."""
    phase = report.run.phase
    of_phase = [row for row in rows if row.phase == phase]
    if report.run.outcome != "failed" or not of_phase:
        return rows
    if cause := report.root_cause:
        return [row for row in rows if row.phase == phase or _precedes(row, cause.first)]
    return of_phase


def _there(row: MemoryRow, rows: list[MemoryRow]) -> float | None:
    """The size of a rank's GPU, or what was free on it at most."""
    if row.total_gib is not None:
        return row.total_gib
    free = [
        other.free_gib
        for other in rows
        if (other.source, other.rank) == (row.source, row.rank) and other.free_gib is not None
    ]
    return max(free) if len(free) > 1 else None


def _precedes(row: MemoryRow, place: Place) -> bool:
    return row.source == place.source and (row.line or 0) < place.line


def _has_figures(row: MemoryRow) -> bool:
    return any(getattr(row, field_name) is not None for _, field_name in PARTS)


def _spread(one: MemoryRow, two: MemoryRow) -> float:
    """The largest difference of two rows, GiB; infinite where they cannot be compared."""
    if (one.phase, one.source) != (two.phase, two.source):
        return math.inf
    largest = 0.0
    for name in ("total_gib", *(field_name for _, field_name in PARTS)):
        first, second = getattr(one, name), getattr(two, name)
        if (first is None) != (second is None):
            return math.inf
        if first is not None:
            largest = max(largest, abs(first - second))
    return largest
