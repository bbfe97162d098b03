"""What captures have cost in public logs: quantiles per cell, and the alarm rule on them.

Facts: capture costs, 'Recommended prior' and 'Alarm rules'. NVIDIA cards; GiB a capture set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from forensics.memory.model_class import Weight

Alarm = Literal["critical", "warning", "info", "none", "unusable"]

DRAFT_KINDS = frozenset({"draft", "draft_extend", "draft_verify", "draft_prefill"})
PREFILL_KINDS = frozenset({"prefill", "piecewise"})
SMALL_BATCH = 8
LOWER_HALF_BATCH = 32
"""Heavy models up to this batch size are in the lower half of their cell."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Quantiles of one cell: what a capture set of this kind kept, GiB."""

    name: str
    n: int
    q25_gib: float
    q50_gib: float
    q75_gib: float
    q90_gib: float
    max_gib: float


_LIGHT_SMALL = Cell("decode, light, batch up to 8", 12, 0.05, 0.09, 0.12, 0.45, 1.06)
_LIGHT_LARGE = Cell("decode, light, batch above 8", 9, 0.26, 0.34, 0.60, 0.93, 0.93)
_LIGHT = Cell("decode, light, batch not known", 12, 0.10, 0.38, 0.79, 2.91, 3.97)
_HEAVY = Cell("decode, heavy", 9, 1.66, 6.0, 6.4, 20.0, 20.0)
_HEAVY_SMALL = Cell("decode, heavy, batch up to 32", 9, 0.89, 1.7, 1.93, 6.0, 20.0)
_DRAFT = Cell("draft", 13, 0.21, 0.38, 1.10, 1.86, 2.16)
_PREFILL = Cell("prefill", 13, 1.40, 1.79, 2.32, 3.85, 11.5)

_PER_BATCH_GIB = (0.0023, 0.0026, 0.0028)
"""Measured on an H200: the light cell is too low for large batches, about this much a unit."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A capture still to come."""

    kind: str
    weight: Weight = "light"
    largest: int | None = None
    """Largest batch (tokens for prefill graphs)."""
    wide: bool = False
    """Long context, expert-parallel buffers or DP attention: costs that batch size hides."""


def prior_cell(pending: Pending) -> Cell:
    """The cell that a capture falls into."""
    if pending.kind in DRAFT_KINDS:
        return _DRAFT
    if pending.kind in PREFILL_KINDS:
        return _PREFILL
    largest = pending.largest
    if pending.weight == "heavy":
        small = largest is not None and largest <= LOWER_HALF_BATCH and not pending.wide
        return _HEAVY_SMALL if small else _HEAVY
    if largest is None:
        return _LIGHT
    if largest <= SMALL_BATCH:
        return _LIGHT_SMALL
    low, middle, high = (largest * slope for slope in _PER_BATCH_GIB)
    return replace(
        _LIGHT_LARGE,
        q50_gib=max(_LIGHT_LARGE.q50_gib, low),
        q75_gib=max(_LIGHT_LARGE.q75_gib, middle),
        q90_gib=max(_LIGHT_LARGE.q90_gib, high),
        max_gib=max(_LIGHT_LARGE.max_gib, high),
    )


@dataclass(frozen=True, slots=True)
class Headroom:
    """Free memory at a capture begin, held against what is still to be captured."""

    alarm: Alarm
    expected_gib: float
    """Sum of q50 over the captures still to come."""
    likely_gib: float
    """The same with q75 for the next one."""
    possible_gib: float
    """The same with q90 for the next one."""
    cells: list[Cell]


def headroom(free_gib: float, pending: Sequence[Pending]) -> Headroom:
    """The alarm rule: critical below the sum of q50, warning below q75 of the next, info q90.

    A reading of zero or less is `unusable`: a driver that spills to host memory, no data.
    """
    cells = [prior_cell(p) for p in pending]
    rest = sum(cell.q50_gib for cell in cells[1:])
    first = cells[0] if cells else Cell("nothing to capture", 0, 0.0, 0.0, 0.0, 0.0, 0.0)
    expected, likely, possible = (rest + q for q in (first.q50_gib, first.q75_gib, first.q90_gib))
    alarm = _alarm(free_gib, (expected, likely, possible))
    return Headroom(alarm, expected, likely, possible, cells)


def _alarm(free_gib: float, sums: Sequence[float]) -> Alarm:
    if free_gib <= 0:
        return "unusable"
    names: tuple[Alarm, ...] = ("critical", "warning", "info")
    return next((name for name, s in zip(names, sums, strict=True) if free_gib < s), "none")
