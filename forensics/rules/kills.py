"""Processes that were killed from outside: they print nothing themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from forensics.events import Event
from forensics.findings import Evidence, Finding
from forensics.incident.failures import served_before
from forensics.incident.outcome import stop_of
from forensics.incident.processes import tag_of_dead
from forensics.remedies import action, kept
from forensics.rules.base import CONSEQUENCE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.echoes import primary
from forensics.rules.said import said

_DEATHS = ("scheduler_died", "subprocess_crashed", "child_exit", "scheduler_terminated")
_KILLED = (-9, 137, -15, 143)
"""Exit codes of SIGKILL and SIGTERM, as Python and as shells print them."""
_EXPLANATION = (
    "A process that is killed has no time to print anything: there is no exception of its own. "
    "The signal comes from the kernel's OOM killer, from a container's memory limit, or from a "
    "person or orchestrator. Nothing in this log points to memory; the kernel log and the "
    "orchestrator's events decide."
)
_HOST_USE = ("host_cache_allocating", "host_pool_allocating")


@dataclass(frozen=True, slots=True)
class _Death:
    """A process that was killed: where the log says so, and which rank it was."""

    event: Event
    line: int
    rank: str | None
    by_launcher: bool
    """The launcher saw its child die; else only the shell or the container tells."""


@rule(
    "killed-from-outside",
    class_="external_kill",
    summary="A process was ended by a signal that it did not send itself",
    needs="an exit code of -9, 137, -15 or 143, or the shell's `Killed`, and no failure before it",
)
def killed_from_outside(case: Case) -> Iterator[Finding | Skip]:
    """A death without an exception: the kernel, an operator, or an orchestrator."""
    if primary(case.run.failures) is not None or case.run.outcome not in ("failed", "hung"):
        return
    if (death := _death(case)) is None:
        return
    if case.run.ready is None and case.run.first(*_HOST_USE) is not None:
        return  # killed while host memory was pinned: the host-memory rules speak
    rank = death.rank
    yield case.finding(
        "killed-from-outside",
        "external_kill",
        death.event,
        title=f"{rank or 'A process'} was killed from outside",
        explanation=_EXPLANATION,
        evidence=_shown(case, death),
        remedies=kept(
            action("check_kernel_log", "dmesg -T | grep -i -e oom -e kill: who sent the signal"),
            action("retry_start", "if a person or an orchestrator ended it"),
        ),
        not_helpful=[
            "mem_fraction_static: GPU memory that runs out raises an exception, it does not kill",
            "dist_timeout, watchdog_timeout: the process is dead",
        ],
        confidence="medium" if death.by_launcher else "low",
        rank=rank,
        phase=_phase(case, death),
        known_at=case.known(death.event, death.event.end_line),
        weight=CONSEQUENCE + 3,
    )


_ORCHESTRATOR = re.compile(
    r"Stopping container|\bKilling\b.*(?:container|pod)|\bEvict(?:ed|ion)\b|\bPreempt(?:ed|ion)\b"
    r"|TaintManagerEviction|node (?:is )?(?:shutting down|not ready)"
    r"|DUE TO (?:TIME LIMIT|PREEMPTION|NODE FAILURE)|CANCELLED AT"
)


@rule(
    "stopped-while-starting",
    class_="external_kill",
    severity="warning",
    summary="An orchestrator took the launch away before it was ready",
    needs="the orchestrator's event, and a start without a failure before it",
    playbook="killed-from-outside",
)
def stopped_while_starting(case: Case) -> Iterator[Finding | Skip]:
    """A pod deleted or evicted, a job cancelled: SGLang itself had nothing to complain of."""
    if case.run.ready is not None or case.run.outcome != "stopped" or case.run.failures:
        return
    told = next(iter(said(case, _ORCHESTRATOR)), None)
    if told is None:
        return
    yield case.finding(
        "stopped-while-starting",
        "external_kill",
        told.event,
        severity="warning",
        title="The orchestrator stopped the launch before it was ready",
        explanation="No process failed: the container or job was taken away while the server was "
        "still starting. A deleted or evicted pod, a rollout, a preempted or cancelled job; a "
        "failed probe would be named beside it.",
        evidence=[told.evidence(case)],
        remedies=kept(
            action("inspect_pod_events", "kubectl describe pod / kubectl get events: who and why"),
            action("retry_start", "if it was a rollout, an eviction or a person"),
        ),
        not_helpful=["memory flags: nothing ran out", "watchdog_timeout: SGLang did not end it"],
        known_at=case.known(told.event, told.line),
        rank=None,
        phase=case.run.phase,
        confidence="medium",
        weight=CONSEQUENCE + 2,
        facts={"outcome": "stopped"},
    )


def _death(case: Case) -> _Death | None:
    """The first process that was killed, by the launcher's word, else by the shell's."""
    stopped = stop_of(case.run)
    for event in case.run.events:
        if event is stopped:
            return None
        if (found := _told(case, event)) is not None:
            return found
    for event in case.run.of("shell_killed", "shell_signal_line", "container_exit_code"):
        if event.string("shell_signal") == "Killed" or event.number("exit_code") in _KILLED:
            return _Death(event, event.line, None, by_launcher=False)
    return None


def _told(case: Case, event: Event) -> _Death | None:
    if event.kind in _DEATHS and event.number("exit_code") in _KILLED:
        return _Death(
            event, event.line, tag_of_dead(case.run, event.source, event.fields), by_launcher=True
        )
    if event.kind == "scheduler_dead" and _exit_code(case, event) in _KILLED:
        return _Death(
            event, event.line, tag_of_dead(case.run, event.source, event.fields), by_launcher=True
        )
    for raised in event.traceback.chain if event.traceback else ():
        if raised.kind in _DEATHS and raised.fields.get("exit_code") in _KILLED:
            rank = tag_of_dead(case.run, event.source, raised.fields)
            return _Death(event, raised.line or event.line, rank, by_launcher=True)
    return None


def _exit_code(case: Case, event: Event) -> float | None:
    """The code printed on the line after `Rank 2 scheduler is dead`."""
    for other in case.run.of("exit_code_line"):
        if other.source == event.source and 0 < other.line - event.line <= 3:
            return other.number("exit_code")
    return None


def _phase(case: Case, death: _Death) -> str:
    """What the rank was doing when it was killed: its last mark, else that of the run."""
    if served_before(case.run, death.event):
        return "serving"
    facts = case.run.ranks.get((death.event.source, death.rank or ""))
    own = [e for e in facts.events if e.line < death.line] if facts else []
    return own[-1].phase if own else death.event.phase


def _shown(case: Case, death: _Death) -> list[Evidence]:
    shown = case.evidence(death.event)
    for raised in death.event.traceback.chain if death.event.traceback else ():
        if raised.line == death.line:
            shown.append(case.raised(death.event, raised))
    return shown
