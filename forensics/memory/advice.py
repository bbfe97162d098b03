"""Which fraction to start with next, and what it costs.

Facts and policy: memory model, section 7. Lowering makes room for capture; raising makes room
for a pool. Fractions are steps of 0.01; sizes GiB, minima over ranks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from forensics.memory.need import Need
from forensics.memory.pool import Unbudgeted, minimum_fraction, pool_budget_gib
from forensics.memory.situation import Situation

HIGHEST_FRACTION = 0.98
"""From here on weights do not fit rather than the fraction being low."""
BIG_CARD_GIB = 79.0
MOST_TARGET_GIB = 7.5
MOST_SHARE = 0.1
"""On smaller cards: this share of the card, unless twice the least need is more."""
RESERVE_GIB = 1.0
"""Left free after capture, for activations that nothing else reserves."""
STEP = 0.01
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class FractionAdvice:
    """A fraction with its prediction; `possible` is False where no fraction is the cure."""

    possible: bool
    fraction: float | None
    now: float | None
    basis: str
    target_gib: float | None = None
    """Free memory at capture that was aimed at."""
    fraction_fail: float | None = None
    """At this fraction and above the same failure is certain."""
    fraction_min: float | None = None
    """At this fraction and below the pool is empty."""
    fraction_next: float | None = None
    """The release's own choice, where it is clearly safer: the second step."""
    unbudgeted: Unbudgeted | None = None
    free_gib_at_capture: float | None = None
    free_gib_at_capture_scaled: float | None = None
    kv_tokens: int | None = None
    kv_tokens_change: int | None = None
    pool_change_gib: float | None = None
    arithmetic: list[str] = field(default_factory=list)
    assumed: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    because: str = ""
    """Why it is not possible."""


def target_free_gib(need: Need, situation: Situation) -> float:
    """Free memory to aim at when capture begins (section 7, step 2)."""
    if need.basis == "observed":
        return need.gib + RESERVE_GIB
    if need.basis in ("projected", "computed"):
        return 1.2 * need.gib + RESERVE_GIB
    if need.basis == "lower_bound":
        target = max(5 * need.gib, 0.05 * situation.baseline_gib)
    else:
        target = (need.high_gib or 5 * need.gib) + RESERVE_GIB
    big = (situation.total_gib or situation.baseline_gib) >= BIG_CARD_GIB
    if big:
        return max(min(target, MOST_TARGET_GIB), need.low_gib + RESERVE_GIB)
    return max(min(target, MOST_SHARE * situation.baseline_gib), 2 * need.low_gib)


def step_down(fraction: float) -> float:
    """A fraction down to a step of 0.01."""
    return math.floor(fraction / STEP + _ROUNDING) * STEP


def step_up(fraction: float) -> float:
    """A fraction up to a step of 0.01."""
    return math.ceil(fraction / STEP - _ROUNDING) * STEP


def suggest_fraction(situation: Situation, need: Need) -> FractionAdvice:
    """The fraction that leaves capture room (section 7, steps 1 to 7)."""
    s, taken, base = situation, situation.taken, situation.baseline_gib
    target = target_free_gib(need, s)
    fail = 1 - (taken.total_gib + need.low_gib) / base
    lowest = None if s.after_weights_gib is None else minimum_fraction(s.after_weights_gib, base)
    wanted = _fraction_for(s, target)
    tight = False
    if lowest is not None and wanted <= lowest:
        target, tight = 1.2 * need.gib + 0.5, True
        wanted = _fraction_for(s, target)
    wanted = round(min(wanted, step_down(s.fraction - STEP)), 2)
    basis = "computed" if need.basis == "projected" else need.basis
    if _capped(s):
        return _capped_pool(s, basis)
    advice = FractionAdvice(
        possible=wanted > 0 and (lowest is None or wanted > lowest),
        fraction=wanted,
        now=s.fraction,
        basis=basis,
        target_gib=target,
        fraction_fail=fail,
        fraction_min=lowest,
        unbudgeted=taken,
        assumed=list(s.assumed),
    )
    return _impossible(advice) if not advice.possible else _priced(advice, s, need, tight)


def _fraction_for(situation: Situation, target_gib: float) -> float:
    """The highest step whose predicted free memory reaches a target."""
    start = 1 - (situation.taken.total_gib + target_gib) / situation.baseline_gib
    fraction = min(step_down(start + 0.05), 0.99)
    while fraction > 0 and situation.free_at(fraction) < target_gib:
        fraction = step_down(fraction - STEP)
    return fraction


