"""Fractions that are too low, and smaller steps down: the other rows of the table of knobs.

Facts and policy: memory model, sections 2 and 7.
"""

from __future__ import annotations

from forensics.memory.advice import (
    HIGHEST_FRACTION,
    RESERVE_GIB,
    STEP,
    FractionAdvice,
    step_down,
    step_up,
)
from forensics.memory.pool import minimum_fraction, pool_budget_gib, slack_gib

ABOVE_MINIMUM = 0.02


def raise_fraction(
    baseline_gib: float,
    after_weights_gib: float,
    *,
    fraction: float | None = None,
    need_gib: float = 0.0,
    automatic_fraction: float | None = None,
    cell_bytes: float | None = None,
    context_len: int | None = None,
) -> FractionAdvice:
    """The fraction that gives weights and a pool their room, where it was set too low.

    At least 0.02 above the minimum; as far as the automatic one, or one request of the full
    context where the cell is known, if capture still fits. From 0.98 on the weights are what
    does not fit.
    """
    lowest = minimum_fraction(after_weights_gib, baseline_gib)
    least = step_up(lowest + ABOVE_MINIMUM)
    if least >= HIGHEST_FRACTION:
        return FractionAdvice(
            possible=False,
            fraction=None,
            now=fraction,
            basis="computed",
            fraction_min=lowest,
            because=f"weights leave {after_weights_gib:.2f} of {baseline_gib:.2f} GiB: no fraction"
            " makes them fit; use more GPUs, quantise, or free the card",
        )
    wishes = [least, automatic_fraction or 0.0]
    if cell_bytes and context_len:
        wishes.append(lowest + cell_bytes * context_len / 2**30 / baseline_gib)
    room = step_down(1 - (need_gib + RESERVE_GIB) / baseline_gib)
    chosen = max(least, min(step_up(max(wishes)), room, HIGHEST_FRACTION))
    chosen = round(max(chosen, step_up((fraction or 0.0) + STEP)), 2)
    return _raised(chosen, fraction, baseline_gib, after_weights_gib, need_gib, cell_bytes)


def _raised(
    chosen: float,
    now: float | None,
    baseline_gib: float,
    after_weights_gib: float,
    need_gib: float,
    cell_bytes: float | None,
) -> FractionAdvice:
    """The advice for a higher fraction: what pool it gives and what it leaves."""
    lowest = minimum_fraction(after_weights_gib, baseline_gib)
    budget = pool_budget_gib(after_weights_gib, baseline_gib, chosen)
    slack = slack_gib(baseline_gib, chosen)
    warnings = []
    if slack < need_gib + RESERVE_GIB:
        warnings.append(f"only {slack:.2f} GiB would be left for graphs and activations")
    return FractionAdvice(
        possible=chosen < HIGHEST_FRACTION,
        fraction=chosen,
        now=now,
        basis="computed",
        fraction_min=lowest,
        free_gib_at_capture=slack,
        kv_tokens=int(budget * 2**30 / cell_bytes) if cell_bytes else None,
        pool_change_gib=budget,
        arithmetic=[
            f"minimum = 1 - {after_weights_gib:.2f} / {baseline_gib:.2f} = {lowest:.3f}",
            f"pool at {chosen:g} = {after_weights_gib:.2f} - {slack:.2f} = {budget:.2f}",
        ],
        warnings=warnings,
        because="" if chosen < HIGHEST_FRACTION else "the fraction is at its highest already",
    )


def grow_fraction(
    fraction: float, baseline_gib: float, end_gib: float, margin_gib: float = 2.0
) -> FractionAdvice:
    """Raise a fraction by memory that stays free after capture, at most 0.02 a step."""
    spare = end_gib - margin_gib
    step = min(step_down(spare / baseline_gib), 2 * STEP)
    if step < STEP - 1e-9:
        return FractionAdvice(
            possible=False,
            fraction=None,
            now=fraction,
            basis="computed",
            because=f"{end_gib:.2f} GiB are free after capture: too little to give to the pool",
        )
    raised = round(min(step_down(fraction + step), HIGHEST_FRACTION), 2)
    gained = baseline_gib * (raised - fraction)
    return FractionAdvice(
        possible=raised > fraction,
        fraction=raised,
        now=fraction,
        basis="computed",
        pool_change_gib=gained,
        arithmetic=[f"{end_gib:.2f} free after capture, {margin_gib:.2f} kept, {gained:.2f} given"],
    )


def lower_fraction(
    fraction: float, baseline_gib: float, missing_gib: float, after_weights_gib: float | None = None
) -> FractionAdvice:
    """Lower a fraction by what was missing plus 10 %: a refused request, a draft model."""
    lowered = round(min(step_down(fraction - 1.1 * missing_gib / baseline_gib), fraction - STEP), 2)
    lowest = None
    if after_weights_gib is not None:
        lowest = minimum_fraction(after_weights_gib, baseline_gib)
    freed = baseline_gib * (fraction - lowered)
    fits = lowered > max(lowest or 0.0, 0.0)
    return FractionAdvice(
        possible=fits,
        fraction=lowered if fits else None,
        now=fraction,
        basis="lower_bound",
        fraction_min=lowest,
        pool_change_gib=-freed,
        arithmetic=[f"{missing_gib:.2f} missing + 10 % of {baseline_gib:.2f}: {freed:.2f} freed"],
        because="" if fits else "the pool would be empty",
    )
