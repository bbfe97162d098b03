"""Weights: do they fit, and where loading ran out of memory."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.findings import Finding, Remedy
from forensics.incident import Failure
from forensics.remedies import action, flag, kept
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.fractions import baseline_of, lower_by
from forensics.rules.memory_facts import echoes, least, oom_sentence, whole
from forensics.rules.model_size import estimated_weights_gib
from forensics.rules.shortage import first_shortage, places


@rule(
    "weights-oom",
    class_="weights_do_not_fit",
    summary="GPU memory ran out while weights were loaded",
    needs="a traceback of a rank with an out-of-memory error, in loading",
)
def weights_oom(case: Case) -> Iterator[Finding | Skip]:
    """Out of memory in loading: the fraction has no effect there."""
    first = first_shortage(case, "weights_do_not_fit")
    if first is None:
        return
    expected = estimated_weights_gib(case)
    size = f" The name says about {expected:.1f} GiB a GPU." if expected else ""
    yield _loading(
        case,
        first,
        "weights-oom",
        "weights_do_not_fit",
        "The weights do not fit: GPU memory ran out while they were loaded",
        "mem_fraction_static has no effect here: it sizes the KV pool, after loading." + size,
        _more_room(case),
    )


@rule(
    "load-peak-oom",
    class_="load_peak_oom",
    summary="Weights were loaded; converting or replacing them needed a second copy",
    needs="a traceback with an out-of-memory error in the conversion of weights",
)
def load_peak_oom(case: Case) -> Iterator[Finding | Skip]:
    """Out of memory in repacking, quantising or updating: the peak does not fit, the rest does."""
    first = first_shortage(case, "load_peak_oom")
    if first is None:
        return
    updating = any("update_weights" in place for place in places(first))
    what = "replaced" if updating else "converted"
    yield _loading(
        case,
        first,
        "load-peak-oom",
        "load_peak_oom",
        f"The peak of loading does not fit: GPU memory ran out while weights were {what}",
        f"While weights are {what}, old and new exist side by side for a moment. "
        + (
            "The KV pool leaves no room for that."
            if updating
            else "mem_fraction_static has no effect here: the pool is sized after loading."
        ),
        _smaller_peak(case, first, updating),
    )


def _loading(
    case: Case,
    first: Failure,
    rule_id: str,
    class_: str,
    title: str,
    why: str,
    remedies: list[Remedy],
) -> Finding:
    free = least(ledger.baseline_gib for ledger in case.run.ledgers())
    room = f"{free:.2f} GiB were free when loading began; " if free is not None else ""
    said = oom_sentence(first) or "an allocation was refused"
    return case.finding(
        rule_id,
        class_,
        first.event,
        title=title,
        explanation=f"{room}{said}. {why}",
        evidence=[
            *case.evidence(case.run.first("load_weight_begin")),
            *case.failure_evidence(first),
        ],
        remedies=remedies,
        not_helpful=[
            "a change of mem_fraction_static: it is used only after loading",
            "smaller graphs: they are captured after loading",
        ]
        if first.phase == "load"
        else ["a higher mem_fraction_static: it leaves even less for the second copy"],
        rank=first.rank,
        phase=first.phase,
        weight=FAILURE,
        facts={
            "free_before_gib": free,
            "estimated_weights_gib": estimated_weights_gib(case),
            "echo_ranks": echoes(case.run.failures, first),
        },
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


def _smaller_peak(case: Case, first: Failure, updating: bool) -> list[Remedy]:
    if updating:
        missing = max(first.oom.requested_gib if first.oom else 0.0, 0.05 * (_base(case)))
        return kept(
            lower_by(case, missing, "the second copy of weights"),
            action("upgrade_sglang", "newer releases update weights in smaller buckets"),
        )
    return kept(
        action(
            "use_preconverted_checkpoint",
            "a checkpoint already in the format that the kernels use is not converted",
        ),
        action("use_more_gpus", "each GPU then converts a smaller part", cost="hardware"),
        action("upgrade_sglang", "newer releases convert layer by layer"),
        flag(
            case.run.launch,
            "cpu_offload_gb",
            8,
            "keeps a part of the weights in host memory during conversion",
            basis="heuristic",
            cost="slower",
        ),
    )


def _base(case: Case) -> float:
    return baseline_of(case) or 0.0


@rule(
    "draft-model-oom",
    class_="draft_model_oom",
    summary="The draft model does not fit beside a pool that was sized without it",
    needs="a traceback with an out-of-memory error in the draft worker",
)
def draft_model_oom(case: Case) -> Iterator[Finding | Skip]:
    """The pool was sized as if there were no draft model (to 0.5.13)."""
    first = first_shortage(case, "draft_model_oom")
    if first is None:
        return
    weights = least(ledger.weights_gib for ledger in case.run.ledgers()) or 0.0
    begins = [e for e in case.run.of("load_weight_begin") if e.line < first.line]
    free = begins[-1].number("avail_gib") if begins else None
    yield case.finding(
        "draft-model-oom",
        "draft_model_oom",
        first.event,
        title="The draft model does not fit: the KV pool was sized without it",
        explanation="This release sizes the KV pool and captures the target's graphs before the "
        f"draft is loaded; {f'{free:.2f} GiB' if free else 'too little'} was left for it, and "
        f"{oom_sentence(first)}. (Target weights: {weights:.1f} GiB a GPU.)",
        evidence=[*case.evidence(begins[-1] if begins else None), *case.failure_evidence(first)],
        remedies=_draft_remedies(case, first),
        not_helpful=["a higher mem_fraction_static: it takes the draft's room"],
        rank=first.rank,
        phase=first.phase,
        weight=FAILURE,
        facts={"free_gib": free, "echo_ranks": echoes(case.run.failures, first)},
    )


def _draft_remedies(case: Case, first: Failure) -> list[Remedy]:
    base = _base(case)
    requested = first.oom.requested_gib if first.oom else 0.0
    draft = estimated_weights_gib(case, "speculative_draft_model_path") or 0.2 * base
    # In loading, weights and KV of the draft are still to come; in its pool the KV alone.
    missing = max(draft + requested, 0.25 * base) if first.phase == "load" else requested + 2.0
    return kept(
        lower_by(case, missing, "draft weights, draft KV and draft graphs") if base else None,
        action(
            "upgrade_sglang", "from 0.5.14 on draft weights are counted before the pool is sized"
        ),
    )
