"""How the KV pool is sized, and what is taken without being budgeted.

Facts: memory model, sections 2, 4 and 7. B is the baseline (free before weights), A free after
weights, C free at the first capture begin; all are minima over ranks, in GiB.
"""

from __future__ import annotations

from dataclasses import dataclass

EXCESS_RATIO = 1.02
"""From here on a pool counts as larger than its budget, not as rounded up."""


def slack_gib(baseline_gib: float, fraction: float) -> float:
    """Memory that the fraction leaves alone: B * (1 - f)."""
    return baseline_gib * (1 - fraction)


def pool_budget_gib(after_weights_gib: float, baseline_gib: float, fraction: float) -> float:
    """What the KV pool may take: min(A) less the slack (section 2); negative: nothing is left."""
    return after_weights_gib - slack_gib(baseline_gib, fraction)


def minimum_fraction(after_weights_gib: float, baseline_gib: float) -> float:
    """The fraction at which the pool is empty: 1 - min(A) / B (section 2)."""
    return 1 - after_weights_gib / baseline_gib


def pool_tokens(budget_gib: float, cell_bytes: float, page_size: int = 1) -> int:
    """Tokens that a budget holds, down to a whole page (section 2)."""
    tokens = int(max(budget_gib, 0.0) * 2**30 / cell_bytes)
    return tokens // page_size * page_size


def request_slots(
    max_running_requests: int | None, context_len: int, tokens: float, *, flag_typed: bool = True
) -> float:
    """Rows of the request table: the flag, else by pool size between 2048 and 4096 (section 4)."""
    if flag_typed and max_running_requests is not None:
        return float(max_running_requests)
    return min(max(tokens / context_len * 512, 2048.0), 4096.0)


def request_table_gib(
    max_running_requests: int | None,
    context_len: int,
    tokens: float,
    draft_tokens: int = 0,
    *,
    flag_typed: bool = True,
) -> float:
    """Size of the table that maps each request to its KV slots (section 4).

    Without the flag it grows with the pool: 1.5 GiB and more for long contexts.
    """
    if context_len <= 0:
        return 0.0
    rows = request_slots(max_running_requests, context_len, tokens, flag_typed=flag_typed)
    return rows * (context_len + 4 + draft_tokens) * 4 / 2**30


@dataclass(frozen=True, slots=True)
class Unbudgeted:
    """U: what was taken between sizing and capture without being budgeted (section 4)."""

    total_gib: float
    request_table_gib: float = 0.0
    """Part of it that the request table explains."""
    pool_excess_gib: float = 0.0
    """Part of it by which the pool exceeds its budget; scales with the pool."""
    pool_ratio: float = 1.0
    """Pool over budget; 1 where unknown or within rounding."""

    @property
    def fixed_gib(self) -> float:
        """What neither the request table nor the pool excess explains."""
        return self.total_gib - self.request_table_gib - self.pool_excess_gib


def unbudgeted(
    baseline_gib: float,
    fraction: float,
    capture_begin_gib: float,
    *,
    request_table_gib: float = 0.0,
    pool_gib: float | None = None,
    after_weights_gib: float | None = None,
) -> Unbudgeted:
    """Split what vanished between sizing and the first capture begin (section 7, item 7)."""
    total = slack_gib(baseline_gib, fraction) - capture_begin_gib
    excess, ratio = 0.0, 1.0
    if pool_gib is not None and after_weights_gib is not None:
        budget = pool_budget_gib(after_weights_gib, baseline_gib, fraction)
        if budget > 0 and pool_gib / budget > EXCESS_RATIO:
            excess, ratio = pool_gib - budget, pool_gib / budget
    return Unbudgeted(total, request_table_gib, excess, ratio)


def predict_free_at_capture(
    fraction: float,
    baseline_gib: float,
    taken: Unbudgeted,
    *,
    request_table_gib: float | None = None,
) -> float:
    """C(f') = B * (1 - f') - U, with the request table of f' in place of the old one.

    The plain, conservative formula: a pool that exceeds its budget is taken to exceed it by as
    much as before. `request_table_gib` is the table at f'; None leaves it as it was.
    """
    table = taken.request_table_gib if request_table_gib is None else request_table_gib
    rest = taken.total_gib - taken.request_table_gib
    return slack_gib(baseline_gib, fraction) - rest - table


def predict_free_scaled(
    fraction: float,
    baseline_gib: float,
    taken: Unbudgeted,
    after_weights_gib: float,
    *,
    request_table_gib: float | None = None,
) -> float:
    """The same with the pool's excess scaled by the new budget (section 7, item 7)."""
    plain = predict_free_at_capture(
        fraction, baseline_gib, taken, request_table_gib=request_table_gib
    )
    budget = max(pool_budget_gib(after_weights_gib, baseline_gib, fraction), 0.0)
    return plain + taken.pool_excess_gib - (taken.pool_ratio - 1) * budget
