"""A diagnosis built by hand, modelled on a launch that runs out of memory in graph capture."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from forensics.diagnosis import Coverage, Diagnosis, RunReport
from forensics.events import Event, Frame, Raised, Traceback
from forensics.findings import (
    Evidence,
    Finding,
    KnownAt,
    MemoryRow,
    Place,
    Remedy,
    SkippedRule,
)
from forensics.incident import Failure, Incident, RankFacts, Run, SourceFacts
from forensics.launch import DiffLine, Launch

LOG = "logs/glm5.log"
START = datetime(2026, 2, 18, 23, 47, 12)
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 694.00 MiB. GPU 4 has a total "
    "capacity of 94.97 GiB of which 247.44 MiB is free. Including non-PyTorch memory, this process "
    "has 94.72 GiB memory in use."
)
BEGIN = "Capture cuda graph begin. This can take up to several minutes. avail mem=0.96 GB"


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def event(line: int, kind: str, seconds: float, phase: str, text: str = "", **rest: str) -> Event:
    return Event(0, line, kind, text or kind, time=at(seconds), phase=phase, **rest)  # type: ignore[arg-type]


def evidence(line: int, text: str) -> Evidence:
    return Evidence(source=LOG, line=line, text=text)


def known(line: int, seconds: float) -> KnownAt:
    return KnownAt(source=LOG, line=line, time=at(seconds))


def begins() -> list[Evidence]:
    order = (1, 6, 4, 3, 7, 2, 0, 5)
    return [
        evidence(142 + number, f"[2026-02-18 23:53:22 TP{rank}] {BEGIN}")
        for number, rank in enumerate(order)
    ]


def cause() -> Finding:
    return Finding(
        id="run1-graph-capture-oom-1",
        rule="graph-capture-oom",
        class_="graph_capture_oom",
        severity="critical",
        role="root_cause",
        title="mem_fraction_static 0.95 leaves 0.96 GiB for capture, which needs 1.40 or more",
        explanation=(
            "Capture began with 0.96 GiB free on each of 8 ranks. When 247 MiB were left, a "
            "request of 694 MiB failed: capture needs at least 0.72 + 0.68 = 1.40 GiB, so it was "
            "short by 0.44 GiB or more. The weights take 61.20 of 94.97 GiB: this is how memory is "
            "divided, not how much there is."
        ),
        rank="TP4",
        first=Place(source=LOG, line=151),
        known_at=known(151, 376),
        evidence=[*begins(), evidence(187, OOM)],
        remedies=[
            Remedy(
                kind="flag",
                name="mem_fraction_static",
                direction="decrease",
                from_=0.95,
                to=0.88,
                reason="94.4 * (1 - 0.88) - 3.76 = 7.57 GiB free at capture.",
                effect={
                    "free_gib_at_capture": 7.57,
                    "kv_tokens": 438272,
                    "kv_tokens_change": -115456,
                },
                basis="lower_bound",
                cost="21 % fewer KV tokens: 438,272 instead of 553,728.",
            ),
            Remedy(
                kind="env",
                name="PYTORCH_CUDA_ALLOC_CONF",
                direction="set",
                to="expandable_segments:True",
                reason="6.44 GiB are reserved but unallocated.",
                basis="documented",
            ),
        ],
        not_helpful=[
            "more GPUs: 400 GB of weights leave room on eight.",
            "a smaller KV dtype: the pool takes the same bytes whatever the type.",
        ],
        playbook="graph-capture-oom",
        facts={"free_gib": 0.96},
    )


def precursor() -> Finding:
    return Finding(
        id="run1-graph-capture-headroom-1",
        rule="graph-capture-headroom",
        class_="graph_capture_oom",
        severity="critical",
        role="precursor",
        title="0.96 GiB free when graph capture begins: it rarely fits in less than 1 GiB",
        explanation="Capture of 4 batch sizes.",
        first=Place(source=LOG, line=142),
        known_at=known(142, 370),
        evidence=begins()[:1],
        lead_s=6,
    )


def echo(rank: str, line: int) -> Finding:
    return Finding(
        id=f"run1-echo-{line}",
        rule="echo",
        class_="graph_capture_oom",
        severity="info",
        role="consequence",
        title=f"{rank} fails the same way",
        explanation="",
        rank=rank,
        first=Place(source=LOG, line=line),
        known_at=known(line, 377),
        evidence=[evidence(line, "Scheduler hit an exception")],
    )


def risk() -> Finding:
    text = "DeepGemm is enabled but the scale_fmt of checkpoint is not ue8m0."
    return Finding(
        id="run1-scale-format-1",
        rule="scale-format",
        class_="numerics_scale_format",
        severity="warning",
        role="context",
        title="DeepGemm reads scales as ue8m0, the checkpoint has others: NaN may follow",
        explanation="On Blackwell the kernels take scales as powers of two.",
        first=Place(source=LOG, line=7),
        known_at=known(7, 2),
        evidence=[evidence(7, text)],
        remedies=[
            Remedy(
                kind="env",
                name="SGLANG_ENABLE_JIT_DEEPGEMM",
                direction="set",
                to="0",
                reason="Other kernels read the scales as they are.",
            )
        ],
    )


def memory() -> list[MemoryRow]:
    return [
        MemoryRow(
            rank=f"TP{rank}",
            phase="graph_capture",
            at=at(370),
            line=142 + rank,
            source=LOG,
            total_gib=94.97,
            free_gib=0.96,
            weights_gib=61.2,
            kv_pool_gib=31.7,
            other_gib=1.11,
        )
        for rank in range(8)
    ]


def run() -> Run:
    failed = event(151, "other", 376, "graph_capture", "Scheduler hit an exception", rank="TP4")
    frame = Frame("/sglang/srt/layers/attention/flashinfer_mla_backend.py", 639, "forward_decode")
    raised = Raised("torch.OutOfMemoryError", OOM.partition(": ")[2], [frame], line=187)
    return Run(
        number=1,
        sources=[0],
        events=[
            event(1, "other", 0, "init"),
            event(74, "load_weight_begin", 22, "load"),
            event(117, "load_weight_end", 364, "kv_pool"),
            event(142, "capture_begin", 370, "graph_capture"),
            failed,
        ],
        launch=Launch(
            flags={"mem_fraction_static": 0.95, "tp_size": 8, "api_key": "sk-verysecret123"},
            env={"NCCL_IB_DISABLE": "1", "HF_TOKEN": "hf_abcdefghijklmnop"},
            versions={"sglang": "0.5.9", "transformers": "5.2.0"},
            command=["python3", "-m", "sglang.launch_server", "--api-key", "hunter2"],
        ),
        ranks={(0, f"TP{rank}"): RankFacts(f"TP{rank}", 0) for rank in range(8)},
        failures=[Failure(failed, "TP4", "graph_capture", Traceback([raised]))],
        memory=memory(),
        outcome="failed",
        phase="graph_capture",
        started_at=START,
        ended_at=at(378),
    )


COMMAND = [
    "python3",
    "-m",
    "sglang.launch_server",
    "--model-path",
    "lukealonso/GLM-5-NVFP4",
    "--trust-remote-code",
    "--tp",
    "8",
    "--mem-fraction-static",
    "0.88",
    "--max-running-requests",
    "8",
    "--served-model-name",
    "glm 5",
    "--api-key",
    "hunter2",
]


def diff() -> list[DiffLine]:
    return [
        DiffLine(" ", "--model-path lukealonso/GLM-5-NVFP4"),
        DiffLine(" ", "--trust-remote-code"),
        DiffLine(" ", "--tp 8"),
        DiffLine("-", "--mem-fraction-static 0.95"),
        DiffLine("+", "--mem-fraction-static 0.88"),
        DiffLine(" ", "--max-running-requests 8"),
        DiffLine(" ", "--served-model-name 'glm 5'"),
    ]


def build(**changes: object) -> Diagnosis:
    findings = [cause(), precursor(), risk(), echo("TP1", 230), echo("TP6", 312)]
    report = RunReport(
        run=run(),
        findings=findings,
        root_cause=findings[0],
        skipped=[SkippedRule(rule="kv-pool-undersized", because="the run never reached serving")],
        new_command=COMMAND,
        diff=diff(),
    )
    for name, value in changes.items():
        setattr(report, name, value)
    source = SourceFacts(LOG, bytes=54309, lines=397, recognised_lines=391)
    phases = ["init", "load", "kv_pool", "graph_capture"]
    ranks = [f"TP{rank}" for rank in range(8)]
    coverage = Coverage(397, 391, ranks, phases, "0.5.9")
    return Diagnosis(Incident([source], [report.run]), [report], coverage)


@pytest.fixture
def launch_b() -> Diagnosis:
    return build()


@pytest.fixture
def make() -> Callable[..., Diagnosis]:
    return build
