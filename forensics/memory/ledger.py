"""The memory ledger of one rank: what took what, in the order in which it was taken.

Facts: memory model, sections 1 and 5. Every size is GiB (SGLang prints GiB as "GB"); None
means that the log does not say.
"""

from __future__ import annotations

from dataclasses import dataclass, field

PRINTED_ERROR_GIB = 0.01
"""Error of one figure printed with two decimals, as the ledger counts it."""


@dataclass(slots=True)
class Capture:
    """One set of graphs captured by a rank, from its begin line to its end line."""

    kind: str
    """decode, verify, draft, draft_extend, draft_verify, draft_prefill, prefill or piecewise."""
    begin_gib: float | None = None
    usage_gib: float | None = None
    end_gib: float | None = None
    sizes: list[int] = field(default_factory=list)
    """Batch sizes (tokens for prefill graphs) announced at begin, in any order."""
    bars: list[tuple[int, float]] = field(default_factory=list)
    """Progress bar: a size, and the free memory before that size was captured."""

    @property
    def finished(self) -> bool:
        """Whether its end line was seen."""
        return self.end_gib is not None or self.usage_gib is not None

    @property
    def used_gib(self) -> float | None:
        """What stayed in use after it: as printed, else begin minus end."""
        if self.usage_gib is not None:
            return self.usage_gib
        if self.begin_gib is None or self.end_gib is None:
            return None
        return self.begin_gib - self.end_gib

    @property
    def lowest_gib(self) -> float | None:
        """The lowest free memory that was printed while it ran."""
        seen = [free for _, free in self.bars]
        seen += [free for free in (self.begin_gib, self.end_gib) if free is not None]
        return min(seen, default=None)


@dataclass(frozen=True, slots=True)
class ClosingCheck:
    """Whether the ledger closes: what is left over, and which lines are missing."""

    residual_gib: float | None
    error_gib: float
    complete: bool
    missing: list[str]


@dataclass(slots=True)
class Ledger:
    """Memory of one rank, phase by phase; the letter of the memory model stands behind each."""

    rank: str = ""
    total_gib: float | None = None
    """T: the device's total, known from an allocator message only."""
    baseline_gib: float | None = None
    """B: free before weights."""
    weights_gib: float | None = None
    """W: target model."""
    after_weights_gib: float | None = None
    """A: free after the target's weights."""
    draft_weights_gib: float | None = None
    kv_pool_gib: float | None = None
    """P: KV pool tensors of the target."""
    kv_tokens: int | None = None
    state_pool_gib: float | None = None
    """State of linear attention and sliding windows, where pooled apart."""
    draft_kv_pool_gib: float | None = None
    after_pool_gib: float | None = None
    """M: free after the pools."""
    capture_begin_gib: float | None = None
    """C: free at the first capture begin of the rank, whatever its kind."""
    captures: list[Capture] = field(default_factory=list)
    end_gib: float | None = None
    """E: free after the last capture."""
    draft_after_capture: bool = False
    """To 0.5.13 the draft model is loaded after the target's graphs were captured."""

    @property
    def pool_gib(self) -> float | None:
        """All that was allocated as pools before the first capture."""
        if self.kv_pool_gib is None:
            return None
        draft = 0.0 if self.draft_after_capture else self.draft_kv_pool_gib or 0.0
        return self.kv_pool_gib + (self.state_pool_gib or 0.0) + draft

    @property
    def cell_bytes(self) -> float | None:
        """Bytes of KV pool per token of this rank (section 2)."""
        if self.kv_pool_gib is None or not self.kv_tokens:
            return None
        return self.kv_pool_gib * 2**30 / self.kv_tokens

    def pool_ratio(self, fraction: float) -> float | None:
        """Pool allocated over pool budgeted, for this rank's own figures (section 7, item 7)."""
        pool, free, baseline = self.pool_gib, self.free_before_pool_gib, self.baseline_gib
        if pool is None or free is None or baseline is None:
            return None
        budget = free - baseline * (1 - fraction)
        return pool / budget if budget > 0 else None

    @property
    def free_before_pool_gib(self) -> float | None:
        """Free memory that the pool was sized from: A, less a draft loaded before sizing."""
        if self.after_weights_gib is None:
            return None
        draft = 0.0 if self.draft_after_capture else self.draft_weights_gib or 0.0
        return self.after_weights_gib - draft

    @property
    def graphs_gib(self) -> float | None:
        """What all finished captures kept; None if none finished."""
        used = [c.used_gib for c in self.captures if c.used_gib is not None]
        return sum(used) if used else None

    def check(self) -> ClosingCheck:
        """Close the ledger from weights to the end (section 5).

        The items between weights and the first capture are differences of the same figures, so
        what can fail to close is begin of capture, minus graphs, minus a late draft, minus end.
        """
        missing = self._missing()
        begin, end = self.capture_begin_gib, self.end_gib
        printed = 2 + len(self.captures)
        late = 0.0
        if self.draft_after_capture:
            late = (self.draft_weights_gib or 0.0) + (self.draft_kv_pool_gib or 0.0)
            printed += 2
        error = PRINTED_ERROR_GIB * printed
        if begin is None or end is None or self.graphs_gib is None:
            return ClosingCheck(None, error, False, missing)
        residual = begin - self.graphs_gib - late - end
        return ClosingCheck(residual, error, not missing and abs(residual) <= error, missing)

    def _missing(self) -> list[str]:
        needed = {
            "baseline": self.baseline_gib,
            "weights": self.weights_gib,
            "after_weights": self.after_weights_gib,
            "kv_pool": self.kv_pool_gib,
            "after_pool": self.after_pool_gib,
            "capture_begin": self.capture_begin_gib,
            "end": self.end_gib,
        }
        missing = [name for name, value in needed.items() if value is None]
        missing += [f"capture_end:{c.kind}" for c in self.captures if not c.finished]
        return missing
