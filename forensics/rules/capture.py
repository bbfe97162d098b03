"""Graph capture ran out of memory: how much it needed, and which fraction leaves that."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.events import Event
from forensics.findings import Finding, Remedy
from forensics.incident import Failure
from forensics.incident.ledgers import graph_kind
from forensics.memory import (
    PREFILL_KINDS,
    FractionAdvice,
    Need,
    best_need,
    lower_bound,
    prior_need,
)
from forensics.remedies import env, flag, kept
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.capture_facts import begin_of, earlier_need, last_begin, pending, sizes_of
from forensics.rules.case import Case
from forensics.rules.fractions import (
    baseline_of,
    fraction_for_capture,
    lower_by,
    lower_for_capture,
)
from forensics.rules.memory_facts import echoes, least, oom_sentence, situation
from forensics.rules.shortage import first_shortage, is_device_oom


@rule(
    "graph-capture-oom",
    class_="graph_capture_oom",
    summary="GPU memory ran out while CUDA graphs were captured",
    names={
        "piecewise-graph-oom": (
            "piecewise_graph_oom",
            "GPU memory ran out while prefill or piecewise graphs were captured",
        )
    },
    needs="a traceback of a rank with an out-of-memory error, in capture",
)
def graph_capture_oom(case: Case) -> Iterator[Finding | Skip]:
    """The first rank that ran out of memory in capture; the others are its echoes."""
    first, found = first_shortage(case, "graph_capture_oom"), failed_capture(case)
    if first is None or found is None:
        return
    failed = [f for f in case.run.failures if f.phase == "graph_capture" and is_device_oom(f)]
    kind, need, free = found
    prefill = kind in PREFILL_KINDS
    begin = begin_of(case, first, kind)
    advice = lower_for_capture(case, need, free) if need else None
    yield case.finding(
        "piecewise-graph-oom" if prefill else "graph-capture-oom",
        "piecewise_graph_oom" if prefill else "graph_capture_oom",
        first.event,
        title=_title(first, kind, need, begin),
        explanation=_explanation(case, first, need, begin, advice),
        evidence=[
            *case.evidence(begin),
            *case.failure_evidence(first),
        ],
        remedies=_remedies(case, first, kind, advice, need),
        not_helpful=_not_helpful(case, first),
        phase="graph_capture",
        rank=first.rank,
        weight=FAILURE,
        facts=_facts(case, first, failed, need, begin, advice),
        playbook="graph-capture-oom",
    )


def failed_capture(case: Case) -> tuple[str, Need | None, float | None] | None:
    """Kind of graphs, need, and what was free at its begin, of the capture that ran out first."""
    first = first_shortage(case, "graph_capture_oom")
    if first is None:
        return None
    failed = [f for f in case.run.failures if f.phase == "graph_capture" and is_device_oom(f)]
    kind = _kind_at(case, first)
    free = least(b.number("avail_gib") for f in failed if (b := begin_of(case, f, kind)))
    return kind, _need_of(case, failed, kind), free


def _kind_at(case: Case, failure: Failure) -> str:
    """The kind of graphs a failing rank was capturing: by its frames, else its last begin line."""
    frames = failure.traceback.frames if failure.traceback else []
    places = " ".join(f"{frame.file}:{frame.function}" for frame in frames)
    if "piecewise" in places:
        return "piecewise"
    if "prefill_cuda_graph" in places or "prefill_graph" in places:
        return "prefill"
    if "draft_extend_cuda_graph" in places:
        return "draft_extend"
    if "draft_cuda_graph" in places:
        return "draft"
    begin = last_begin(case, failure, failure.rank, None)
    return graph_kind(begin.string("what")) if begin else "decode"


def _need_of(case: Case, failed: list[Failure], kind: str) -> Need | None:
    """The need of the capture that failed: at least what was taken plus what was refused."""
    bounds = []
    for failure in failed:
        begin = begin_of(case, failure, kind)
        free = begin.number("avail_gib") if begin else None
        if failure.oom and failure.oom.free_gib is not None and free is not None:
            bounds.append(lower_bound(free, failure.oom.free_gib, failure.oom.requested_gib))
    worst = max(bounds, key=lambda need: need.gib, default=None)
    sizes = sizes_of(case, kind)
    to_come = pending(case, kind, sizes)
    better = best_need(earlier_need(case, kind, to_come[0].largest), worst)
    return better or prior_need(to_come)


def _title(first: Failure, kind: str, need: Need | None, begin: Event | None) -> str:
    where = f"{first.rank} " if first.rank else ""
    had = begin.number("avail_gib") if begin else None
    if need and had is not None:
        bound = "at least " if need.basis == "lower_bound" else "about "
        return (
            f"{where}ran out of GPU memory capturing {kind} graphs: "
            f"{bound}{need.gib:.2f} GiB needed, {had:.2f} GiB free"
        )
    return f"{where}ran out of GPU memory capturing {kind} graphs"


def _explanation(
    case: Case,
    first: Failure,
    need: Need | None,
    begin: Event | None,
    advice: FractionAdvice | None,
) -> str:
    parts = []
    had = begin.number("avail_gib") if begin else None
    if had is not None:
        parts.append(f"Capture began with {had:.2f} GiB free")
    sentence = oom_sentence(first)
    if sentence:
        parts.append(f"{'; ' if parts else ''}{sentence}")
    text = "".join(parts) + ". "
    if need and need.basis == "lower_bound" and had is not None:
        text += (
            f"So capture needed at least {need.gib:.2f} GiB, {need.gib - had:.2f} more than "
            "there was; a lower bound, because it had not finished. "
        )
    text += _partition(case)
    if advice and advice.arithmetic:
        text += " Arithmetic (GiB): " + "; ".join(advice.arithmetic) + "."
    return text.strip()


def _partition(case: Case) -> str:
    """Partition against capacity: do the weights leave room that the fraction gave away?"""
    here = situation(case)
    if here is None or here.after_weights_gib is None:
        return ""
    weights = here.baseline_gib - here.after_weights_gib
    share = weights / here.baseline_gib
    if share > 0.9:
        return (
            f"Weights take {weights:.1f} of {here.baseline_gib:.1f} GiB: little is left to share."
        )
    pool = f", the KV pool {here.pool_gib:.1f}" if here.pool_gib else ""
    return (
        f"A question of partition, not of capacity: weights take {weights:.1f} of "
        f"{here.baseline_gib:.1f} GiB a GPU{pool}; mem_fraction_static={here.fraction:g} left "
        f"{here.baseline_gib * (1 - here.fraction):.2f} GiB for everything else."
    )


def _remedies(
    case: Case, first: Failure, kind: str, advice: FractionAdvice | None, need: Need | None
) -> list[Remedy]:
    launch = case.run.launch
    fraction = fraction_for_capture(case, advice, need) if need else None
    if fraction is None and (advice is None or advice.possible):
        # Too few lines to predict what capture would find: five times the refused request.
        asked = first.oom.requested_gib if first.oom else 0.0
        room = max(5 * asked, 0.05 * (baseline_of(case) or 0.0))
        fraction = lower_by(case, room, "capture")
    if kind in PREFILL_KINDS:
        return kept(*_without_prefill_graphs(case), fraction)
    smaller = _smaller_batch(case)
    fragments = None
    oom = first.oom
    if oom and (oom.reserved_unallocated_gib or 0.0) > 2 * oom.requested_gib:
        fragments = env(
            "PYTORCH_CUDA_ALLOC_CONF",
            "set",
            f"{oom.reserved_unallocated_gib:.2f} GiB are cached in pieces that did not fit the "
            "request; it helps only with pieces that arise after the pool was sized",
            to="expandable_segments:True",
            cost="none known; not with memory saver or IPC-shared weights",
        )
    last_resort = flag(
        launch,
        "disable_cuda_graph",
        True,
        "starts without graphs; a last resort",
        cost="decoding becomes much slower",
    )
    return kept(fraction, smaller, fragments, last_resort)


def _smaller_batch(case: Case) -> Remedy | None:
    sizes = sizes_of(case, "decode") or sizes_of(case, "verify")
    largest = max(sizes, default=0)
    if not largest:
        listed = case.run.launch.get("cuda_graph_max_bs")
        largest = listed if isinstance(listed, int) else 0
    if largest < 16:
        return None
    smaller = max(largest // 4, 8)
    return flag(
        case.run.launch,
        "cuda_graph_max_bs",
        smaller,
        f"captures up to {smaller} instead of {largest}: buffers shrink with the largest batch",
        direction="decrease",
        basis="heuristic",
        cost=f"batches above {smaller} run without graphs",
    )


def _without_prefill_graphs(case: Case) -> list[Remedy]:
    launch = case.run.launch
    asked = launch.get("enable_piecewise_cuda_graph") is True
    why = "prefill graphs are what ran out; decode graphs do not need them"
    cost = "prefill runs without graphs"
    tokens = launch.get("piecewise_cuda_graph_max_tokens")
    fewer = None
    if isinstance(tokens, int) and tokens > 512:
        fewer = flag(
            launch,
            "piecewise_cuda_graph_max_tokens",
            tokens // 4,
            "captures fewer and smaller prefill shapes",
            basis="heuristic",
            cost="long prefills run without graphs",
        )
    return kept(
        flag(launch, "enable_piecewise_cuda_graph", None, why, direction="remove", cost=cost)
        if asked
        else None,
        None if asked else flag(launch, "disable_piecewise_cuda_graph", True, why, cost=cost),
        fewer,
    )


def _not_helpful(case: Case, first: Failure) -> list[str]:
    del first
    told = [
        "a higher mem_fraction_static takes more from what capture needs",
        "another KV dtype: the pool takes the same bytes whatever the type",
    ]
    here = situation(case)
    if here and here.after_weights_gib and here.after_weights_gib > 0.15 * here.baseline_gib:
        told.append("more GPUs: the weights fit with room to spare")
    return told


def _facts(
    case: Case,
    first: Failure,
    failed: list[Failure],
    need: Need | None,
    begin: Event | None,
    advice: FractionAdvice | None,
) -> dict[str, object]:
    facts: dict[str, object] = {"echo_ranks": echoes(case.run.failures, first)}
    had = begin.number("avail_gib") if begin else None
    if need is not None:
        facts |= {"need_gib": round(need.gib, 2), "basis": need.basis}
        if had is not None:
            facts["deficit_gib"] = round(need.gib - had, 2)
    if had is not None:
        facts["free_gib_at_begin"] = had
    if first.oom:
        facts["requested_gib"] = round(first.oom.requested_gib, 3)
    if advice and advice.fraction_next:
        facts["safer_fraction"] = advice.fraction_next
    if len({f.rank for f in failed}) > 1:
        facts["ranks_failed"] = list(dict.fromkeys(f.rank for f in failed if f.rank))
    return facts
