"""A kernel's own check that failed: an index out of range, mostly."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.events import Event
from forensics.findings import Finding, Remedy
from forensics.incident import Failure
from forensics.remedies import env, flag, kept
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.numerics import is_numeric, nan_evidence


@rule(
    "device-assert",
    class_="kernel_memory_fault",
    summary="A device-side assertion that is not about NaN",
    needs="the assertion line, or the error that follows it",
)
def device_assert(case: Case) -> Iterator[Finding | Skip]:
    """An index beyond a table: tokens, positions, experts, cache slots."""
    if nan_evidence(case) != (None, None):
        return
    line = next((e for e in case.run.of("device_assert_line") if not is_numeric(e)), None)
    failure = next((f for f in case.run.failures if _asserted(f)), None)
    event = line or (failure.event if failure else None)
    if event is None or case.run.outcome not in ("failed", "hung"):
        return
    said = event.string("assertion") or "not printed"
    yield case.finding(
        "device-assert",
        "kernel_memory_fault",
        event,
        title=f"A kernel's own check failed: {said[:120]}",
        explanation=f"The assertion that failed on the GPU: {said[:200]}. Usually an index out of "
        "range: a token id beyond the vocabulary, a position beyond the context, an expert or a "
        "cache slot that does not exist. The error is reported at a later call, so that the "
        "frames of the traceback prove nothing.",
        evidence=[*case.evidence(line), *(case.failure_evidence(failure) if failure else [])],
        remedies=_remedies(case, line),
        not_helpful=["memory flags: nothing ran out"],
        rank=failure.rank if failure else event.rank,
        phase=failure.phase if failure else event.phase,
        known_at=case.known(failure.event, failure.event.end_line) if failure else None,
        confidence="medium",
        weight=FAILURE - 2,
        facts={"assertion": said},
    )


def _asserted(failure: Failure) -> bool:
    chain = failure.traceback.chain if failure.traceback else []
    return any(raised.kind == "device_assert" for raised in chain)


def _remedies(case: Case, line: Event | None) -> list[Remedy]:
    launch = case.run.launch
    longer = None
    if case.run.first("context_length_over") is not None or launch.get("context_length"):
        longer = flag(
            launch,
            "context_length",
            None,
            "back to the model's own length: positions beyond it index past the table",
        )
    return kept(
        longer,
        flag(launch, "enable_nan_detection", True, "tells NaN from an index error")
        if line is None
        else None,
        env(
            "CUDA_LAUNCH_BLOCKING",
            "set",
            "names the kernel exactly",
            to="1",
            cost="slow; for one diagnosis only",
        ),
        flag(
            launch,
            "speculative_algorithm",
            None,
            "takes the draft's indices out",
            direction="remove",
        )
        if launch.get("speculative_algorithm")
        else None,
    )
