"""Failures that look like memory, by their place or by printed advice, and are not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from forensics.findings import Finding, Remedy
from forensics.incident import Failure
from forensics.remedies import action, flag, kept
from forensics.rules.base import CONSEQUENCE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.memory_facts import gib, least
from forensics.rules.shortage import is_device_oom, nccl_memory, places
from forensics.rules.signature_rules import explains

_PYTHON = frozenset(
    {"TypeError", "AttributeError", "KeyError", "IndexError", "NameError", "AssertionError"}
    | {"NotImplementedError", "UnboundLocalError", "ValueError", "ImportError", "RuntimeError"}
)
_ADVICE = re.compile(r"mem-fraction-static|Possible solutions")
_ATTENTION = re.compile(r"attention|_attn|mla|forward_absorb|_backend\.py|metadata", re.I)
_ABOVE_UNKNOWN = 8
"""Any rule that knows the failure itself says more."""


@rule(
    "capture-not-memory",
    class_="not_memory",
    summary="Graph capture failed for a reason that is not memory, whatever advice was printed",
    needs="a traceback in capture without an out-of-memory error",
)
def capture_not_memory(case: Case) -> Iterator[Finding | Skip]:
    """Capture runs the model for the first time, so its plain defects show there."""
    first = next((f for f in case.run.failures if f.phase == "graph_capture"), None)
    if first is None or first.traceback is None or not _plain(case, first):
        return
    if explains(case, first):
        return
    cause = first.traceback.cause
    advice = any(_ADVICE.search(r.message) for r in first.traceback.chain)
    free = least(ledger.capture_begin_gib for ledger in case.run.ledgers())
    room = f" {gib(free)} were free when capture began." if free is not None else ""
    said = cause.message.split("\n")[0][:200]
    yield case.finding(
        "capture-not-memory",
        "not_memory",
        first.event,
        title=f"Capture failed with {cause.name}, which is not memory: {said}",
        explanation="Capture runs the model for the first time, so what is wrong in the code shows "
        f"there.{room} No allocation was refused"
        + (
            "; the printed advice on memory is appended to every failure of capture."
            if advice
            else "."
        ),
        evidence=case.failure_evidence(first),
        remedies=_remedies(case, first),
        not_helpful=[
            "mem_fraction_static, in either direction: no allocation was refused",
            "smaller captured batches: the first one fails alike",
        ],
        rank=first.rank,
        phase="graph_capture",
        confidence="medium",
        weight=CONSEQUENCE + _ABOVE_UNKNOWN,
        facts={"exception": cause.name, "message": said, "advice_printed": advice},
    )


def _plain(case: Case, failure: Failure) -> bool:
    """Whether it is a Python error of no other known kind."""
    if is_device_oom(failure) or nccl_memory(case, failure) or failure.traceback is None:
        return False
    cause = failure.traceback.cause
    return cause.name in _PYTHON and not re.search(r"CUDA error|out of memory|NCCL", cause.message)


def _remedies(case: Case, first: Failure) -> list[Remedy]:
    launch, inner = case.run.launch, places(first)[-3:]
    cause = first.traceback.cause.message if first.traceback else ""
    backend = None
    if any(_ATTENTION.search(place) for place in inner) or _ATTENTION.search(cause):
        now = str(launch.get("attention_backend") or "")
        other = "flashinfer" if now == "triton" else "triton"
        backend = flag(
            launch,
            "attention_backend",
            other,
            "the frames end in attention code: backend and model do not go together"
            + (f" ({now})" if now else ""),
            direction="set",
            basis="heuristic",
            cost="speed may differ",
        )
    return kept(
        backend,
        action("upgrade_sglang", "a defect of the code at hand"),
        action("report_bug", "traceback and launch flags are what the developers need"),
    )
