"""The memory ledger step by step, ranks that are alike as one."""

from __future__ import annotations

from dataclasses import dataclass

from forensics.findings import MemoryRow
from forensics.incident import Run
from forensics.views.ledger import ALIKE_GIB, PARTS


@dataclass(slots=True)
class StepLedger:
    """The figures that ranks printed after each step of their start."""

    source: str
    tags: list[str]
    rows: list[MemoryRow]


def step_of(row: MemoryRow) -> str:
    """What had been done when a row was printed, told by which of its figures are known."""
    if row.weights_gib is None:
        return "before weights"
    if row.kv_pool_gib is None:
        return "weights loaded"
    if row.phase == "graph_capture":
        return "capture begins" if row.graphs_gib is None else "next capture"
    return "pool made" if row.graphs_gib is None else "captured"


def step_ledgers(run: Run) -> list[StepLedger]:
    """A ledger for each set of ranks whose figures are alike at every step, in rank order."""
    last: dict[tuple[str, str], dict[str, MemoryRow]] = {}
    for row in run.memory:
        if any(getattr(row, name) is not None for _, name in PARTS):
            last.setdefault((row.source, row.rank), {})[step_of(row)] = row
    order = {tag: number for number, tag in enumerate(run.tags)}
    groups: list[StepLedger] = []
    for source, rank in sorted(last, key=lambda key: (key[0], order.get(key[1], 0))):
        rows = list(last[source, rank].values())
        home = next((g for g in groups if g.source == source and _alike(g.rows, rows)), None)
        if home:
            home.tags.append(rank)
        else:
            groups.append(StepLedger(source, [rank], rows))
    return groups


def _alike(ones: list[MemoryRow], others: list[MemoryRow]) -> bool:
    if [step_of(row) for row in ones] != [step_of(row) for row in others]:
        return False
    return all(
        _near(getattr(one, name), getattr(other, name))
        for one, other in zip(ones, others, strict=True)
        for _, name in PARTS
    )


def _near(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= ALIKE_GIB
