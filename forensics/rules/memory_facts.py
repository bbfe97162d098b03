"""What the memory rules share: the situation of a run, its capture need, and the words for both."""

from __future__ import annotations

from collections.abc import Iterable

from forensics.events import Event
from forensics.incident import Failure, Run
from forensics.incident.ledgers import graph_kind
from forensics.memory import (
    Capture,
    DecodeShape,
    Ledger,
    Need,
    Pending,
    Requests,
    Settings,
    Situation,
    automatic_fraction,
    capture_class,
    decode_need,
    has_experts,
    largest_batch,
    observed_need,
    uses_mla,
)
from forensics.rules.case import Case

DRAFT_INSIDE_BUDGET = "0.5.14"
"""From this release the draft's weights and pool are sized with the target's."""


def least(values: Iterable[float | None]) -> float | None:
    """The smallest known value."""
    return min((value for value in values if value is not None), default=None)


def whole(value: object) -> int | None:
    """A flag's value if it is a whole number."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def model_names(case: Case) -> tuple[str | None, ...]:
    """Class, type and path of the model: names from which its kind is read."""
    end = case.run.first("load_weight_end")
    path = case.run.launch.get("model_path")
    architectures = case.config.get("architectures") or [None]
    return (
        end.string("model_class") if end else None,
        path if isinstance(path, str) else None,
        case.config.get("model_type"),
        architectures[0],
    )


def fraction_of(run: Run) -> float | None:
    """The fraction of the launch, as resolved."""
    return run.launch.number("mem_fraction_static")


def context_len(case: Case) -> int | None:
    """Context length: from the summary line, the flag, or the model's config."""
    summary = case.run.first("max_total_tokens")
    if summary is not None and (found := summary.number("context_len")):
        return int(found)
    flag = whole(case.run.launch.get("context_length"))
    return flag or whole(case.config.get("max_position_embeddings"))


def automatic(case: Case) -> float | None:
    """The fraction that the release would pick for these flags; None without the card's size."""
    total = least(ledger.total_gib for ledger in case.run.ledgers())
    if total is None:
        return None
    launch = case.run.launch
    settings = Settings.of_launch(launch.get, launch.table().version)
    # nvidia-smi's total is about 0.65 GiB above what the allocator prints (memory model, 1).
    return automatic_fraction((total + 0.65) * 1024, settings)


def situation(case: Case) -> Situation | None:
    """The figures up to the first capture, the least over ranks; None if too few are known."""
    fraction, ledgers = fraction_of(case.run), case.run.ledgers()
    baseline = least(ledger.baseline_gib for ledger in ledgers)
    begin = least(ledger.capture_begin_gib for ledger in ledgers)
    assumed: list[str] = []
    if begin is None:
        begin = least(ledger.after_pool_gib for ledger in ledgers)
        assumed.append("free after the pool stands for free at capture begin")
    if baseline is None:
        baseline = _baseline_from_total(ledgers)
        assumed.append("free before weights taken as the card's total less 0.9 GiB")
    if fraction is None or baseline is None or begin is None:
        return None
    context, launch = context_len(case), case.run.launch
    requests = None
    if context:
        requests = Requests(
            context,
            whole(launch.get("max_running_requests")),
            typed=launch.get("max_running_requests") is not None,
            draft_tokens=whole(launch.get("speculative_num_draft_tokens")) or 0,
        )
    return Situation(
        fraction=fraction,
        baseline_gib=baseline,
        capture_begin_gib=begin,
        after_weights_gib=least(ledger.free_before_pool_gib for ledger in ledgers),
        pool_gib=least(ledger.pool_gib for ledger in ledgers),
        kv_tokens=whole(least(ledger.kv_tokens for ledger in ledgers)),
        requests=requests,
        total_gib=least(ledger.total_gib for ledger in ledgers),
        automatic_fraction=automatic(case),
        assumed=tuple(assumed),
    )


def _baseline_from_total(ledgers: list[Ledger]) -> float | None:
    total = least(ledger.total_gib for ledger in ledgers)
    return None if total is None else total - 0.9


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


def oom_sentence(failure: Failure) -> str:
    """The allocator's figures in one sentence."""
    oom = failure.oom
    if oom is None:
        return ""
    parts = [f"a request of {gib(oom.requested_gib)} was refused"]
    if oom.free_gib is not None:
        parts.append(f"with {gib(oom.free_gib)} free")
    if oom.gpu is not None and oom.total_gib is not None:
        parts.append(f"on GPU {oom.gpu} of {oom.total_gib:.2f} GiB")
    text = " ".join(parts)
    if oom.allocated_gib is not None and oom.reserved_unallocated_gib is not None:
        text += (
            f" (PyTorch holds {oom.allocated_gib:.2f} GiB and caches "
            f"{oom.reserved_unallocated_gib:.2f} GiB"
        )
        outside = oom.outside_torch_gib
        text += f"; {outside:.2f} GiB of the process are outside it)" if outside else ")"
    return text


def gib(size: float) -> str:
    """A size in words: MiB below one GiB."""
    return f"{size * 1024:.0f} MiB" if size < 0.995 else f"{size:.2f} GiB"


def echoes(failures: Iterable[Failure], first: Failure) -> list[str]:
    """Ranks that failed after the first one in the same phase: echoes of it."""
    return [
        failure.rank
        for failure in failures
        if failure is not first and failure.rank and failure.rank != first.rank
    ]
