"""Remedies that change the memory fraction: to which value, what it gives and what it costs.

A value that an earlier launch of the same model in the same input has tried in vain is not
proposed again.
"""

from __future__ import annotations

from dataclasses import replace

from forensics.findings import Remedy
from forensics.incident import Failure
from forensics.memory import (
    FractionAdvice,
    Ledger,
    Need,
    Situation,
    grow_fraction,
    lower_fraction,
    suggest_fraction,
)
from forensics.memory.advice import step_down
from forensics.remedies import flag
from forensics.rules.case import Case
from forensics.rules.memory_facts import fraction_of, least, situation
from forensics.rules.neighbours import ledger_of
from forensics.rules.shortage import is_device_oom

_FURTHER = 0.02
"""How far below a fraction that failed before the next one goes."""


def failed_fractions(case: Case) -> list[float]:
    """Fractions with which earlier launches of this model ran out of GPU memory."""
    model = case.run.launch.get("model_path")
    return [
        fraction
        for run in case.incident.runs
        if run.number < case.run.number
        and run.launch.get("model_path") == model
        and any(is_device_oom(failure) for failure in run.failures)
        and (fraction := fraction_of(run)) is not None
    ]


def lower_for_capture(
    case: Case, need: Need, begin_gib: float | None = None
) -> FractionAdvice | None:
    """The fraction that leaves capture its room; None where too few figures are known.

    `begin_gib` is what was free when the capture in need began: graphs captured before it are
    then a part of what was taken.
    """
    here = situation(case)
    if here is None:
        return None
    if begin_gib is not None:
        here = replace(here, capture_begin_gib=min(begin_gib, here.capture_begin_gib))
    advice = suggest_fraction(here, need)
    if not advice.possible and case.run.launch.get("max_total_tokens") is None:
        # Nothing capped the pool: its printed size is off, so it is better left out.
        advice = suggest_fraction(replace(here, pool_gib=None, kv_tokens=None), need)
    tried = min(failed_fractions(case), default=None)
    if not advice.possible or tried is None or (advice.fraction or 0.0) < tried:
        return advice
    further = round(step_down(tried - _FURTHER), 2)
    if further <= (advice.fraction_min or 0.0):
        return replace(advice, possible=False, because="every fraction above the least was tried")
    return _at(advice, here, further)


def _at(advice: FractionAdvice, here: Situation, fraction: float) -> FractionAdvice:
    tokens = here.tokens_at(fraction)
    known = tokens is not None and here.kv_tokens is not None
    return replace(
        advice,
        fraction=fraction,
        free_gib_at_capture=here.free_at(fraction),
        free_gib_at_capture_scaled=here.free_scaled_at(fraction),
        kv_tokens=None if tokens is None else int(tokens),
        kv_tokens_change=int(tokens or 0) - (here.kv_tokens or 0) if known else None,
        pool_change_gib=here.baseline_gib * (fraction - here.fraction),
        arithmetic=[
            *advice.arithmetic,
            f"an earlier launch failed above {fraction:g}: free at capture at {fraction:g} = "
            f"{here.free_at(fraction):.2f}",
        ],
    )


def fraction_for_capture(case: Case, advice: FractionAdvice | None, need: Need) -> Remedy | None:
    """The remedy of an advice for capture."""
    if advice is None or not advice.possible or advice.fraction is None:
        return None
    lost = advice.kv_tokens_change or 0
    effect = {
        "free_gib_at_capture": _rounded(advice.free_gib_at_capture),
        "free_gib_at_capture_scaled": _rounded(advice.free_gib_at_capture_scaled),
        "kv_tokens": advice.kv_tokens,
        "kv_tokens_change": advice.kv_tokens_change,
    }
    bound = f"; at {advice.fraction_fail:.3f} and above it fails again"
    return flag(
        case.run.launch,
        "mem_fraction_static",
        advice.fraction,
        f"leaves about {advice.free_gib_at_capture or 0.0:.1f} GiB free at capture"
        + (bound if advice.fraction_fail else ""),
        direction="decrease",
        basis="computed" if need.basis == "projected" else need.basis,
        cost=f"about {abs(lost):,} KV tokens fewer a GPU" if lost else "a smaller KV pool",
        effect={name: value for name, value in effect.items() if value is not None},
    )


