"""The KV pool: cannot be built, or came out wrong."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.findings import Finding, Remedy
from forensics.incident import Failure
from forensics.memory import FractionAdvice, raise_fraction
from forensics.remedies import action, flag, kept
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.memory_facts import (
    automatic,
    context_len,
    fraction_of,
    gib,
    least,
    oom_sentence,
)

_NO_POOL = frozenset({"kv_pool_no_memory", "weights_leave_no_memory", "pool_too_small"})


def _says_no_pool(failure: Failure) -> bool:
    chain = failure.traceback.chain if failure.traceback else []
    return any(raised.kind in _NO_POOL for raised in chain) or failure.event.kind in _NO_POOL


@rule(
    "kv-pool-no-memory",
    class_="mem_fraction_too_low",
    summary="Weights exceed the static share: nothing is left for the KV pool",
    needs="the server's own refusal, or a pool of no tokens",
)
def kv_pool_no_memory(case: Case) -> Iterator[Finding | Skip]:
    """The pool would be empty: raise the fraction, by 1 - min(A) / B, or the weights do not fit."""
    first = next((f for f in case.run.failures if _says_no_pool(f)), None)
    if first is None:
        return
    ledgers = case.run.ledgers()
    baseline = least(ledger.baseline_gib for ledger in ledgers)
    free = least(ledger.free_before_pool_gib for ledger in ledgers)
    advice = None
    if baseline is not None and free is not None:
        advice = raise_fraction(
            baseline,
            free,
            fraction=fraction_of(case.run),
            automatic_fraction=automatic(case),
            context_len=context_len(case),
        )
    fits = advice is None or advice.possible
    yield case.finding(
        "kv-pool-no-memory",
        "mem_fraction_too_low" if fits else "weights_do_not_fit",
        first.event,
        title=_title(case, advice, fits),
        explanation=_explanation(case, advice, baseline, free),
        evidence=case.failure_evidence(first),
        remedies=_remedies(case, first, advice),
        not_helpful=[
            "a lower mem_fraction_static: it is the share that is too small already",
            "smaller graphs or fewer requests: the pool is sized before both",
        ],
        rank=first.rank,
        phase="kv_pool",
        weight=FAILURE,
        facts={
            "minimum_fraction": advice and advice.fraction_min and round(advice.fraction_min, 4),
            "free_after_weights_gib": free,
            "baseline_gib": baseline,
        },
    )


def _title(case: Case, advice: FractionAdvice | None, fits: bool) -> str:
    fraction = fraction_of(case.run)
    now = f" {fraction:g}" if fraction is not None else ""
    if not fits:
        return "The weights leave no room for a KV pool at any fraction"
    lowest = (
        f"; it takes more than {advice.fraction_min:.3f}" if advice and advice.fraction_min else ""
    )
    return f"mem_fraction_static{now} is too low for the weights{lowest}"


def _explanation(
    case: Case, advice: FractionAdvice | None, baseline: float | None, free: float | None
) -> str:
    if advice is None or baseline is None or free is None:
        return (
            "Weights and KV pool share mem_fraction_static of the memory that was free before "
            "loading; the weights alone take more, so nothing is left for the pool."
        )
    fraction = fraction_of(case.run)
    share = f" of which {fraction:g} is {baseline * fraction:.2f}" if fraction else ""
    text = (
        f"{baseline:.2f} GiB were free before loading{share}; weights took "
        f"{baseline - free:.2f} and left {free:.2f}. Smallest workable fraction: "
        f"1 - {free:.2f} / {baseline:.2f} = {advice.fraction_min:.4f}."
    )
    return text if advice.possible else f"{text} {advice.because}."


def _remedies(case: Case, first: Failure, advice: FractionAdvice | None) -> list[Remedy]:
    del first
    launch = case.run.launch
    larger = None
    if advice is not None and advice.possible and advice.fraction is not None:
        effect: dict[str, float | int] = {}
        if advice.free_gib_at_capture is not None:
            effect["free_gib_at_capture"] = round(advice.free_gib_at_capture, 2)
        if advice.pool_change_gib is not None:
            effect["kv_pool_gib"] = round(advice.pool_change_gib, 2)
        larger = flag(
            launch,
            "mem_fraction_static",
            advice.fraction,
            f"gives the pool {advice.pool_change_gib or 0:.1f} GiB and leaves "
            f"{advice.free_gib_at_capture or 0:.1f} for capture and activations",
            direction="increase",
            basis="computed",
            cost="less memory for graphs and activations",
            effect=effect,
        )
    quantise = action(
        "use_smaller_or_quantized_model", "smaller weights leave room for the pool", cost="accuracy"
    )
    more = action("use_more_gpus", "each GPU then holds fewer weights", cost="hardware")
    return kept(larger, quantise, more) if advice and not advice.possible else kept(larger, more)


@rule(
    "kv-pool-oom",
    class_="mem_fraction_too_low",
    summary="GPU memory ran out while the KV pool or an attention workspace was allocated",
    needs="a traceback of a rank with an out-of-memory error, between weights and capture",
)
def kv_pool_oom(case: Case) -> Iterator[Finding | Skip]:
    """Out of memory after the weights and before capture: the fraction promised too much."""
    from forensics.memory import lower_fraction
    from forensics.rules.capture import is_device_oom
    from forensics.rules.memory_facts import echoes, situation

    first = next((f for f in case.run.failures if f.phase == "kv_pool" and is_device_oom(f)), None)
    if first is None:
        return
    frames = first.traceback.cause.frames if first.traceback else []
    places = " ".join(f"{frame.file}:{frame.function}" for frame in frames)
    in_pool = "memory_pool" in places or (
        "init_memory_pool" in places and "attention" not in places
    )
    workspace = not in_pool
    here = situation(case)
    remedies: list[Remedy | None] = []
    fraction = fraction_of(case.run)
    ledgers = case.run.ledgers()
    baseline = here.baseline_gib if here else least(ledger.baseline_gib for ledger in ledgers)
    if fraction is not None and baseline is not None:
        # Room for what was refused, and for capture, which comes next and was never reached.
        missing = (first.oom.requested_gib if first.oom else 0.5) + (0.5 if workspace else 0.0)
        advice = lower_fraction(
            fraction,
            baseline,
            max(missing, 0.03 * baseline),
            least(ledger.free_before_pool_gib for ledger in ledgers),
        )
        if advice.possible:
            remedies.append(
                flag(
                    case.run.launch,
                    "mem_fraction_static",
                    advice.fraction,
                    f"frees {-(advice.pool_change_gib or 0):.1f} GiB, against {gib(missing)} missing "
                    "and what capture takes next",
                    direction="decrease",
                    basis="lower_bound",
                    cost="a smaller KV pool",
                    effect={"free_gib": round(-(advice.pool_change_gib or 0.0), 2)},
                )
            )
    remedies.append(action("stop_other_process", "if another process holds memory of this GPU"))
    yield case.finding(
        "workspace-oom" if workspace else "kv-pool-oom",
        "workspace_oom" if workspace else "activation_oom",
        first.event,
        title="GPU memory ran out "
        + (
            "for an attention workspace before capture"
            if workspace
            else "while the KV pool was allocated"
        ),
        explanation=f"After the weights, {oom_sentence(first)}. The fraction promised more memory to "
        "the pool than there is once context, workspaces and buffers are counted.",
        evidence=case.failure_evidence(first),
        remedies=kept(*remedies),
        not_helpful=["a higher mem_fraction_static: the pool then takes even more"],
        rank=first.rank,
        phase="kv_pool",
        weight=FAILURE,
        facts={"echo_ranks": echoes(case.run.failures, first)},
        playbook="kv-pool-oom",
    )
