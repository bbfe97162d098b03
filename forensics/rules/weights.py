"""Weights: do they fit, and where loading ran out of memory."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.findings import Finding, Remedy
from forensics.incident import Failure
from forensics.memory import lower_fraction
from forensics.remedies import action, flag, kept
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.capture import is_device_oom
from forensics.rules.case import Case
from forensics.rules.memory_facts import echoes, fraction_of, least, oom_sentence, whole

_DRAFT = ("eagle", "draft", "multi_layer", "standalone", "nextn", "mtp", "spec")


def is_draft(failure: Failure) -> bool:
    """Whether a failure happened in a draft model's worker."""
    frames = failure.traceback.frames if failure.traceback else []
    return any(
        f"{name}" in frame.file.rsplit("/", 2)[-1] or f"speculative/{name}" in frame.file
        for frame in frames
        for name in _DRAFT
    )


@rule(
    "weights-oom",
    class_="weights_do_not_fit",
    summary="GPU memory ran out while weights were loaded",
    needs="a traceback of a rank with an out-of-memory error, in loading",
)
def weights_oom(case: Case) -> Iterator[Finding | Skip]:
    """Out of memory in loading: the fraction has no effect there."""
    failed = [f for f in case.run.failures if f.phase == "load" and is_device_oom(f)]
    if not failed:
        return
    first = failed[0]
    if is_draft(first) and case.run.launch.get("speculative_algorithm"):
        yield _draft(case, first)
        return
    frames = first.traceback.frames if first.traceback else []
    repacking = any("process_weights_after_loading" in frame.function for frame in frames)
    ledgers = case.run.ledgers()
    free = least(ledger.baseline_gib for ledger in ledgers)
    room = f"{free:.2f} GiB were free when loading began" if free is not None else ""
    yield case.finding(
        "load-peak-oom" if repacking else "weights-oom",
        "load_peak_oom" if repacking else "weights_do_not_fit",
        first.event,
        title="The weights do not fit: GPU memory ran out while "
        + ("they were repacked" if repacking else "they were loaded"),
        explanation=f"{room + '; ' if room else ''}{oom_sentence(first)}. mem_fraction_static has "
        "no effect here: it sizes the KV pool, after loading.",
        evidence=[
            *case.evidence(case.run.first("load_weight_begin")),
            *case.failure_evidence(first),
        ],
        remedies=_more_room(case),
        not_helpful=[
            "mem_fraction_static, in either direction: it is used only after loading",
            "smaller graphs: they are captured after loading",
        ],
        rank=first.rank,
        phase="load",
        weight=FAILURE,
        facts={"free_before_gib": free, "echo_ranks": echoes(case.run.failures, first)},
        playbook="weights-oom",
    )


def _more_room(case: Case) -> list[Remedy]:
    launch = case.run.launch
    tp_size = whole(launch.get("tp_size")) or max(len(case.run.ranks), 1)
    return kept(
        action(
            "use_smaller_or_quantized_model",
            "the weights must fit with room to spare",
            cost="accuracy",
        ),
        action(
            "use_more_gpus", "each GPU then holds a smaller part of the weights", cost="hardware"
        ),
        flag(
            launch,
            "tp_size",
            tp_size * 2,
            "halves the weights of each GPU",
            basis="computed",
            cost="twice the GPUs",
        ),
        flag(
            launch,
            "cpu_offload_gb",
            16,
            "keeps a part of the weights in host memory",
            basis="heuristic",
            cost="much slower",
        ),
    )


def _draft(case: Case, first: Failure) -> Finding:
    """The pool was sized as if there were no draft model (to 0.5.13)."""
    ledgers = case.run.ledgers()
    baseline = least(ledger.baseline_gib for ledger in ledgers)
    fraction = fraction_of(case.run)
    weights = least(ledger.weights_gib for ledger in ledgers) or 0.0
    begins = [e for e in case.run.of("load_weight_begin") if e.line < first.line]
    free = begins[-1].number("avail_gib") if begins else None
    remedies: list[Remedy | None] = []
    if baseline is not None and fraction is not None:
        # What the draft needs is not known: it was refused while loading. Assume a draft of the
        # size that is left over plus half as much for its pool.
        missing = max(
            0.25 * baseline, (first.oom.requested_gib if first.oom else 0.0) + 0.2 * baseline
        )
        advice = lower_fraction(
            fraction, baseline, missing, least(ledger.after_weights_gib for ledger in ledgers)
        )
        if advice.possible:
            remedies.append(
                flag(
                    case.run.launch,
                    "mem_fraction_static",
                    advice.fraction,
                    f"leaves about {-(advice.pool_change_gib or 0) + (free or 0):.0f} GiB for draft "
                    "weights, draft KV and draft graphs",
                    direction="decrease",
                    basis="lower_bound",
                    cost="a smaller KV pool",
                    effect={"free_gib": round(-(advice.pool_change_gib or 0.0), 2)},
                )
            )
    remedies += [
        action(
            "upgrade_sglang", "from 0.5.14 on draft weights are counted before the pool is sized"
        ),
    ]
    return case.finding(
        "draft-model-oom",
        "draft_model_oom",
        first.event,
        title="The draft model does not fit: the KV pool was sized without it",
        explanation="This release sizes the KV pool and captures the target's graphs before the "
        f"draft is loaded; {f'{free:.2f} GiB' if free else 'too little'} was left for it, and "
        f"{oom_sentence(first)}. (Target weights: {weights:.1f} GiB a GPU.)",
        evidence=[*case.evidence(begins[-1] if begins else None), *case.failure_evidence(first)],
        remedies=kept(*remedies),
        not_helpful=["a higher mem_fraction_static: it takes the draft's room"],
        rank=first.rank,
        phase="load",
        weight=FAILURE,
        facts={"free_gib": free, "echo_ranks": echoes(case.run.failures, first)},
    )