def lower_by(case: Case, missing_gib: float, what: str) -> Remedy | None:
    """The fraction that leaves so much more memory outside weights and pool; None if none does.

    `what` says what the memory is for.
    """
    fraction, baseline = fraction_of(case.run), baseline_of(case)
    guessed = fraction is None
    fraction = estimated_fraction(case) if fraction is None else fraction
    if fraction is None or baseline is None:
        return None
    ledgers = case.run.ledgers()
    after = least(ledger.free_before_pool_gib for ledger in ledgers)
    advice = lower_fraction(fraction, baseline, missing_gib, after)
    lowered = advice.fraction
    tried = min(failed_fractions(case), default=None)
    if lowered is not None and tried is not None and lowered >= tried:
        lowered = round(step_down(tried - _FURTHER), 2)
    if lowered is None or lowered <= (advice.fraction_min or 0.0):
        return None
    freed = baseline * (fraction - lowered)
    tokens = tokens_of(ledgers, freed)
    return flag(
        case.run.launch,
        "mem_fraction_static",
        lowered,
        f"leaves {freed:.1f} GiB more for {what} ({baseline:.1f} x ({fraction:g} - {lowered:g}))"
        + (
            "; no flags are shown: the fraction now is estimated from weights and pool"
            if guessed
            else ""
        ),
        direction="decrease",
        basis="lower_bound",
        cost=f"about {tokens:,} KV tokens fewer" if tokens else "a smaller KV pool",
        effect={"free_gib": round(freed, 2)} | ({"kv_tokens_change": -tokens} if tokens else {}),
    )


def estimated_fraction(case: Case) -> float | None:
    """Where no flags are shown: the share that weights and pool have of what was free at first.

    From the ledger, else as PyTorch held them, which leans high: graphs are in it too.
    """
    shares = [
        1 - (free - pool) / base
        for ledger in case.run.ledgers()
        if (base := ledger.baseline_gib)
        and (free := ledger.free_before_pool_gib) is not None
        and (pool := ledger.pool_gib) is not None
    ]
    if shares:
        return round(min(max(shares), 0.99), 3)
    oom = next((f.oom for f in case.run.failures if f.oom), None)
    baseline = baseline_of(case)
    if oom is None or oom.allocated_gib is None or not baseline:
        return None
    held = oom.allocated_gib - (oom.private_pools_gib or 0.0)
    return round(min(held / baseline, 0.99), 3)


def grow_pool(case: Case) -> Remedy | None:
    """The fraction that gives the pool what stays free after capture, a step or two up."""
    fraction, baseline = fraction_of(case.run), baseline_of(case)
    ledgers = case.run.ledgers()
    left = least(ledger.end_gib for ledger in ledgers)
    if fraction is None or left is None:
        return None
    # Where nothing says what was free at first, a card of at least 80 GB is the careful guess.
    base = baseline if baseline is not None else max(left / max(1 - fraction, 0.01), left)
    advice = grow_fraction(fraction, base, left)
    if not advice.possible or advice.fraction is None:
        return None
    gained = advice.pool_change_gib or 0.0
    tokens = tokens_of(ledgers, gained)
    return flag(
        case.run.launch,
        "mem_fraction_static",
        advice.fraction,
        f"{left:.1f} GiB stay free after start-up; {gained:.1f} of them can hold KV",
        direction="increase",
        basis="computed",
        cost="less memory for activations",
        effect={"kv_pool_gib": round(gained, 2)} | ({"kv_tokens_change": tokens} if tokens else {}),
    )


def baseline_of(case: Case) -> float | None:
    """Free memory before weights, the least over ranks; from the card's total if need be."""
    ledgers = case.run.ledgers()
    found = least(ledger.baseline_gib for ledger in ledgers)
    if found is None and (total := least(ledger.total_gib for ledger in ledgers)) is not None:
        return total - 0.9
    return found


def tokens_of(ledgers: list[Ledger], size_gib: float) -> int | None:
    """How many KV tokens a size holds; None where the pool's cell is not known."""
    cells = [cell for ledger in ledgers if (cell := ledger.cell_bytes)]
    return int(size_gib * 2**30 / max(cells)) if cells else None


def weights_share(case: Case, failure: Failure) -> float | None:
    """What share of the memory free at first the weights of the failing rank take."""
    ledger = ledger_of(case, failure) or next(iter(case.run.ledgers()), None)
    if ledger is None or not ledger.baseline_gib or ledger.after_weights_gib is None:
        return None
    return 1 - ledger.after_weights_gib / ledger.baseline_gib


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
