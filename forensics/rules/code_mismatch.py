"""Not memory: an ordinary Python error where memory is suspected, or advised."""

from __future__ import annotations

import re
from collections.abc import Iterator

from forensics.events import Raised
from forensics.findings import Finding, Remedy
from forensics.incident import Failure
from forensics.remedies import action, flag, kept, package
from forensics.rules.base import Skip, rule
from forensics.rules.case import Case
from forensics.rules.signature_rules import explains

WEIGHT = 50
"""Below every rule that knows the message, above the honest unknown."""

_EARLY = 200
_LITTLE_GIB = 4.0

_ORDINARY = frozenset(
    {
        "TypeError",
        "AttributeError",
        "NameError",
        "KeyError",
        "IndexError",
        "NotImplementedError",
        "UnboundLocalError",
        "AssertionError",
        "ZeroDivisionError",
    }
)
_MEMORY = re.compile(r"out of memory|memory pool|mem_fraction|not enough|leak detected|alloc", re.I)
_ATTENTION = re.compile(r"/attention/|flashinfer|flash_attn|flash_mla|aiter|mla|attn|models/", re.I)
_MODEL = re.compile(r"/srt/(?:models|layers|model_executor|managers|mem_cache)/")


@rule(
    "code-mismatch",
    class_="not_memory",
    summary="A Python error of the model or a backend where memory is suspected or advised",
    needs="an ordinary exception from SGLang's model code",
)
def code_mismatch(case: Case) -> Iterator[Finding | Skip]:
    """A TypeError and its kin are no shortage: backend, model and release do not fit."""
    for failure in case.run.failures:
        if failure.oom is not None or failure.phase == "init":
            continue
        raised = failure.traceback.cause if failure.traceback else None
        if raised is None or raised.name not in _ORDINARY or _MEMORY.search(raised.message):
            continue
        known = explains(case, failure) or not _memory_suspected(case, failure)
        if not known and any(_MODEL.search(frame.file) for frame in raised.frames):
            yield _finding(case, failure, raised)
            return


def _memory_suspected(case: Case, failure: Failure) -> bool:
    """Whether someone reading the log would think of memory: advice about it, or little free.

    Without that the error is what it says, and no rule knows it: the honest unknown.
    """
    chain = failure.traceback.chain if failure.traceback else []
    advised = failure.phase == "graph_capture" and (
        any(raised.kind == "capture_failed" for raised in chain)
        or case.run.counts["capture_failed_hint"] > 0
    )
    free = _free(case)
    return advised or (free is not None and free < _LITTLE_GIB)


def _finding(case: Case, failure: Failure, raised: Raised) -> Finding:
    said = raised.message.split("\n")[0][:160]
    attention = any(_ATTENTION.search(frame.file) for frame in raised.frames[-3:])
    inner = raised.frames[-1].short if raised.frames else "?"
    free = _free(case)
    aside = f" {free:.1f} GB were free before it, which is a side remark." if free else ""
    return case.finding(
        "code-mismatch",
        "not_memory",
        failure.event,
        title=f"Not memory: {raised.name} in {inner}: {said}",
        explanation=f"The code failed with {raised.name} ({said}), which no amount of memory "
        "causes or cures; advice about memory that follows it is generic. A backend, the model's "
        f"code and the installed packages do not fit each other.{aside}",
        evidence=case.failure_evidence(failure),
        remedies=_remedies(case, failure, attention),
        not_helpful=[
            "memory flags: no allocation failed",
            "a smaller captured batch: the same call comes at any size",
        ],
        rank=failure.rank,
        phase=failure.phase,
        confidence="medium",
        weight=WEIGHT,
        facts={"exception": raised.name, "frame": inner},
    )


def _free(case: Case) -> float | None:
    frees = [ledger.capture_begin_gib for ledger in case.run.ledgers()]
    return min((free for free in frees if free is not None), default=None)


def _remedies(case: Case, failure: Failure, attention: bool) -> list[Remedy]:
    launch = case.run.launch
    upgrade = package("sglang", "upgrade", "mismatches of this kind are mended there", to="latest")
    report = action("report_bug", "with the traceback, the launch line and the model")
    if not attention:
        return kept(upgrade, report)
    others = ("aiter", "triton") if _on_rocm(case) else ("flashinfer", "triton")
    backends = [
        flag(launch, "attention_backend", other, "another backend takes another path here")
        for other in others
    ]
    eager = None
    if failure.phase == "graph_capture":
        eager = flag(
            launch,
            "disable_cuda_graph",
            True,
            "only if the call is one that capture alone makes",
            cost="much slower decode",
        )
    return kept(*backends, upgrade, report, eager)


def _on_rocm(case: Case) -> bool:
    """Whether the log speaks of AMD's libraries."""
    if case.run.counts["aiter_import"]:
        return True
    return any("aiter" in event.text[:300] for event in case.run.events[:_EARLY])
