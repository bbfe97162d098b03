"""Numbers that go wrong: NaN, and scales of one format read as another."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from forensics.events import Event
from forensics.findings import Finding, Remedy
from forensics.incident import Failure
from forensics.remedies import action, env, flag, kept, package
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.case import Case

_NAN = frozenset({"nan_in_logits", "nan_detected", "nan_in_probabilities"})


_NUMBERS = re.compile(r"\b(?:nan|inf|infinity)\b|probability tensor|isfinite|isnan", re.I)
_BUSY = 8
"""Running requests from which a batch counts as concurrent traffic."""
_PROVEN = 3
"""Decode lines with that many that must stand before the NaN for it to have worked so far."""


def is_numeric(event: Event) -> bool:
    """Whether a device assertion is about NaN or infinity."""
    return bool(_NUMBERS.search(event.text))


def nan_evidence(case: Case) -> tuple[Event | None, Failure | None]:
    """The first sign of NaN, and the first rank that failed on it."""
    sign = case.run.first(*_NAN)
    asserts = [e for e in case.run.of("device_assert_line") if is_numeric(e)]
    if asserts and (sign is None or asserts[0].line < sign.line):
        sign = asserts[0]
    for failure in case.run.failures:
        chain = failure.traceback.chain if failure.traceback else []
        kinds = {raised.kind for raised in chain}
        if kinds & _NAN or (sign is not None and kinds & {"device_assert", "cuda_error"}):
            return sign, failure
    return sign, None


@dataclass(frozen=True, slots=True)
class _Fault:
    """One reading of NaN evidence."""

    rule: str
    class_: str
    title: str
    story: str


_SCALE = _Fault(
    "scale-format-nan",
    "numerics_scale_format",
    "NaN at the first sampled tokens: FP8/FP4 scales are read in a format the checkpoint does "
    "not have",
    "The probabilities held NaN or infinity. The warning of the first seconds explains it: "
    "DeepGEMM expects ue8m0 block scales on Blackwell and the checkpoint's are not, so they are "
    "requantised or misread. Greedy requests hide NaN; sampled ones meet the assertion on all "
    "ranks at once.",
)
_RACE = _Fault(
    "fp4-gemm-nan",
    "numerics_nan",
    "NaN under concurrent traffic, after decode that worked: the FP4 GEMM is the first suspect",
    "The probabilities held NaN or infinity after concurrent requests had been decoded well, "
    "which speaks against misread scales: those fail from the first token. FlashInfer's CUTLASS "
    "FP4 GEMM was compiled without the wait that its overlapped launches need (before 0.6.7), so "
    "that tiles could be read before they were written. Kernels compiled before an upgrade stay "
    "in the cache.",
)
_PLAIN = _Fault(
    "numerics-nan",
    "numerics_nan",
    "NaN in the logits",
    "The probabilities held NaN or infinity: a numeric fault of quantisation, KV dtype or a "
    "kernel, not of memory. The sampler, or its device assertion, is only where it is noticed.",
)


@rule(
    "numerics-nan",
    class_="numerics_nan",
    summary="NaN or infinity in the logits",
    names={
        "scale-format-nan": (
            "numerics_scale_format",
            "NaN, and block scales of one format read as another",
        ),
        "fp4-gemm-nan": ("numerics_nan", "NaN under concurrent decode with an FP4 GEMM"),
    },
    needs="a NaN message or a device assertion on probabilities",
)
def numerics_nan(case: Case) -> Iterator[Finding | Skip]:
    """NaN evidence; with a scale-format warning before it, that is the cause."""
    sign, failure = nan_evidence(case)
    event = failure.event if failure else sign
    if event is None:
        return
    warning = case.run.first("scale_fmt_warning")
    at = sign if sign is not None and sign.line <= event.line else event
    fault = _fault(case, at, warning)
    yield case.finding(
        fault.rule,
        fault.class_,
        at,
        title=fault.title,
        explanation=fault.story,
        evidence=[
            *case.evidence(warning, *_unscaled(case), sign),
            *(case.failure_evidence(failure) if failure else []),
        ],
        remedies=_remedies(case, fault),
        not_helpful=[
            "memory flags: no allocation failed",
            "another sampling backend: the sampler is only the place where NaN is noticed",
            "disabling CUDA graphs: the same kernels run without them",
            *(["a Transformers downgrade: older ones may not know the model"] if warning else []),
        ],
        rank=failure.rank if failure else at.rank,
        phase=failure.phase if failure else event.phase,
        weight=FAILURE + 5,
        confidence="high" if fault is _SCALE else "medium",
        facts={"warning_line": warning.line if warning else None},
    )


def _unscaled(case: Case) -> list[Event]:
    """The notice that FP8 KV runs with scales of 1.0, where the KV cache is FP8."""
    if "fp8" not in str(case.run.launch.get("kv_cache_dtype")):
        return []
    return list(case.run.of("fp8_kv_without_scales"))[:1]


def _fault(case: Case, at: Event, warning: Event | None) -> _Fault:
    if _is_fp4(case) and _decoded_well(case, at):
        return _RACE
    if warning is not None and case.run.launch.env.get("SGLANG_ENABLE_JIT_DEEPGEMM") != "0":
        return _SCALE
    return _PLAIN


def _is_fp4(case: Case) -> bool:
    launch = case.run.launch
    named = f"{launch.get('quantization')} {launch.get('model_path')}".lower()
    backend = str(launch.get("fp4_gemm_runner_backend") or "auto")
    return "fp4" in named and backend in ("auto", "flashinfer_cutlass")


def _decoded_well(case: Case, at: Event) -> bool:
    """Whether concurrent requests had been decoded before the NaN."""
    rows = case.run.serving
    if rows is None:
        return False
    import polars as pl

    busy = rows.filter(
        (pl.col("lane") == "decode") & (pl.col("line") < at.line) & (pl.col("running") >= _BUSY)
    )
    return int(busy["n"].sum() or 0) >= _PROVEN


def _remedies(case: Case, fault: _Fault) -> list[Remedy]:
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
    if fault is _RACE:
        return kept(*_race_remedies(case), no_jit, plain_kv)
    other_gemm = flag(
        launch,
        "fp8_gemm_runner_backend",
        "triton",
        "keeps FP8 GEMM away from DeepGEMM",
        cost="slower",
    )
    if fault is _SCALE:
        return kept(no_jit, plain_kv, other_gemm)
    if not _may_be_fp8(case):
        return kept(plain_kv, _other_attention(case))
    fp4 = _race_remedies(case)[:1] if _is_fp4(case) else []
    return kept(plain_kv, no_jit, *fp4, other_gemm)


def _may_be_fp8(case: Case) -> bool:
    """Whether the weights may be FP8 or FP4: by name or method, or because nothing is known."""
    launch = case.run.launch
    named = f"{launch.get('quantization')} {launch.get('model_path')}".lower()
    loaded = " ".join(event.text for event in case.run.of("load_weight_end")).lower()
    low = re.search(r"fp8|fp4|w8a8|w4a8|modelopt|mxfp|deepseek-?v?[34r]", f"{named} {loaded}")
    return low is not None or launch.get("model_path") is None


def _other_attention(case: Case) -> Remedy | None:
    now = case.run.launch.get("attention_backend")
    return flag(
        case.run.launch,
        "attention_backend",
        "flashinfer" if now == "triton" else "triton",
        "with weights that are not quantised, attention is the kernel to doubt first",
        cost="slower",
    )


def _race_remedies(case: Case) -> list[Remedy | None]:
    return [
        flag(
            case.run.launch,
            "fp4_gemm_runner_backend",
            "flashinfer_cudnn",
            "another FP4 GEMM, without the race",
            cost="needs a recent cuDNN",
        ),
        package("flashinfer-python", "upgrade", "FP4 GEMM fixed there", to=">=0.6.7"),
        action("wipe_jit_cache", "kernels compiled by the older version would be used again"),
    ]


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
        role="precursor" if nan_evidence(case) != (None, None) else "context",
        title="DeepGEMM is on and the checkpoint's scale_fmt is not ue8m0",
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
