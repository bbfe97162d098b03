"""The KV pool: cannot be built, or takes more than there is."""

from __future__ import annotations

import re
from collections.abc import Iterator

from forensics.findings import Finding, Remedy
from forensics.incident import Failure
from forensics.memory import FractionAdvice, raise_fraction
from forensics.remedies import action, flag, kept
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.co_located import CoLocated, co_located, due_weights
from forensics.rules.fractions import baseline_of, lower_by
from forensics.rules.memory_facts import (
    automatic,
    context_len,
    echoes,
    fraction_of,
    least,
    oom_sentence,
)
from forensics.rules.serving_remedies import remedies_for
from forensics.rules.shortage import class_of, first_shortage

_NO_POOL = frozenset(
    {"kv_pool_no_memory", "weights_leave_no_memory", "pool_too_small", "swa_pool_no_room"}
)
_PRINTED = re.compile(r"above (\d\.\d+) \(minimum viable = 1 - available/pre = (\d\.\d+)\)")


def refuses_pool(failure: Failure) -> bool:
    """Whether the server itself says that nothing is left for a pool."""
    chain = failure.traceback.chain if failure.traceback else []
    return any(raised.kind in _NO_POOL for raised in chain) or failure.event.kind in _NO_POOL


@rule(
    "kv-pool-no-memory",
    class_="mem_fraction_too_low",
    summary="Weights exceed the static share: nothing is left for the KV pool",
    names={
        "co-start-race": (
            "other_process_on_gpu",
            "Another process took memory while the weights loaded, and was booked as weights",
        )
    },
    needs="the server's own refusal, or a pool of no tokens",
)
def kv_pool_no_memory(case: Case) -> Iterator[Finding | Skip]:
    """The pool would be empty: raise the fraction, by 1 - min(A) / B, or the weights do not fit."""
    first = next((f for f in case.run.failures if refuses_pool(f)), None)
    if first is None:
        return
    ledgers = case.run.ledgers()
    baseline = least(ledger.baseline_gib for ledger in ledgers)
    free = least(ledger.free_before_pool_gib for ledger in ledgers)
    advice = _advice(case, first, baseline, free)
    others = co_located(case)
    if others.likely:
        yield _shared(case, first, advice, others)
        return
    fits = advice is None or advice.possible
    yield case.finding(
        "kv-pool-no-memory",
        "mem_fraction_too_low" if fits else "weights_do_not_fit",
        first.event,
        title=_title(case, advice, fits),
        explanation=_explanation(case, advice, baseline, free),
        evidence=[
            *case.evidence(case.run.first("load_weight_begin"), case.run.first("load_weight_end")),
            *case.failure_evidence(first),
        ],
        remedies=_remedies(case, advice),
        not_helpful=_not_helpful(fits),
        rank=first.rank,
        phase="kv_pool",
        weight=FAILURE,
        facts={
            "minimum_fraction": advice and advice.fraction_min and round(advice.fraction_min, 4),
            "free_after_weights_gib": free,
            "baseline_gib": baseline,
        },
    )


def _not_helpful(fits: bool) -> list[str]:
    told = ["smaller graphs or fewer requests: the pool is sized before both"]
    if fits:
        return ["a lower mem_fraction_static: it is the share that is too small already", *told]
    return ["any mem_fraction_static: even all of the GPU is too little", *told]


def _advice(
    case: Case, first: Failure, baseline: float | None, free: float | None
) -> FractionAdvice | None:
    if baseline is None or free is None:
        # The message of late releases carries the ratio that the ledger lacks.
        chain = first.traceback.chain if first.traceback else []
        said = next((m for r in chain if (m := _PRINTED.search(r.message))), None)
        if said is None:
            return None
        baseline, free = 1.0, 1.0 - float(said[2])
    return raise_fraction(
        baseline,
        free,
        fraction=fraction_of(case.run),
        automatic_fraction=automatic(case),
        context_len=context_len(case),
    )


