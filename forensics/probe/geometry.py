"""What to probe: a launch's geometry, from its log and the model's configuration or as typed.

Facts: memory model, sections 2, 4 and 7; capture costs, 'Measured curves'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from forensics.incident import Run
from forensics.memory import DecodeShape, Ledger, Need, Requests, decode_need, situation_of
from forensics.memory.model_shape import ModelShape
from forensics.probe.model import Foretold, Geometry, ProbeError

SERVER_BATCH = 256
"""Largest batch captured where neither log nor user says."""

_NO_COLLECTIVES = "Collectives of tensor parallelism are not in it: about 0.35 GiB more there."
_BY_FORMULA = (
    "The attention backend's buffers are allocated by formula; graphs, their pool and the peak are"
    " measured."
)
_STAND_IN = (
    "The layers are a stand-in with the model's matrices and plain attention: kernels, JIT"
    " compilation and workspaces of the real server are not tried."
)
_DECODE_ALONE = "Decode graphs alone are tried: no prefill graphs, no draft model."
_EXPERTS = "Experts are one feed-forward layer as wide as those that a token goes through."


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user sets; None: as in the log, else the default."""

    fraction: float | None = None
    largest_batch: int | None = None
    batch_sizes: Sequence[int] = ()
    backend: str | None = None
    tp_size: int | None = None
    context_len: int | None = None
    weights_gib: float | None = None
    kv_pool_gib: float | None = None
    other_gib: float | None = None
    free_gib: float | None = None
    """Free memory at capture, whatever it takes to get there."""


@dataclass(frozen=True, slots=True)
class Target:
    """A geometry with what is foretold of it."""

    geometry: Geometry
    foretold: Foretold
    notes: list[str] = field(default_factory=list)


def standard_batches(largest: int) -> list[int]:
    """The batch sizes that SGLang captures up to a largest one."""
    sizes = [1, 2, 4, 8, 12, *range(16, 257, 8), *range(272, 513, 16), *range(544, largest + 1, 32)]
    return sorted({size for size in sizes if size < largest} | {largest})


def target_of(run: Run | None, config: Mapping[str, Any], asked: Asked) -> Target:
    """What to try for a launch, or for what was typed alone.

    Raises ProbeError where sizes are missing, ShapeError for a useless configuration.
    """
    shape = ModelShape.of_config(config)
    tp_size = asked.tp_size or _flag(run, "tp_size") or 1
    context = asked.context_len or _context(run) or shape.context_len
    ledger = _poorest(run)
    batches = _batches(run, ledger, asked)
    backend = asked.backend or _text(run, "attention_backend")
    geometry = _geometry(shape, tp_size, context, batches, backend).model_copy(
        update={"kv_splits": _flag(run, "triton_attention_num_kv_splits") or 8}
    )
    sizes = _sizes(run, ledger, shape, geometry, asked)
    free, basis = _free_at_capture(run, ledger, context, asked)
    geometry = geometry.model_copy(update={**sizes, "free_gib_at_capture": free})
    need = need_of(geometry)
    foretold = Foretold(
        free_gib_at_capture=None if free is None else round(free, 2),
        basis=basis,
        capture_gib=None if need is None else round(sum(need.parts.values()), 2),
        capture_need_gib=None if need is None else round(need.gib, 2),
        parts={} if need is None else {n: round(size, 3) for n, size in need.parts.items()},
    )
    return Target(geometry, foretold, _notes(geometry, need))


def need_of(geometry: Geometry) -> Need | None:
    """What the memory model says that decode capture needs; None for an unknown backend."""
    if geometry.backend is None:
        return None
    return decode_need(
        DecodeShape(
            backend=geometry.backend,
            largest_batch=max(geometry.batch_sizes),
            sizes=len(geometry.batch_sizes),
            context_len=geometry.context_len,
            heads_per_gpu=geometry.heads,
            value_dim=geometry.value_dim,
            vocab=geometry.vocab,
            mla=geometry.latent_attention,
            experts=geometry.experts,
            kv_splits=geometry.kv_splits,
        )
    )


