"""What the memory rules share: the situation of a run, its capture need, and the words for both."""

from __future__ import annotations

from collections.abc import Iterable

from forensics.incident import Failure, Run
from forensics.memory import (
    Ledger,
    Requests,
    Settings,
    Situation,
    automatic_fraction,
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
    classes = case.config.get("architectures")
    named = (
        end.string("model_class") if end else None,
        case.run.launch.get("model_path"),
        case.config.get("model_type"),
        classes[0] if isinstance(classes, list) and classes else None,
    )
    return tuple(name if isinstance(name, str) else None for name in named)


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
