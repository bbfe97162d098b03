"""How a run ended and the phase it reached, from its marks alone.

What the rules find can say more (a hang, a degradation); they do so on top of this.
"""

from __future__ import annotations

from forensics.events import PHASES, Event
from forensics.incident.failures import is_interrupt, joined_late
from forensics.incident.model import Failure, Run

CRASHES = frozenset(
    {
        "scheduler_exception",
        "model_server_exception",
        "child_failed",
        "sigquit",
        "child_exit",
        "subprocess_crashed",
        "scheduler_dead",
        "scheduler_died",
        "scheduler_terminated",
        "init_failed",
        "warmup_failed",
        "ray_scheduler_crashed",
        "ray_actor_terminated",
        "server_terminated",
        "shell_killed",
        "kernel_oom_kill",
        "fatal_python_error",
        "segfault_encountered",
        "terminate_called",
        "unrecognized_arguments",
        "ambiguous_option",
        "argument_error",
        "bind_failed",
        "sigterm_forced",
    }
)
"""Kinds after which this launch is over, unless it was being stopped."""

STOPS = frozenset({"sigterm", "sigterm_node", "draining", "uvicorn_shutdown"})
"""Kinds of an orderly end."""

_SOFT_ENDS = frozenset({0, 143, -15, None})
"""Exit codes of an end that somebody asked for."""
_ASKED = ("Terminated", "Completed")


def is_crash(event: Event) -> bool:
    """Whether a record says that a process of the launch ended against its will."""
    if event.kind in CRASHES:
        return event.fields.get("exit_code", 1) not in (0, None)
    if event.kind == "container_exit_code":
        return event.number("exit_code") not in _SOFT_ENDS
    if event.kind == "container_reason":
        return event.string("container_cause").strip() in ("OOMKilled", "Error")
    return event.kind == "shell_signal_line" and event.string("shell_signal") not in _ASKED


def stop_of(run: Run) -> Event | None:
    """The line from which the launch was being stopped: a signal, or Ctrl-C."""
    return next((e for e in run.events if e.kind in STOPS or is_interrupt(e)), None)


def outcome_of(run: Run) -> tuple[str, str]:
    """Outcome and phase (the words of the JSON contract)."""
    stop = stop_of(run)
    before = _until(run, stop)
    crash = next((event for event in before if is_crash(event)), None)
    lines = {id(event) for event in before} if stop is not None else None
    fatal = [f for f in run.failures if lines is None or id(f.event) in lines]
    if crash is not None or _ended_by(run, fatal):
        first = next((f for f in fatal if f.rank is not None), fatal[0] if fatal else None)
        if first is None and crash is not None and not joined_late(run):
            return "failed", crash.phase
        return "failed", first.phase if first else _reached(run)
    if stop is not None and run.ready is not None:
        return "stopped", "shutdown"
    if run.ready is not None:
        return ("serving" if run.counts["decode_batch"] else "ready"), "serving"
    if joined_late(run):
        return ("serving" if stop is None else "stopped"), "serving"
    asked = stop is not None or any(
        e.kind == "shell_signal_line" and e.string("shell_signal") in _ASKED for e in run.events
    )
    return ("stopped" if asked else "unknown"), _reached(run)


def _until(run: Run, stop: Event | None) -> list[Event]:
    if stop is None:
        return run.events
    return run.events[: next(i for i, event in enumerate(run.events) if event is stop)]


def _ended_by(run: Run, fatal: list[Failure]) -> bool:
    """A traceback before readiness that nothing followed but its echoes."""
    if not fatal:
        return False
    if run.ready is None:
        return True
    return any(
        f.event.kind in ("thread_exception", "process_exception")
        or (f.event.source not in run.readies and f.phase not in ("serving", "shutdown"))
        for f in fatal
    )


def _reached(run: Run) -> str:
    """The furthest phase of any rank, or of the main process."""
    seen = {facts.phase for facts in run.ranks.values()} | {e.phase for e in run.events}
    if joined_late(run):
        seen.add("serving")
    return max(seen, key=PHASES.index, default="init")