def _geometry(
    shape: ModelShape, tp_size: int, context_len: int, batches: list[int], backend: str | None
) -> Geometry:
    active = shape.ffn
    if shape.experts:
        active = (shape.experts_per_token + shape.shared_experts) * shape.expert_ffn
    return Geometry(
        layers=shape.layers,
        hidden=shape.hidden,
        heads=max(shape.heads // tp_size, 1),
        kv_heads=max(shape.kv_heads // tp_size, 1),
        head_dim=shape.head_dim,
        value_dim=shape.value_dim,
        ffn=max(active // tp_size, 1),
        vocab=max(shape.vocab // tp_size, 1),
        context_len=context_len,
        batch_sizes=batches,
        backend=backend,
        latent_attention=shape.kv_lora_rank is not None,
        experts=shape.experts > 0,
        tp_size=tp_size,
    )


def _sizes(
    run: Run | None, ledger: Ledger | None, shape: ModelShape, geometry: Geometry, asked: Asked
) -> dict[str, float]:
    """Weights, pool and the rest: typed, else from the log; weights else from the shape."""
    weights, pool = asked.weights_gib, asked.kv_pool_gib
    if weights is None:
        weights = ledger.weights_gib if ledger else None
    if weights is None:
        weights = shape.weights_gib(geometry.tp_size)
    if pool is None and ledger is not None and ledger.pool_gib is not None:
        pool = ledger.pool_gib
        fraction = _fraction(run)
        if asked.fraction is not None and fraction is not None and ledger.baseline_gib:
            pool += ledger.baseline_gib * (asked.fraction - fraction)
    if pool is None and asked.free_gib is None:
        raise ProbeError("no size of the KV pool: give --kv-pool, --free, or a log that shows it")
    return {
        "weights_gib": round(weights, 3),
        "kv_pool_gib": round(max(pool or 0.0, 0.0), 3),
        "other_gib": round(max(asked.other_gib or 0.0, 0.0), 3),
    }


def _free_at_capture(
    run: Run | None, ledger: Ledger | None, context_len: int, asked: Asked
) -> tuple[float | None, str]:
    """Free memory that capture is to begin with, and where the figure is from."""
    if asked.free_gib is not None:
        return asked.free_gib, "as asked"
    fraction = _fraction(run)
    if run is None or ledger is None or fraction is None or asked.kv_pool_gib is not None:
        return None, "what weights, pool and the rest leave"
    wanted = fraction if asked.fraction is None else asked.fraction
    if wanted == fraction and ledger.capture_begin_gib is not None:
        return ledger.capture_begin_gib, "as the log shows it"
    running = _flag(run, "max_running_requests")
    requests = Requests(context_len, running, typed=running is not None)
    here = situation_of(run.ledgers(), fraction, requests=requests)
    if here is None:
        return None, "what weights, pool and the rest leave"
    return here.free_at(wanted), f"by the log's ledger at mem_fraction_static={wanted:g}"


def _batches(run: Run | None, ledger: Ledger | None, asked: Asked) -> list[int]:
    if asked.batch_sizes:
        return sorted(set(asked.batch_sizes))
    captures = ledger.captures if ledger else []
    logged = next((c.sizes for c in captures if c.kind in ("decode", "verify") and c.sizes), [])
    largest = asked.largest_batch
    if largest is None and logged:
        return sorted(logged)
    if largest is None:
        largest = _flag(run, "cuda_graph_max_bs_decode") or SERVER_BATCH
    return standard_batches(largest)


def _notes(geometry: Geometry, need: Need | None) -> list[str]:
    notes = [_BY_FORMULA if need else _no_buffers(geometry), _STAND_IN, _DECODE_ALONE]
    if geometry.tp_size > 1:
        notes.append(_NO_COLLECTIVES)
    if geometry.experts:
        notes.append(_EXPERTS)
    return notes


def _no_buffers(geometry: Geometry) -> str:
    named = f"of {geometry.backend}" if geometry.backend else "of an attention backend not named"
    return f"The buffers {named} are not known and not allocated: the server needs more."


def _poorest(run: Run | None) -> Ledger | None:
    ledgers = run.ledgers() if run else []
    begun = [ledger for ledger in ledgers if ledger.capture_begin_gib is not None]
    return min(begun or ledgers, key=lambda ledger: ledger.capture_begin_gib or 0.0, default=None)


def _context(run: Run | None) -> int | None:
    summary = run.first("max_total_tokens") if run else None
    printed = summary.number("context_len") if summary is not None else None
    return int(printed) if printed else _flag(run, "context_length")


def _fraction(run: Run | None) -> float | None:
    return run.launch.number("mem_fraction_static") if run else None


def _flag(run: Run | None, name: str) -> int | None:
    number = run.launch.number(name) if run else None
    return None if number is None else int(number)


def _text(run: Run | None, name: str) -> str | None:
    value = run.launch.get(name) if run else None
    return value if isinstance(value, str) else None
