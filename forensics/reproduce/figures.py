"""Memory figures of a launch: measured from its ledgers, and predicted for another value.

Facts: memory model, sections 5 to 7. All sizes GiB, of the rank that has least.
"""

from __future__ import annotations

from collections.abc import Iterable

from forensics.incident import Run
from forensics.memory import PREFILL_KINDS, Ledger, Requests, Situation
from forensics.memory.model_config import config_beside
from forensics.memory.model_shape import ModelShape, ShapeError
from forensics.reproduce.model import Figures


def measured(run: Run) -> Figures:
    """What a launch's log shows of its memory, as far as it came."""
    ledgers = run.ledgers()
    poorest = min(
        (ledger for ledger in ledgers if ledger.capture_begin_gib is not None),
        key=lambda ledger: ledger.capture_begin_gib or 0.0,
        default=None,
    )
    captured = bool(ledgers) and all(_captured(ledger) for ledger in ledgers)
    graphs = [ledger.graphs_gib for ledger in ledgers if ledger.graphs_gib is not None]
    needs = [need for ledger in ledgers if (need := _need_gib(run, ledger)) is not None]
    tokens = _least(ledger.kv_tokens for ledger in ledgers)
    return Figures(
        free_gib_at_capture=poorest.capture_begin_gib if poorest else None,
        free_gib_after_capture=_least(ledger.end_gib for ledger in ledgers) if captured else None,
        capture_gib=_rounded(max(graphs)) if graphs and captured else None,
        prefill_graphs_gib=_rounded(max(map(_prefill_gib, ledgers), default=None)),
        capture_need_gib=_rounded(max(needs)) if needs else None,
        baseline_gib=_least(ledger.baseline_gib for ledger in ledgers),
        after_weights_gib=_least(ledger.free_before_pool_gib for ledger in ledgers),
        kv_pool_gib=_rounded(_least(ledger.pool_gib for ledger in ledgers)),
        kv_tokens=None if tokens is None else int(tokens),
        context_len=context_len(run),
        rank=(poorest.rank or None) if poorest else None,
    )


def predicted(
    figures: Figures, fraction: float, to: float, max_running_requests: int | None = None
) -> Figures:
    """What a launch with these figures would show at another fraction: C(f') = B (1 - f') - U.

    Free memory at capture is unknown where baseline or first capture begin are.
    """
    here = situation(figures, fraction, max_running_requests)
    if here is None:
        return Figures()
    tokens = here.tokens_at(to)
    scaled = here.free_scaled_at(to)
    free = here.free_at(to) if scaled is None else scaled
    return Figures(
        free_gib_at_capture=round(free, 2),
        kv_tokens=None if tokens is None else int(tokens),
        rank=figures.rank,
    )


def situation(
    figures: Figures, fraction: float, max_running_requests: int | None = None
) -> Situation | None:
    """The figures as the memory model takes them; None without baseline or capture begin."""
    if figures.baseline_gib is None or figures.free_gib_at_capture is None:
        return None
    typed = max_running_requests
    return Situation(
        fraction=fraction,
        baseline_gib=figures.baseline_gib,
        capture_begin_gib=figures.free_gib_at_capture,
        after_weights_gib=figures.after_weights_gib,
        pool_gib=figures.kv_pool_gib,
        kv_tokens=figures.kv_tokens,
        requests=Requests(figures.context_len, typed, typed=typed is not None)
        if figures.context_len
        else None,
    )


def context_len(run: Run) -> int | None:
    """Context length as printed or typed, else by the model's own configuration if it is here."""
    summary = run.first("max_total_tokens")
    printed = summary.number("context_len") if summary is not None else None
    typed = run.launch.number("context_length")
    return int(printed or typed or 0) or _configured_context(run.launch.get("model_path"))


def _configured_context(model_path: object) -> int | None:
    try:
        return ModelShape.of_config(config_beside(model_path)).context_len
    except ShapeError:
        return None


def _captured(ledger: Ledger) -> bool:
    """Whether decode graphs, the last of a target, were captured to the end."""
    return ledger.end_gib is not None and all(capture.finished for capture in ledger.captures)


def _need_gib(run: Run, ledger: Ledger) -> float | None:
    """The most that was held since the first capture began, a refused request included."""
    begin = ledger.capture_begin_gib
    if begin is None:
        return None
    seen = [low for capture in ledger.captures if (low := capture.lowest_gib) is not None]
    grown = begin - min(seen, default=begin)
    if all(capture.finished for capture in ledger.captures):
        return grown
    for failure in run.failures:
        oom = failure.oom
        if oom is None or failure.rank not in (None, ledger.rank):
            continue
        free = oom.free_gib
        grown = max(grown, (begin - free if free is not None else 0.0) + oom.requested_gib)
    return grown


def _prefill_gib(ledger: Ledger) -> float:
    """What the prefill graphs of a rank kept."""
    return sum(c.used_gib or 0.0 for c in ledger.captures if c.kind in PREFILL_KINDS)


def _least(values: Iterable[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
