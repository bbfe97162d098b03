"""Buffers of collectives: NCCL, symmetric memory, DeepEP. They live outside PyTorch's allocator."""

from __future__ import annotations

import re
from collections.abc import Iterator

from forensics.events import Event
from forensics.findings import Finding, Remedy
from forensics.incident import Failure
from forensics.remedies import action, env, flag, kept
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.fractions import baseline_of, lower_by, weights_share
from forensics.rules.memory_facts import echoes, least, oom_sentence
from forensics.rules.shortage import first_shortage, places

_FEW_GIB = 2.0
"""NCCL's channels of one communicator take up to this much."""
_DISPATCH_GIB = 4.0


@rule(
    "comm-buffer-oom",
    class_="comm_buffer_oom",
    summary="GPU memory ran out for buffers of collectives, outside PyTorch's allocator",
    needs="an NCCL error with its last words, or a traceback in a communication buffer",
)
def comm_buffer_oom(case: Case) -> Iterator[Finding | Skip]:
    """NCCL and its kin allocate at first use; what weights and pool left was too little."""
    first = first_shortage(case, "comm_buffer_oom")
    if first is None:
        return
    left = least(
        one.end_gib or one.capture_begin_gib or one.after_pool_gib for one in case.run.ledgers()
    )
    words = _last_words(case, first)
    had = f" {left:.2f} GiB were free by then." if left is not None else ""
    asked = words.number("requested_gib") if words else None
    what = f" It asked for {asked * 1024:.0f} MiB." if asked else ""
    yield case.finding(
        "comm-buffer-oom",
        "comm_buffer_oom",
        first.event,
        title=f"{first.rank + ' ' if first.rank else ''}had no GPU memory for "
        f"{_kind(first)}: it only looks like a network error",
        explanation="Collectives take their buffers from the driver, beside PyTorch, when they are "
        f"first used; weights and KV pool had left too little.{had}{what} "
        f"{oom_sentence(first)}".rstrip(),
        evidence=[*case.evidence(*_thin(case, first), words), *case.failure_evidence(first)],
        remedies=_remedies(case, first),
        not_helpful=[
            "other network interfaces or NCCL transports: the call failed for memory",
            "PYTORCH_CUDA_ALLOC_CONF: these buffers are not PyTorch's",
            "a higher mem_fraction_static: it leaves even less beside the pool",
        ],
        rank=first.rank,
        phase=first.phase,
        weight=FAILURE + 1,
        facts={
            "free_after_start_gib": left,
            "echo_ranks": echoes(case.run.failures, first),
            "outcome": "failed",
        },
    )


def _kind(first: Failure) -> str:
    inner = " ".join(places(first)[-4:])
    if re.search(r"deep_ep|deepep|nvshmem", inner):
        return "DeepEP's buffers"
    if re.search(r"symm|pynccl_allocator", inner):
        return "symmetric memory"
    return "buffers of NCCL and the all-reduce"


def _last_words(case: Case, first: Failure) -> Event | None:
    kinds = ("nccl_calloc_failed", "nccl_warn_out_of_memory")
    near = [e for e in case.run.of(*kinds) if abs(e.line - first.event.end_line) < 16]
    return near[0] if near else case.run.first(*kinds)


def _thin(case: Case, first: Failure) -> list[Event]:
    """The last line of the failing rank before it failed that shows free memory."""
    shown = [
        e
        for e in case.run.of("memory_pool_end", "capture_begin", "capture_end", "max_total_tokens")
        if e.rank == first.rank and e.line < first.line and e.number("avail_gib") is not None
    ]
    return shown[-1:]


def _remedies(case: Case, first: Failure) -> list[Remedy]:
    launch, inner = case.run.launch, " ".join(places(first)[-4:])
    deepep = bool(re.search(r"deep_ep|deepep|nvshmem", inner))
    symmetric = bool(re.search(r"symm|pynccl_allocator", inner))
    base = baseline_of(case) or 0.0
    need = _DISPATCH_GIB if deepep or symmetric else _FEW_GIB
    asked = first.oom.requested_gib if first.oom else 0.0
    fraction = lower_by(case, max(need, asked, 0.02 * base), "buffers of collectives")
    tokens = None
    if deepep:
        tokens = env(
            "SGLANG_DEEPEP_NUM_MAX_DISPATCH_TOKENS_PER_RANK",
            "decrease",
            "the dispatch buffers grow with the tokens that each rank may send",
            to=64,
            basis="heuristic",
            cost="smaller decode batches a rank",
        )
    off = None
    if symmetric and launch.get("enable_symm_mem") is True:
        off = flag(launch, "enable_symm_mem", None, "its pool is not needed", direction="remove")
    tight = (weights_share(case, first) or 0.0) > 0.8
    more = action("use_more_gpus", "each GPU then holds fewer weights", cost="hardware")
    return kept(fraction, tokens, off, more if tight else None)
