"""Sparse attention on a GPU that may lack its kernels, known when memory is first printed."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.events import Event
from forensics.findings import Finding
from forensics.remedies import flag, kept, package
from forensics.rules.base import Skip, rule
from forensics.rules.case import Case
from forensics.rules.pins import maybe_below

_BACKENDS = ("dsa", "nsa")
_NATIVE = "0.5.20"
"""First release with sparse-attention kernels for SM120."""
_SM120_GIB = (90.0, 96.0)
"""Free memory of an idle RTX PRO 6000; an H20 has as much, and kernels."""


@rule(
    "sparse-attention-risk",
    class_="kernel_unsupported_arch",
    severity="info",
    role="precursor",
    summary="Sparse attention on a GPU of the size of an RTX PRO 6000",
    needs="the attention backend and the free memory before weights are loaded",
    playbook="sparse-attention-arch",
)
def sparse_attention_risk(case: Case) -> Iterator[Finding | Skip]:
    """The log does not name the GPU; its memory narrows it down to two."""
    launch = case.run.launch
    if launch.get("attention_backend") not in _BACKENDS or not maybe_below(launch, _NATIVE):
        return
    begin = case.run.first("load_weight_begin")
    if begin is None or not _fits(begin) or _named_h20(case):
        return
    yield case.finding(
        "sparse-attention-risk",
        "kernel_unsupported_arch",
        begin,
        severity="info",
        role="precursor",
        title="Sparse attention is on; if these are RTX PRO 6000 GPUs, its kernels are missing",
        explanation=f"{begin.number('avail_gib'):.1f} GiB free before weights fits an RTX PRO 6000 "
        "(SM120) or an H20 (SM90). The sparse-attention kernels have no SM120 version before "
        f"{_NATIVE}: the start would then fail in graph capture, after the weights.",
        evidence=case.evidence(begin),
        remedies=kept(
            package("sglang", "upgrade", "has the kernels for SM120", to=f">={_NATIVE}"),
            flag(launch, "attention_backend", "flashinfer", "dense MLA needs none of them"),
        ),
        rank=None,
        known_at=case.known(begin),
        playbook="sparse-attention-arch",
    )


def _fits(begin: Event) -> bool:
    free = begin.number("avail_gib")
    return free is not None and _SM120_GIB[0] <= free <= _SM120_GIB[1]


def _named_h20(case: Case) -> bool:
    return any("H20" in event.text for event in case.run.of("moe_config_default", "gpu_listed"))
