"""What a launch showed up to graph capture, and what it would be at another fraction.

Facts: memory model, sections 2, 4 and 7. Sizes GiB, the least over ranks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from forensics.memory.ledger import Ledger
from forensics.memory.pool import (
    Unbudgeted,
    pool_budget_gib,
    predict_free_at_capture,
    predict_free_scaled,
    request_table_gib,
    unbudgeted,
)

OUTSIDE_TORCH_GIB = 0.6
"""Device memory taken before the baseline (context, NCCL), where only the total is known."""


@dataclass(frozen=True, slots=True)
class Requests:
    """What the request table's size depends on."""

    context_len: int
    max_running_requests: int | None = None
    typed: bool = False
    draft_tokens: int = 0

    def table_gib(self, tokens: float) -> float:
        """The table for a pool of so many tokens."""
        return request_table_gib(
            self.max_running_requests,
            self.context_len,
            tokens,
            self.draft_tokens,
            flag_typed=self.typed,
        )


@dataclass(frozen=True, slots=True)
class Situation:
    """What a launch showed up to capture; the least over its ranks."""

    fraction: float
    baseline_gib: float
    capture_begin_gib: float
    """First capture begin; free after the pool where there was no capture line."""
    after_weights_gib: float | None = None
    pool_gib: float | None = None
    kv_tokens: int | None = None
    requests: Requests | None = None
    total_gib: float | None = None
    automatic_fraction: float | None = None
    """What the release would pick for the same flags."""
    kv_pool_gib: float | None = None
    """The KV part of the pool, where other state is pooled too; None: all of it."""
    assumed: tuple[str, ...] = ()

    @property
    def cell_bytes(self) -> float | None:
        """Bytes of KV pool per token."""
        pool = self.pool_gib if self.kv_pool_gib is None else self.kv_pool_gib
        if not self.kv_tokens or pool is None:
            return None
        return pool * 2**30 / self.kv_tokens

    @property
    def taken(self) -> Unbudgeted:
        """U, with the parts of it that are understood."""
        table = 0.0
        if self.requests is not None and self.kv_tokens:
            table = self.requests.table_gib(self.kv_tokens)
        return unbudgeted(
            self.baseline_gib,
            self.fraction,
            self.capture_begin_gib,
            request_table_gib=table,
            pool_gib=self.pool_gib,
            after_weights_gib=self.after_weights_gib,
        )

    def tokens_at(self, fraction: float) -> float | None:
        """Pool size at another fraction: it gains or loses B * df.

        A pool that exceeds its budget holds tokens in proportion to the budget instead.
        """
        cell, tokens = self.cell_bytes, self.kv_tokens
        if cell is None or tokens is None:
            return None
        if self.after_weights_gib is not None and self.taken.pool_excess_gib > 0:
            budgets = [
                pool_budget_gib(self.after_weights_gib, self.baseline_gib, f)
                for f in (fraction, self.fraction)
            ]
            return max(tokens * budgets[0] / budgets[1], 0.0)
        change = self.baseline_gib * (fraction - self.fraction) * 2**30 / cell
        return max(tokens + change, 0.0)

    def free_at(self, fraction: float) -> float:
        """Predicted free memory at capture for a fraction: the plain, conservative formula."""
        return predict_free_at_capture(
            fraction, self.baseline_gib, self.taken, request_table_gib=self._table_at(fraction)
        )

    def free_scaled_at(self, fraction: float) -> float | None:
        """The same with a pool that exceeds its budget in proportion; None without A and P."""
        taken = self.taken
        if self.after_weights_gib is None or taken.pool_excess_gib <= 0:
            return None
        return predict_free_scaled(
            fraction,
            self.baseline_gib,
            taken,
            self.after_weights_gib,
            request_table_gib=self._table_at(fraction),
        )

    def _table_at(self, fraction: float) -> float | None:
        tokens = self.tokens_at(fraction)
        if self.requests is None or tokens is None:
            return None
        return self.requests.table_gib(tokens)


def situation_of(
    ledgers: Iterable[Ledger],
    fraction: float,
    *,
    requests: Requests | None = None,
    automatic_fraction: float | None = None,
) -> Situation | None:
    """The situation of a launch from its ranks' ledgers; None where too little was printed.

    Pools are sized by the poorest rank, so minima count. Without a baseline line it is taken
    from the device's total, without a capture line the free memory after the pools is; both are
    said in `assumed`.
    """
    ranks = list(ledgers)
    assumed: list[str] = []
    total = _least(r.total_gib for r in ranks)
    baseline = _least(r.baseline_gib for r in ranks)
    if baseline is None and total is not None:
        baseline = total - OUTSIDE_TORCH_GIB
        assumed.append(f"baseline {baseline:.2f} from the device total {total:.2f}")
    begin = _least(r.capture_begin_gib for r in ranks)
    if begin is None:
        begin = _least(r.after_pool_gib for r in ranks)
        assumed.append("no capture line: free memory after the pools instead")
    if baseline is None or begin is None:
        return None
    return Situation(
        fraction=fraction,
        baseline_gib=baseline,
        capture_begin_gib=begin,
        after_weights_gib=_least(r.free_before_pool_gib for r in ranks),
        pool_gib=_least(r.pool_gib for r in ranks),
        kv_pool_gib=_least(r.kv_pool_gib for r in ranks),
        kv_tokens=min((r.kv_tokens for r in ranks if r.kv_tokens), default=None),
        requests=requests,
        total_gib=total,
        automatic_fraction=automatic_fraction,
        assumed=tuple(assumed),
    )


def _least(values: Iterable[float | None]) -> float | None:
    return min((v for v in values if v is not None), default=None)
