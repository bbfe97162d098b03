"""GPU memory that runs out while serving or in warm-up, by what was being computed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from forensics.events import Event
from forensics.findings import Finding, Remedy
from forensics.incident import Failure
from forensics.memory import lower_fraction
from forensics.remedies import env, flag, kept
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.capture import is_device_oom
from forensics.rules.case import Case
from forensics.rules.memory_facts import echoes, fraction_of, least, oom_sentence, whole

_WHAT = (
    ("logprob_oom", re.compile(r"logits_processor\.py|logprob")),
    ("sampling_buffer_oom", re.compile(r"sampler\.py|sampling_batch_info|sampling_info")),
    (
        "vision_encoder_oom",
        re.compile(
            r"get_image_feature|get_video_feature|mm_utils|vision|visual|image_processor|multimodal"
        ),
    ),
    ("hicache_oom", re.compile(r"cache_controller|hiradix|memory_pool_host")),
)
"""Class to the frames that show it, the first that fits from the innermost frame outwards."""


def class_of_frames(failure: Failure) -> str:
    """The class of a serving out-of-memory, from its innermost frames."""
    frames = failure.traceback.cause.frames if failure.traceback else []
    for frame in reversed(frames[-8:]):
        place = f"{frame.file}:{frame.function}"
        for class_, pattern in _WHAT:
            if pattern.search(place):
                return class_
    return "activation_oom"


@rule(
    "serving-oom",
    class_="activation_oom",
    summary="GPU memory ran out while serving: activations did not fit in what was left",
    needs="a traceback of a rank with an out-of-memory error, while serving or warming up",
)
def serving_oom(case: Case) -> Iterator[Finding | Skip]:
    """The first rank that ran out of memory after capture."""
    failed = [f for f in case.run.failures if f.phase in ("serving", "warmup") and is_device_oom(f)]
    if not failed:
        return
    first = failed[0]
    class_ = class_of_frames(first)
    left = least(ledger.end_gib for ledger in case.run.ledgers())
    batch = _batch_before(case, first)
    yield case.finding(
        "serving-oom",
        class_,
        first.event,
        title=_title(class_, first, left),
        explanation=_explanation(first, left, batch),
        evidence=[*case.evidence(_last_capture(case, first), batch), *case.failure_evidence(first)],
        remedies=_remedies(case, first, class_),
        not_helpful=["a higher mem_fraction_static: it leaves even less for activations"],
        rank=first.rank,
        phase=first.phase,
        weight=FAILURE,
        facts={"free_after_capture_gib": left, "echo_ranks": echoes(case.run.failures, first)},
    )


_NAMES = {
    "activation_oom": "activations",
    "logprob_oom": "full-vocabulary logits",
    "sampling_buffer_oom": "sampling buffers",
    "vision_encoder_oom": "the vision encoder",
    "hicache_oom": "hierarchical-cache transfers",
}


def _title(class_: str, first: Failure, left: float | None) -> str:
    where = f"{first.rank} " if first.rank else ""
    had = f"; {left:.2f} GiB were left after start-up" if left is not None else ""
    return f"{where}ran out of GPU memory for {_NAMES.get(class_, class_)}{had}"


def _explanation(first: Failure, left: float | None, batch: Event | None) -> str:
    text = f"While {first.phase}, {oom_sentence(first) or 'an allocation was refused'}."
    if left is not None:
        text += f" After start-up {left:.2f} GiB were free for everything that serving allocates."
    if batch is not None:
        new = batch.number("new_tokens")
        text += f" The last batch before it: {batch.kind.split('_')[0]}"
        text += f" of {new:.0f} new tokens." if new else "."
    return text


def _batch_before(case: Case, first: Failure) -> Event | None:
    del first
    return case.run.first("no_such_batch")


def _last_capture(case: Case, first: Failure) -> Event | None:
    ends = [e for e in case.run.of("capture_end", "max_total_tokens") if e.rank == first.rank]
    return ends[-1] if ends else None


def _remedies(case: Case, first: Failure, class_: str) -> list[Remedy]:
    launch = case.run.launch
    fraction = _lower(case, first)
    chunk = whole(launch.get("chunked_prefill_size"))
    smaller_chunk = None
    if chunk and chunk > 1024:
        smaller_chunk = flag(
            launch,
            "chunked_prefill_size",
            chunk // 2,
            "activations of a prefill grow with its chunk",
            basis="heuristic",
            cost="slower prefill of long prompts",
        )
    elif chunk is not None and chunk <= 0:
        smaller_chunk = flag(
            launch,
            "chunked_prefill_size",
            4096,
            "chunking bounds the activations of a prefill",
            direction="set",
            basis="heuristic",
            cost="slower prefill of long prompts",
        )
    running = whole(launch.get("max_running_requests"))
    fewer = flag(
        launch,
        "max_running_requests",
        min(running or 2048, 2048) // 4,
        "buffers of sampling and decoding grow with running requests",
        direction="decrease",
        basis="heuristic",
        cost="less concurrency",
    )
    fragments = None
    oom = first.oom
    if oom and (oom.reserved_unallocated_gib or 0.0) > max(oom.requested_gib, 0.5):
        fragments = env(
            "PYTORCH_CUDA_ALLOC_CONF",
            "set",
            f"{oom.reserved_unallocated_gib:.2f} GiB are cached in pieces that did not fit",
            to="expandable_segments:True",
        )
    if class_ in ("logprob_oom", "vision_encoder_oom"):
        return kept(smaller_chunk, fraction, fragments)
    if class_ == "sampling_buffer_oom":
        return kept(fewer, fraction, smaller_chunk)
    return kept(fraction, smaller_chunk, fragments)


def _lower(case: Case, first: Failure) -> Remedy | None:
    fraction = fraction_of(case.run)
    ledgers = case.run.ledgers()
    baseline = least(ledger.baseline_gib for ledger in ledgers)
    if fraction is None or baseline is None:
        return None
    missing = max((first.oom.requested_gib if first.oom else 0.0), 0.025 * baseline)
    advice = lower_fraction(
        fraction, baseline, missing, least(ledger.free_before_pool_gib for ledger in ledgers)
    )
    if not advice.possible:
        return None
    freed = -(advice.pool_change_gib or 0.0)
    return flag(
        case.run.launch,
        "mem_fraction_static",
        advice.fraction,
        f"leaves {freed:.1f} GiB more for activations",
        direction="decrease",
        basis="lower_bound",
        cost="a smaller KV pool",
        effect={"free_gib": round(freed, 2)},
    )
