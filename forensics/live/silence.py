"""Silence: how long each phase usually says nothing, and what to make of more than that.

The figures are orders of magnitude from start-up logs of SGLang: loading from a slow file system
and compiling kernels are silent longest. A server that serves may be silent for ever.
"""

from __future__ import annotations

from forensics.events import Event
from forensics.findings import Finding
from forensics.incident import Incident, Run
from forensics.live.processes import Process
from forensics.rules.case import Case

_USUAL_S = {
    "init": 90.0,
    "load": 240.0,
    "kv_pool": 120.0,
    "graph_capture": 180.0,
    "warmup": 300.0,
    "shutdown": 60.0,
}
_COMPILING_S = 900.0
_COMPILES = ("deepgemm_precompile", "deepgemm_compile_all", "autotune_begin", "jit_ops")

GONE = "gone-without-a-word"
"""Rule of a launch that ended though its log tells of no end."""

HUNG_AFTER = 4.0
"""A launch is called hung when it is silent for so many times the usual longest silence."""


def usual_silence_s(run: Run, phase: str) -> float | None:
    """The longest usual silence of a phase; None where silence means nothing."""
    if phase == "serving":
        return None
    compiling = any(event.kind in _COMPILES for event in run.events[-20:])
    return _COMPILING_S if compiling else _USUAL_S.get(phase, 300.0)


def silent_launch(run: Run, incident: Incident, silent_s: float, phase: str) -> Finding | None:
    """The finding of a launch that has said nothing for far too long."""
    usual = usual_silence_s(run, phase)
    if usual is None or silent_s < HUNG_AFTER * usual or not run.events:
        return None
    case = Case(run, incident)
    last = run.events[-1]
    return case.finding(
        "silent-launch",
        "collective_hang" if len(run.ranks) > 1 else "unknown",
        last,
        title=f"Nothing was written for {silent_s:.0f} s in phase {phase}: it hangs",
        explanation=f"The last line came {silent_s:.0f} s ago; this phase is usually silent for "
        f"{usual:.0f} s at most. The last line of each rank shows which one stopped first.",
        evidence=case.evidence(*_last_words(run)),
        confidence="medium",
        phase=phase,
        rank=None,
        facts={"silent_s": round(silent_s), "usual_s": usual, "outcome": "hung"},
    )


def stopped_processes(
    run: Run, incident: Incident, stopped: list[Process], phase: str
) -> Finding | None:
    """The finding of a launch with processes that are stopped (SIGSTOP, a debugger)."""
    if not stopped or not run.events:
        return None
    names = ", ".join(f"{process.name} (pid {process.pid})" for process in stopped[:4])
    case = Case(run, incident)
    return case.finding(
        "stopped-process",
        "external_kill",
        run.events[-1],
        title=f"{names} is stopped (SIGSTOP or a debugger): the launch waits for ever",
        explanation=f"The operating system reports {names} as stopped. It goes on with "
        f"`kill -CONT {stopped[0].pid}`.",
        evidence=case.evidence(*_last_words(run)),
        phase=phase,
        rank=None,
        facts={"pids": [process.pid for process in stopped], "outcome": "hung"},
    )


def gone_without_word(run: Run, incident: Incident, how: str, phase: str) -> Finding | None:
    """The finding of a launch whose processes are gone though the log tells of no end."""
    if not run.events:
        return None
    case = Case(run, incident)
    return case.finding(
        GONE,
        "external_kill",
        run.events[-1],
        title=f"The launch is gone without a last word, in phase {phase}: {how}",
        explanation=f"The log ends in phase {phase} with no error, and {how}. A process that is "
        "killed outright (SIGKILL, the kernel's out-of-memory killer, a container's limit) can "
        "write nothing; `dmesg` or the container's status tell more.",
        evidence=case.evidence(run.events[-1]),
        confidence="medium",
        phase=phase,
        rank=None,
        facts={"how": how, "outcome": "failed"},
    )


def _last_words(run: Run) -> list[Event]:
    last = [facts.last for facts in run.ordered_ranks() if facts.last is not None]
    return sorted(last, key=lambda event: event.line)[:8] or run.events[-1:]
