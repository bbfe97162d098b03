"""GPU memory that runs out while serving or in warm-up, by what was being computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from forensics.events import Event
from forensics.findings import Finding
from forensics.incident import Failure
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.memory_facts import echoes, least, oom_sentence
from forensics.rules.neighbours import ledger_of
from forensics.rules.serving_remedies import remedies_for
from forensics.rules.shortage import class_of, first_shortage

_NAMES = {
    "activation_oom": "activations",
    "logprob_oom": "full-vocabulary logits",
    "sampling_buffer_oom": "sampling buffers",
    "vision_encoder_oom": "the vision encoder",
    "hicache_transfer": "transfers of the hierarchical cache",
    "hicache_oom": "buffers of the hierarchical cache",
    "allocator_fragmentation": "a request that its cached pieces could not serve",
    "workspace_oom": "a kernel's workspace",
    "lora_buffers_oom": "adapter buffers",
    "state_cache_oom": "state of linear attention",
    "gpu_memory_leak": "what had grown since start-up",
}
"""What the memory was for, by mechanism."""


@rule(
    "serving-oom",
    class_="activation_oom",
    summary="GPU memory ran out while serving: activations did not fit in what was left",
    needs="a traceback of a rank with an out-of-memory error, while serving or warming up",
)
def serving_oom(case: Case) -> Iterator[Finding | Skip]:
    """The first rank that ran out of memory after capture."""
    first = first_shortage(case, *_NAMES)
    if first is None or first.phase not in ("serving", "warmup"):
        return
    mechanism = class_of(case, first)[0]
    ledger = ledger_of(case, first)
    left = ledger.end_gib if ledger else None
    left = left if left is not None else least(one.end_gib for one in case.run.ledgers())
    batch = batch_before(case, first)
    yield case.finding(
        "serving-oom",
        class_of(case, first)[1],
        first.event,
        title=_title(mechanism, first, left),
        explanation=_explanation(first, left, batch, mechanism),
        evidence=[*case.evidence(_last_capture(case, first)), *case.failure_evidence(first)],
        remedies=remedies_for(case, first, mechanism, batch.running if batch else None),
        not_helpful=["a higher mem_fraction_static: it leaves even less for activations"],
        rank=first.rank,
        phase=first.phase,
        weight=FAILURE,
        facts={
            "free_after_capture_gib": left,
            "requested_gib": first.oom and round(first.oom.requested_gib, 3),
            "echo_ranks": echoes(case.run.failures, first),
            "outcome": "failed",
        },
    )


@dataclass(frozen=True, slots=True)
class Batch:
    """The batch before a failure: its lane, the tokens it took in, and the requests running."""

    lane: str
    new_tokens: int | None
    running: int | None


def batch_before(case: Case, failure: Failure) -> Batch | None:
    """The last batch line before a failure, from the routine lines."""
    rows = case.run.serving
    if rows is None or not rows.height:
        return None
    import polars as pl

    before = rows.filter(
        (pl.col("source") == failure.event.source)
        & (pl.col("line") < failure.line)
        & pl.col("lane").is_in(["decode", "prefill"])
    )
    if not before.height:
        return None
    last = before.sort("line").row(-1, named=True)
    return Batch(last["lane"], last["new_tokens_max"], before["running"].max())  # type: ignore[arg-type]


def _title(mechanism: str, first: Failure, left: float | None) -> str:
    where = f"{first.rank} " if first.rank else ""
    had = f"; {left:.2f} GiB were left after start-up" if left is not None else ""
    return f"{where}ran out of GPU memory for {_NAMES.get(mechanism, mechanism)}{had}"


def _explanation(first: Failure, left: float | None, batch: Batch | None, mechanism: str) -> str:
    text = f"While {first.phase}, {oom_sentence(first) or 'an allocation was refused'}."
    if left is not None:
        text += f" After start-up {left:.2f} GiB were free for everything that serving allocates."
    if batch is not None:
        took = f" of {batch.new_tokens:,} new tokens" if batch.new_tokens else ""
        text += f" The last batch line before it: {batch.lane}{took}."
    if mechanism == "gpu_memory_leak":
        text += " What grew since then is no weights, pool, graphs or batch: it looks like a leak."
    if mechanism == "allocator_fragmentation":
        text += " What is cached would do, in one piece; it lies in pieces between other blocks."
    return text


def _last_capture(case: Case, first: Failure) -> Event | None:
    ends = [e for e in case.run.of("capture_end", "max_total_tokens") if e.rank == first.rank]
    return ends[-1] if ends else None
