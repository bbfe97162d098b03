"""Numbers that go wrong: NaN, and scales of one format read as another."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.events import Event
from forensics.findings import Finding, Remedy
from forensics.incident import Failure
from forensics.remedies import env, flag, kept
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.case import Case

_NAN = frozenset({"nan_in_logits", "nan_detected", "nan_in_probabilities"})


def _nan_failure(case: Case) -> tuple[Event | None, Failure | None]:
    """The first sign of NaN, and the first rank that failed on it."""
    sign = case.run.first(*_NAN)
    asserts = [e for e in case.run.of("device_assert_line") if _about_numbers(e)]
    if asserts and (sign is None or asserts[0].line < sign.line):
        sign = asserts[0]
    for failure in case.run.failures:
        chain = failure.traceback.chain if failure.traceback else []
        kinds = {raised.kind for raised in chain}
        if kinds & _NAN or (sign is not None and kinds & {"device_assert", "cuda_error"}):
            return sign, failure
    return sign, None


def _about_numbers(event: Event) -> bool:
    text = event.text.lower()
    return "nan" in text or "inf" in text or "probability tensor" in text


@rule(
    "numerics-nan",
    class_="numerics_nan",
    summary="NaN or infinity in the logits",
    needs="a NaN message or a device assertion on probabilities",
)
def numerics_nan(case: Case) -> Iterator[Finding | Skip]:
    """NaN evidence; with a scale-format warning before it, that is the cause."""
    sign, failure = _nan_failure(case)
    if sign is None and failure is None:
        return
    warning = case.run.first("scale_fmt_warning")
    event = failure.event if failure else sign
    assert event is not None
    at = sign if sign is not None and sign.line <= event.line else event
    phase = failure.phase if failure else event.phase
    scale = warning is not None
    yield case.finding(
        "scale-format-nan" if scale else "numerics-nan",
        "numerics_scale_format" if scale else "numerics_nan",
        at,
        title="NaN at the first sampled tokens"
        + (": FP8/FP4 scales are read in a format the checkpoint does not have" if scale else ""),
        explanation=_explanation(scale),
        evidence=[
            *case.evidence(warning, sign),
            *(case.failure_evidence(failure) if failure else []),
        ],
        remedies=_remedies(case, scale),
        not_helpful=[
            "memory flags: no allocation failed",
            "another sampling backend: the sampler is only the place where NaN is noticed",
            *(["a Transformers downgrade: older ones may not know the model"] if scale else []),
        ],
        rank=failure.rank if failure else at.rank,
        phase=phase,
        weight=FAILURE + 5,
        confidence="high" if scale else "medium",
        facts={"warning_line": warning.line if warning else None},
    )


def _explanation(scale: bool) -> str:
    if scale:
        return (
            "The probabilities held NaN or infinity. The warning of the first seconds explains it: "
            "DeepGEMM expects ue8m0 block scales on Blackwell and the checkpoint's are not, so "
            "they are requantised or misread. Greedy requests hide NaN; sampled ones meet the "
            "assertion on all ranks at once."
        )
    return (
        "The probabilities held NaN or infinity: a numeric fault of quantisation, KV dtype or a "
        "kernel, not of memory. The device assertion is only where it is noticed."
    )


def _remedies(case: Case, scale: bool) -> list[Remedy]:
    launch = case.run.launch
    kv = launch.get("kv_cache_dtype")
    plain_kv = None
    if isinstance(kv, str) and "fp8" in kv:
        plain_kv = flag(
            launch,
            "kv_cache_dtype",
            "bfloat16",
            "takes FP8 KV scales out of the picture",
            cost="half the KV tokens",
        )
    no_jit = env(
        "SGLANG_ENABLE_JIT_DEEPGEMM",
        "set",
        "the DeepGEMM kernels are what reads the scales as ue8m0",
        to="0",
        cost="other FP8 GEMM kernels, somewhat slower",
    )
    other_gemm = flag(
        launch,
        "fp8_gemm_runner_backend",
        "triton",
        "keeps FP8 GEMM away from DeepGEMM",
        cost="slower",
    )
    return kept(no_jit, plain_kv, other_gemm) if scale else kept(plain_kv, no_jit, other_gemm)


@rule(
    "scale-format",
    class_="numerics_scale_format",
    severity="info",
    role="context",
    summary="DeepGEMM is on, but the checkpoint's scales are not ue8m0",
    needs="the warning of releases 0.5.7 to 0.5.16",
)
def scale_format(case: Case) -> Iterator[Finding | Skip]:
    """A standing risk: information while nothing is wrong, the cause together with NaN."""
    events = list(case.run.of("scale_fmt_warning"))
    if not events:
        return
    count = case.run.counts["scale_fmt_warning"]
    yield case.finding(
        "scale-format",
        "numerics_scale_format",
        events[0],
        severity="info",
        role="precursor" if _nan_failure(case) != (None, None) else "context",
        title="Standing risk: DeepGEMM is on and the checkpoint's scale_fmt is not ue8m0",
        explanation=f"Printed {count} times, once or more by each process. On Blackwell this may "
        "cost accuracy; where the affected kernels are not used it changes nothing. If NaN or "
        "garbage appears, this is the first suspect.",
        rank=None,
        known_at=case.known(events[0]),
        remedies=[
            env(
                "SGLANG_ENABLE_JIT_DEEPGEMM",
                "set",
                "takes DeepGEMM out, should wrong numbers appear",
                to="0",
                cost="somewhat slower",
            )
        ],
        facts={"count": count},
    )