def _shared(
    case: Case, first: Failure, advice: FractionAdvice | None, others: CoLocated
) -> Finding:
    """Weights were booked as the difference of free memory, while somebody else took some."""
    end = case.run.first("load_weight_end")
    booked, due = (end.number("usage_gib") if end else None) or 0.0, due_weights(case)
    low = (
        f" The printed minimum of {advice.fraction_min:.3f} is an artefact of that. "
        if (advice and advice.fraction_min)
        else " "
    )
    size = f", though they take about {due:.1f}" if due else ""
    first_remedy = action("start_sequentially", "started alone, loading sees only its own memory")
    stop = action("stop_other_process", "its memory is missing from the share")
    order = [first_remedy, stop] if others.started_together else [stop, first_remedy]
    return case.finding(
        "co-start-race",
        "other_process_on_gpu",
        first.event,
        title="Another process took GPU memory while the weights were loaded",
        explanation=f"{booked:.1f} GiB are booked as weights{size}: what another process takes in "
        f"the meantime counts as weights.{low}Nothing is wrong with the fraction.",
        evidence=[*case.evidence(end, *others.evidence[:6]), *case.failure_evidence(first)],
        remedies=order,
        not_helpful=["a lower mem_fraction_static: the share shrinks further"],
        rank=first.rank,
        phase="kv_pool",
        weight=FAILURE + 5,
        facts={
            "booked_gib": booked,
            "due_gib": due,
            "held_gib": others.held_gib and round(others.held_gib, 2),
        },
        playbook="other-process-oom",
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


def _remedies(case: Case, advice: FractionAdvice | None) -> list[Remedy]:
    larger = None
    if advice is not None and advice.possible and advice.fraction is not None:
        effect: dict[str, float | int] = {}
        if advice.free_gib_at_capture is not None:
            effect["free_gib_at_capture"] = round(advice.free_gib_at_capture, 2)
        if advice.pool_change_gib is not None:
            effect["kv_pool_gib"] = round(advice.pool_change_gib, 2)
        larger = flag(
            case.run.launch,
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
    class_="activation_oom",
    summary="GPU memory ran out while pools or workspaces were allocated, before capture",
    names={
        "workspace-oom": ("workspace_oom", "An attention workspace did not fit"),
        "lora-buffers-oom": ("lora_buffers_oom", "Adapter buffers did not fit"),
    },
    needs="a traceback of a rank with an out-of-memory error, between weights and capture",
)
def kv_pool_oom(case: Case) -> Iterator[Finding | Skip]:
    """Out of memory after the weights and before capture: the fraction promised too much."""
    first = first_shortage(case, *_TITLES)
    if first is None or first.phase != "kv_pool":
        return
    mechanism, class_ = class_of(case, first)
    yield case.finding(
        mechanism.replace("_", "-"),
        class_,
        first.event,
        title=f"GPU memory ran out {_TITLES[mechanism]}",
        explanation=f"After the weights, {oom_sentence(first)}. {_why(case, first, mechanism)}",
        evidence=[
            *case.evidence(*list(case.run.of("memory_pool_end"))[:1]),
            *case.failure_evidence(first),
        ],
        remedies=_before_capture(case, first, mechanism),
        not_helpful=["a higher mem_fraction_static: the pool then takes even more"],
        rank=first.rank,
        phase="kv_pool",
        weight=FAILURE,
        facts={"echo_ranks": echoes(case.run.failures, first)},
        playbook="kv-pool-oom",
    )


_TITLES = {
    "kv_pool_oom": "while the KV pool was allocated",
    "workspace_oom": "for an attention workspace, after the pool and before capture",
    "lora_buffers_oom": "for adapter buffers",
    "state_cache_oom": "for the state pool of linear attention",
    "hicache_oom": "for buffers of the hierarchical cache",
    "hicache_transfer": "for buffers of the hierarchical cache",
}


def _pool_exists(case: Case, first: Failure) -> bool:
    pools = case.run.of("kv_cache_allocated", "memory_pool_end")
    return any(e.rank == first.rank and e.line < first.line for e in pools)


def _why(case: Case, first: Failure, mechanism: str) -> str:
    if mechanism == "lora_buffers_oom" and not _pool_exists(case, first):
        return (
            "Adapter buffers are allocated before the pool is sized, so the fraction has no effect."
        )
    return (
        "The fraction promised more memory to the pool than there is once context, workspaces and "
        "buffers are counted."
    )


def _before_capture(case: Case, first: Failure, mechanism: str) -> list[Remedy]:
    if mechanism in ("lora_buffers_oom", "hicache_oom", "hicache_transfer"):
        found = remedies_for(case, first, mechanism)
        useless = mechanism == "lora_buffers_oom" and not _pool_exists(case, first)
        return [r for r in found if not (useless and r.name == "mem_fraction_static")]
    base = baseline_of(case) or 0.0
    # Room for what was refused, and for capture, which comes next and was never reached.
    missing = (first.oom.requested_gib if first.oom else 0.5) + 0.5
    capture = max(missing, 0.065 * base if base < 40 else 0.03 * base)
    lowered = lower_by(case, capture, "what was refused, and for capture, which comes next")
    backend = None
    if mechanism == "workspace_oom" and "flashinfer" in str(
        case.run.launch.get("attention_backend") or "flashinfer"
    ):
        backend = flag(
            case.run.launch,
            "attention_backend",
            "triton",
            "takes no fixed workspace of this size before capture",
            direction="set",
            cost="speed may differ",
        )
    fewer = None
    if mechanism == "state_cache_oom":
        fewer = remedies_for(case, first, mechanism)[-1]
    return kept(lowered, backend, fewer)
