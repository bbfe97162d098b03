"""How a run ended and the phase it reached, from its marks alone.

What the rules find can say more (a hang, a degradation); they do so on top of this.
"""

from __future__ import annotations

from forensics.events import PHASES
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
        "init_failed",
        "warmup_failed",
        "ray_scheduler_crashed",
        "ray_actor_terminated",
        "server_terminated",
        "shell_killed",
        "kernel_oom_kill",
        "fatal_python_error",
        "terminate_called",
        "unrecognized_arguments",
        "ambiguous_option",
        "argument_error",
        "bind_failed",
    }
)
"""Kinds after which this launch is over, unless it was being stopped."""

STOPS = frozenset({"sigterm", "sigterm_node", "draining", "uvicorn_shutdown"})
"""Kinds of an orderly end."""


def outcome_of(run: Run) -> tuple[str, str]:
    """Outcome and phase (the words of the JSON contract)."""
    stop = next((e for e in run.events if e.kind in STOPS), None)
    crash = next(
        (e for e in run.events if e.kind in CRASHES and (stop is None or e.line < stop.line)), None
    )
    fatal = [f for f in run.failures if stop is None or f.line < stop.line]
    if crash is not None or _ended_by(run, fatal):
        return "failed", fatal[0].phase if fatal else _reached(run)
    if stop is not None and run.ready is not None:
        return "stopped", "shutdown"
    if run.ready is not None:
        return ("serving" if run.counts["decode_batch"] else "ready"), "serving"
    return ("stopped" if stop is not None else "unknown"), _reached(run)


def _ended_by(run: Run, fatal: list[Failure]) -> bool:
    """A traceback before readiness that nothing followed but its echoes."""
    if not fatal:
        return False
    if run.ready is None:
        return True
    return any(f.event.kind in ("thread_exception", "process_exception") for f in fatal)


def _reached(run: Run) -> str:
    """The furthest phase of any rank, or of the main process."""
    seen = {facts.phase for facts in run.ranks.values()} | {e.phase for e in run.events}
    return max(seen, key=PHASES.index, default="init")
