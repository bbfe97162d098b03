"""Healthy but slower than a time-out, and which of the time-outs it was."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.events import Event
from forensics.findings import Finding, Remedy
from forensics.incident.processes import world_size
from forensics.remedies import action, env, flag, kept
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.collectives import Busy, Standoff, expected_s

_NCCL_DEFAULT_S = 600.0
"""torch's limit for collectives of NCCL where `dist_timeout` is not set."""
_LIMITS_S = (1800, 3600, 7200, 14_400)


def next_limit(needed_s: float | None, now_s: float) -> int:
    """A round limit above what the work needs, and well above the limit that was too short."""
    bar = max(needed_s or 0.0, 2 * now_s)
    return next((limit for limit in _LIMITS_S if limit >= bar), _LIMITS_S[-1])


def slow_rank(case: Case, found: Standoff, busy: Busy) -> Finding:
    """One rank was still at work when the others' collective timed out."""
    needed = expected_s(busy.bar)
    limit = next_limit(needed, found.timeout_s)
    who = busy.rank or "One rank"
    estimate = f"; its progress bar needs {needed:.0f} s in all" if needed else ""
    return case.finding(
        "slow-start-collective",
        "slow_start_timeout",
        busy.event,
        title=f"{who} was still busy with {busy.what} when the others' collective timed out "
        f"after {found.timeout_s:.0f} s",
        explanation=f"{who} had begun {busy.what} and was not finished{estimate}. "
        f"{len(found.waiters)} other ranks waited for it in {found.op} (sequence {found.seq}) and "
        f"the watchdog of the process group ended them after {found.ran_s:.0f} s. Nothing is "
        "broken: the limit that was too short is the process group's (dist_timeout), neither the "
        "scheduler's watchdog nor a probe.",
        evidence=case.evidence(busy.event, busy.bar, *(w.event for w in found.waiters[:4])),
        remedies=_remedies(case, busy, limit),
        not_helpful=[
            "watchdog_timeout: that is the scheduler's watchdog, another limit",
            "NCCL settings: the links are fine",
        ],
        rank=busy.rank,
        phase=_phase(busy),
        known_at=case.known(found.waiters[0].event),
        confidence="high" if busy.bar is not None else "medium",
        weight=FAILURE,
        facts={
            "outcome": "failed",
            "work": busy.what,
            "needed_s": needed,
            "timeout_s": found.timeout_s,
            "timeout": "dist_timeout",
        },
        playbook="slow-start",
    )


def _phase(busy: Busy) -> str:
    fixed = {"weight loading": "load", "graph capture": "graph_capture"}
    return fixed.get(busy.what, "warmup" if "DeepGEMM" in busy.what else busy.event.phase)


def _remedies(case: Case, busy: Busy, limit: int) -> list[Remedy]:
    launch = case.run.launch
    longer = flag(
        launch,
        "dist_timeout",
        limit,
        "gives collectives longer than the work takes",
        direction="increase",
        basis="computed" if busy.bar is not None else "heuristic",
        cost="a real hang is noticed later",
    )
    return kept(longer, *faster(busy.what))


def faster(what: str) -> list[Remedy]:
    """What makes the work itself shorter."""
    if "DeepGEMM" in what:
        return [
            action(
                "precompile_deep_gemm",
                "python3 -m sglang.compile_deep_gemm with the same arguments, before the launch",
            ),
            action("persist_jit_cache", "keep the compiled kernels (SGLANG_DG_CACHE_DIR) on disk"),
            env(
                "SGLANG_JIT_DEEPGEMM_PRECOMPILE",
                "set",
                "compiles shapes when they first occur",
                to="0",
                cost="single slow requests at first",
            ),
        ]
    if "load" in what:
        return [action("copy_weights_to_local_disk", "all ranks then load at the speed of a disk")]
    return [action("persist_jit_cache", "the next start finds the compiled kernels")]


@rule(
    "slow-start-risk",
    class_="slow_start_timeout",
    severity="info",
    role="precursor",
    summary="A pre-compilation will take longer than collectives wait",
    needs="the progress bar of the DeepGEMM pre-compilation",
    playbook="slow-start",
)
def slow_start_risk(case: Case) -> Iterator[Finding | Skip]:
    """The bar's own estimate against the limit of collectives."""
    limit = case.run.launch.number("dist_timeout") or _NCCL_DEFAULT_S
    for bar in case.run.of("deepgemm_progress"):
        needed = expected_s(bar)
        if needed is None or needed <= limit or (world_size(case.run, bar.source) or 1) < 2:
            continue
        yield _risk(case, bar, needed, limit)
        return


def _risk(case: Case, bar: Event, needed: float, limit: float) -> Finding:
    return case.finding(
        "slow-start-risk",
        "slow_start_timeout",
        bar,
        severity="info",
        role="precursor",
        title=f"DeepGEMM pre-compilation needs {needed:.0f} s, collectives wait {limit:.0f} s",
        explanation="If the other ranks do not compile as long, they wait in a collective and "
        "their watchdog ends them. It matters only if the ranks are not equally slow.",
        known_at=case.known(bar),
        phase="warmup",
        facts={"needed_s": needed, "limit_s": limit},
        playbook="slow-start",
    )
