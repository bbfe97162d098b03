"""A kernel's workspace of fixed size that a batch does not fit into: no memory is short."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.events import Event, Raised
from forensics.findings import Finding, Remedy
from forensics.incident import Failure
from forensics.remedies import env, flag, kept
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.serving_remedies import chunk

_VARIABLE = "SGLANG_FLASHINFER_WORKSPACE_SIZE"
_DEFAULT = 384 * 2**20
_LEAST = 2**30
_OVERFLOWS = ("workspace_overflow", "workspace_buffer_overflow")
"""The kernel's words, FlashInfer's older and newer ones."""


@rule(
    "workspace-overflow",
    class_="workspace_overflow",
    summary="A batch does not fit into a kernel's workspace of fixed size",
    needs="the kernel's message with the buffer's size",
)
def workspace_overflow(case: Case) -> Iterator[Finding | Skip]:
    """FlashInfer cuts its buffers from one workspace; the message names the buffer and its size."""
    found = _overflow(case)
    if found is None:
        return
    failure, said = found
    size = said.fields.get("buffer_bytes")
    asked = int(size) if isinstance(size, int | float) else 0
    text = case.run.launch.env.get(_VARIABLE, "")
    left = said.fields.get("available_bytes")
    now = int(text) if text.isdigit() else _DEFAULT
    now = max(now, int(left) if isinstance(left, int | float) else 0)
    name = str(said.fields.get("buffer") or "a buffer")
    yield case.finding(
        "workspace-overflow",
        "workspace_overflow",
        failure.event,
        title=f"FlashInfer's workspace of {now / 2**20:.0f} MiB is too small for this batch",
        explanation=f"{name} needs {asked / 2**20:.1f} MiB of a workspace of fixed size "
        f"({now / 2**20:.0f} MiB), which other buffers share. It reads like out of memory, but "
        "GPU memory is not short: no fraction changes the workspace.",
        evidence=case.failure_evidence(failure),
        remedies=_remedies(case, failure, now, asked),
        not_helpful=["mem_fraction_static, in either direction: the workspace has a fixed size"],
        rank=failure.rank,
        phase=failure.phase,
        weight=FAILURE,
        facts={"buffer": name, "bytes": asked, "workspace_bytes": now, "outcome": "failed"},
    )


def _remedies(case: Case, failure: Failure, now: int, asked: int) -> list[Remedy]:
    wanted = max(_LEAST, 1 << (now + asked - 1).bit_length())
    larger = env(
        _VARIABLE,
        "increase",
        f"{now / 2**20:.0f} MiB shared with a buffer of {asked / 2**20:.1f} MiB",
        now=now,
        to=wanted,
        basis="computed",
        cost=f"{(wanted - now) / 2**30:.1f} GiB of GPU memory outside the pool",
    )
    other = flag(
        case.run.launch,
        "attention_backend",
        "triton",
        "another backend has no such workspace",
        direction="set",
        cost="speed may differ",
    )
    return kept(larger, other, chunk(case, failure))


def _overflow(case: Case) -> tuple[Failure, Raised | Event] | None:
    for failure in case.run.failures:
        for raised in failure.traceback.chain if failure.traceback else []:
            if raised.kind in _OVERFLOWS:
                return failure, raised
        if failure.event.kind in _OVERFLOWS:
            return failure, failure.event
    return None
