"""Facts of graph capture that its rules share: what is captured, and what it needs."""

from __future__ import annotations

from forensics.events import Event
from forensics.incident import Failure
from forensics.incident.ledgers import graph_kind
from forensics.memory import (
    Capture,
    DecodeShape,
    Need,
    Pending,
    capture_class,
    decode_need,
    has_experts,
    largest_batch,
    observed_need,
    uses_mla,
)
from forensics.rules.case import Case
from forensics.rules.memory_facts import context_len, model_names, whole


def pending(case: Case, kind: str, sizes: list[int]) -> list[Pending]:
    """The capture that begins, and those that are still to come after it."""
    launch, names = case.run.launch, model_names(case)
    tp_size = whole(launch.get("tp_size")) or len(case.run.ranks) or 1
    weight = capture_class(*names, tp_size=tp_size, ep_size=whole(launch.get("ep_size")) or 1)
    wide = launch.get("enable_dp_attention") is True or launch.get("moe_a2a_backend") in (
        "deepep",
        "mooncake",
    )
    largest = max(sizes, default=0) or (
        largest_batch(launch.get) if kind in ("decode", "verify") else None
    )
    found = [Pending(kind, weight, largest, wide)]
    if launch.get("speculative_algorithm") and kind in ("decode", "verify"):
        found.append(Pending("draft", weight, largest))
    return found


def computed_need(case: Case, sizes: list[int], prefill_before: bool) -> Need | None:
    """The need of decode capture from backend, batch sizes and the model's config."""
    config, launch = case.config, case.run.launch
    context = context_len(case)
    heads, vocab = whole(config.get("num_attention_heads")), whole(config.get("vocab_size"))
    backend = launch.get("decode_attention_backend") or launch.get("attention_backend")
    if not sizes or not context or not heads or not vocab or not isinstance(backend, str):
        return None
    names = model_names(case)
    latent = whole(config.get("kv_lora_rank"))
    hidden = whole(config.get("hidden_size")) or 0
    tp_size = whole(launch.get("tp_size")) or 1
    return decode_need(
        DecodeShape(
            backend=backend,
            largest_batch=max(sizes),
            sizes=len(sizes),
            context_len=context,
            heads_per_gpu=max(heads // tp_size, 1),
            value_dim=latent or whole(config.get("head_dim")) or hidden // heads,
            vocab=vocab,
            mla=latent is not None or uses_mla(*names),
            experts=has_experts(*names),
            tp_size=tp_size,
            kv_splits=whole(launch.get("triton_attention_num_kv_splits")) or 8,
            prefill_graphs_before=prefill_before,
        )
    )


def earlier_need(case: Case, kind: str, largest: int | None) -> Need | None:
    """What the same capture used in another run of the same model and at least this batch."""
    model = case.run.launch.get("model_path")
    found: list[Capture] = []
    for run in case.incident.runs:
        if run is case.run or run.launch.get("model_path") != model or run.number > case.run.number:
            continue
        for ledger in run.ledgers():
            for capture in ledger.captures:
                same = largest is None or max(capture.sizes, default=largest) >= largest
                if capture.kind == kind and capture.finished and same:
                    found.append(capture)
    return observed_need(found)


def capture_events(case: Case) -> dict[str, list[Event]]:
    """Capture-begin events by kind of graphs, in reading order."""
    found: dict[str, list[Event]] = {}
    for event in case.run.of("capture_begin"):
        found.setdefault(graph_kind(event.string("what")), []).append(event)
    return found


def sizes_of(case: Case, kind: str) -> list[int]:
    """Batch sizes of a kind of graphs: as logged by any rank, else from the launch's flags."""
    for ledger in case.run.ledgers():
        for capture in ledger.captures:
            if capture.kind == kind and capture.sizes:
                return capture.sizes
    if kind in ("decode", "verify"):
        listed = case.run.launch.get("cuda_graph_bs")
        if isinstance(listed, list):
            return [size for size in listed if isinstance(size, int)]
    return []


def begin_of(case: Case, failure: Failure, kind: str) -> Event | None:
    """The begin line of a kind of graphs before a failure.

    Of the failing rank, or of any (draft graphs are announced by one rank); else the last one.
    """
    return (
        last_begin(case, failure, failure.rank, kind)
        or last_begin(case, failure, None, kind)
        or last_begin(case, failure, failure.rank, None)
    )


def last_begin(case: Case, failure: Failure, rank: str | None, kind: str | None) -> Event | None:
    """The last begin line before a failure, of a rank and a kind of graphs where given."""
    found = None
    for event in case.run.of("capture_begin"):
        mine = event.source == failure.event.source and (not rank or event.rank == rank)
        if not mine or event.line >= failure.line:
            continue
        if kind is None or graph_kind(event.string("what")) == kind:
            found = event
    return found