CAPPED_RATIO = 0.9
"""A pool below this share of its budget was capped, so the fraction did not size it."""


def _capped(s: Situation) -> bool:
    if s.after_weights_gib is None or s.pool_gib is None:
        return False
    budget = pool_budget_gib(s.after_weights_gib, s.baseline_gib, s.fraction)
    return s.pool_gib < CAPPED_RATIO * budget


def _capped_pool(s: Situation, basis: str) -> FractionAdvice:
    return FractionAdvice(
        possible=False,
        fraction=None,
        now=s.fraction,
        basis=basis,
        unbudgeted=s.taken,
        assumed=list(s.assumed),
        because="the pool is smaller than the fraction allows (a token limit): the fraction did"
        " not size it",
    )


def _impossible(advice: FractionAdvice) -> FractionAdvice:
    return FractionAdvice(
        possible=False,
        fraction=None,
        now=advice.now,
        basis=advice.basis,
        target_gib=advice.target_gib,
        fraction_fail=advice.fraction_fail,
        fraction_min=advice.fraction_min,
        unbudgeted=advice.unbudgeted,
        assumed=advice.assumed,
        because="weights leave too little for both a KV pool and capture: reduce the captured "
        "batch or the chunk size, quantise the KV cache, or use more GPUs",
    )


def _priced(advice: FractionAdvice, s: Situation, need: Need, tight: bool) -> FractionAdvice:
    """Fill in what a possible fraction gives and costs."""
    fraction = advice.fraction or 0.0
    tokens = s.tokens_at(fraction)
    lost = s.baseline_gib * (s.fraction - fraction)
    warnings = _token_warnings(s, tokens)
    if tight:
        warnings.insert(0, "the usual reserve does not fit: this leaves little beyond capture")
    automatic = s.automatic_fraction
    safer = automatic is not None and automatic < fraction - 0.03
    arithmetic = _arithmetic(s, need, advice)
    return FractionAdvice(
        possible=True,
        fraction=fraction,
        now=s.fraction,
        basis=advice.basis,
        target_gib=advice.target_gib,
        fraction_fail=advice.fraction_fail,
        fraction_min=advice.fraction_min,
        fraction_next=round(automatic, 2) if safer and automatic is not None else None,
        unbudgeted=advice.unbudgeted,
        free_gib_at_capture=s.free_at(fraction),
        free_gib_at_capture_scaled=s.free_scaled_at(fraction),
        kv_tokens=None if tokens is None else int(tokens),
        kv_tokens_change=None
        if tokens is None or s.kv_tokens is None
        else int(tokens) - s.kv_tokens,
        pool_change_gib=-lost,
        arithmetic=arithmetic,
        assumed=advice.assumed,
        warnings=warnings,
    )


def _token_warnings(s: Situation, tokens: float | None) -> list[str]:
    if tokens is None or not s.kv_tokens:
        return []
    warnings: list[str] = []
    if s.requests is not None and tokens < s.requests.context_len:
        warnings.append(
            f"the pool would hold {int(tokens)} tokens, fewer than one request of the full "
            f"context ({s.requests.context_len})"
        )
    if tokens < 0.5 * s.kv_tokens:
        warnings.append("the pool would lose more than half of its tokens")
    return warnings


def _arithmetic(s: Situation, need: Need, advice: FractionAdvice) -> list[str]:
    taken, fraction = s.taken, advice.fraction or 0.0
    base, begin = s.baseline_gib, s.capture_begin_gib
    lines = [
        f"slack = {base:.2f} * (1 - {s.fraction:g}) = {base * (1 - s.fraction):.2f}",
        f"taken between sizing and capture = {base * (1 - s.fraction):.2f} - {begin:.2f}"
        f" = {taken.total_gib:.2f}",
    ]
    if taken.pool_excess_gib > 0:
        lines.append(
            f"of it {taken.pool_excess_gib:.2f} because the pool is {taken.pool_ratio:.2f} times"
            " its budget"
        )
    if taken.request_table_gib >= 0.05:
        lines.append(f"of it {taken.request_table_gib:.2f} for the request table")
    bound = " at least" if need.basis == "lower_bound" else ""
    lines.append(f"capture needs{bound} {need.gib:.2f} and had {begin:.2f}")
    free = s.free_at(fraction)
    lines.append(f"free at capture at {fraction:g} = {free:.2f} (aimed at {advice.target_gib:.2f})")
    return lines
