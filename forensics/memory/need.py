"""How much memory graph capture needs, by the best evidence there is.

Facts: memory model, section 6; capture costs, 'Measured curves' and 'Recommended prior'. All
in GiB, of one rank; where ranks differ take the largest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

from forensics.memory.ledger import Capture
from forensics.memory.prior import PREFILL_KINDS, Pending, prior_cell

Basis = Literal["observed", "projected", "computed", "lower_bound", "prior"]

OBSERVED_MARGIN = 1.05
PREFILL_PEAK_GIB = 1.0
"""A prefill capture's peak above its reported use, where no bar shows the peak."""


@dataclass(frozen=True, slots=True)
class Need:
    """A need with what it rests on; low and high bound it where they are known."""

    gib: float
    basis: Basis
    low_gib: float
    high_gib: float | None = None
    """None: nothing bounds it from above."""
    parts: dict[str, float] = field(default_factory=dict)
    note: str = ""


def observed_need(captures: Sequence[Capture]) -> Need | None:
    """The need of captures that finished: what each kept, or its lowest bar, plus 5 %."""
    finished = [c for c in captures if c.finished]
    if not finished:
        return None
    parts: dict[str, float] = {}
    for capture in finished:
        part = _peak_gib(capture)
        parts[capture.kind] = max(parts.get(capture.kind, 0.0), part)
    total = sum(parts.values())
    note = "mem usage is what stays; the peak while capturing is 0.1-0.2 higher"
    return Need(total * OBSERVED_MARGIN, "observed", total, total + 0.2 * len(parts), parts, note)


def _peak_gib(capture: Capture) -> float:
    used = max(capture.used_gib or 0.0, 0.0)
    if capture.kind in PREFILL_KINDS:
        if capture.bars and capture.begin_gib is not None:
            return max(used, capture.begin_gib - min(free for _, free in capture.bars))
        return used + PREFILL_PEAK_GIB
    return used


def lower_bound(begin_gib: float, free_at_oom_gib: float, requested_gib: float) -> Need:
    """N_low = (C - free at the failure) + request: capture had not finished, so at least that."""
    grown = max(begin_gib - free_at_oom_gib, 0.0)
    total = grown + requested_gib
    return Need(
        total,
        "lower_bound",
        total,
        None,
        {"grown since begin": grown, "refused request": requested_gib},
        "capture had not finished: at least this much",
    )


def projected_need(
    bars: Sequence[tuple[int, float]], begin_gib: float, total_sizes: int
) -> Need | None:
    """Extend the progress bar of an unfinished capture by the slope of its last steps.

    `bars`: (size, free before that size was captured), largest size first. None before the
    second size, when there is no slope. Later sizes are smaller, so this leans high.
    """
    if len(bars) < 2 or total_sizes < len(bars):
        return None
    frees = [free for _, free in bars]
    steps = [max(a - b, 0.0) for a, b in pairwise(frees)]
    recent = steps[-3:]
    slope = sum(recent) / len(recent)
    left = total_sizes - len(steps)
    low = max(begin_gib - min(frees), 0.0)
    return Need(
        low + slope * left,
        "projected",
        low,
        low + max(recent) * left,
        {"used so far": low, "sizes left": slope * left},
        f"{len(steps)} of {total_sizes} sizes captured",
    )


@dataclass(frozen=True, slots=True)
class DecodeShape:
    """What a decode capture's cost is computed from (server arguments and model config)."""

    backend: str
    """Attention backend: triton or flashinfer."""
    largest_batch: int
    sizes: int
    """How many batch sizes are captured."""
    context_len: int
    heads_per_gpu: int
    value_dim: int
    """Head dimension; kv_lora_rank for MLA."""
    vocab: int
    mla: bool = False
    experts: bool = False
    tp_size: int = 1
    kv_splits: int = 8
    sm_count: int = 132
    prefill_graphs_before: bool = False
    splits_by_sm: bool = True
    """MLA raises its splits to the SM count, from 0.5.12."""


SHORT_CONTEXT = 4096
"""MLA takes fewer splits for contexts up to here; how many is not known."""


def decode_need(shape: DecodeShape) -> Need | None:
    """The three-part sum: buffers before the first graph, that graph, all others.

    None for a backend that was not measured, or where the MLA rule is not known. Fits one-GPU
    launches of 0.5.16 within 0.02 GiB; with tensor parallelism 0.35 is added for NCCL.
    """
    buffers = _buffers_gib(shape)
    if buffers is None:
        return None
    logits = shape.largest_batch * shape.vocab * 4 / 2**30
    parts = {"buffers": buffers}
    if not shape.prefill_graphs_before:
        parts["logits buffer"] = logits
    parts["first graph"] = 0.03 + 0.0004 * shape.largest_batch
    parts["other graphs"] = (shape.sizes - 1) * _per_graph_mib(shape) / 1024
    if shape.tp_size > 1:
        parts["collectives"] = 0.35
    kept = sum(parts.values())
    transient = shape.largest_batch * shape.vocab * 2 / 2**30
    peak = kept - parts["other graphs"] + transient
    note = "computed from batch sizes, context, heads and vocabulary"
    return Need(max(kept, peak), "computed", kept - 0.02, max(kept, peak) + 0.1, parts, note)


def _buffers_gib(shape: DecodeShape) -> float | None:
    batch, context = shape.largest_batch, shape.context_len
    if shape.backend == "flashinfer" and not shape.mla:
        return batch * context * 5 / 2**30
    if shape.backend != "triton":
        return None
    splits = shape.kv_splits
    if shape.mla and shape.splits_by_sm:
        if context <= SHORT_CONTEXT:
            return None
        splits = 1 << (shape.sm_count - 1).bit_length()
    partial = batch * shape.heads_per_gpu * splits * (shape.value_dim + 1) * 4
    return (batch * context * 9 + partial) / 2**30


def _per_graph_mib(shape: DecodeShape) -> float:
    if shape.backend == "flashinfer":
        return 11.0
    if shape.tp_size > 1:
        return 9.0
    return 2.6 if shape.experts or shape.mla else 1.3


def prior_need(pending: Sequence[Pending]) -> Need | None:
    """The sum over the captures still to come of what such captures cost elsewhere."""
    if not pending:
        return None
    cells = [prior_cell(p) for p in pending]
    rest = sum(cell.q50_gib for cell in cells[1:])
    parts = {
        f"{p.kind} ({cell.name})": cell.q50_gib for p, cell in zip(pending, cells, strict=True)
    }
    names = "; ".join(f"{cell.name}, n = {cell.n}" for cell in cells)
    return Need(
        sum(cell.q50_gib for cell in cells),
        "prior",
        sum(cell.q25_gib for cell in cells),
        cells[0].q90_gib + rest,
        parts,
        f"captures in public logs: {names}",
    )


def best_need(*needs: Need | None) -> Need | None:
    """The need by the best basis; a lower bound above it raises it and takes its place."""
    order: tuple[Basis, ...] = ("observed", "projected", "computed", "lower_bound", "prior")
    known = sorted((n for n in needs if n is not None), key=lambda n: order.index(n.basis))
    if not known:
        return None
    floors = [n for n in known if n.basis in ("lower_bound", "projected", "observed")]
    highest = max(floors, key=lambda n: n.low_gib, default=None)
    if highest is not None and highest.low_gib > known[0].gib:
        return highest
    return known[0]
