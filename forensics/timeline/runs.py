"""Which launch a record belongs to, and the phase its rank was in.

A file may hold several launches (`>>`). A new one begins with a launch command or a server_args
dump after ranks were seen, or, after a launch that ended, with the first line that only a
starting server prints.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from forensics.events import Event

PHASE_OF = {
    "dist_init_begin": "init",
    "load_weight_begin": "load",
    "load_weight_end": "kv_pool",
    "kv_cache_allocated": "kv_pool",
    "host_cache_allocating": "kv_pool",
    "host_pool_allocating": "kv_pool",
    "capture_begin": "graph_capture",
    "capture_sizes": "graph_capture",
    "capture_progress": "graph_capture",
    "capture_end": "warmup",
    "deepgemm_precompile": "warmup",
    "deepgemm_compile_all": "warmup",
    "max_total_tokens": "warmup",
    "uvicorn_started": "warmup",
    "ready": "serving",
    "sigterm": "shutdown",
    "draining": "shutdown",
    "uvicorn_shutdown": "shutdown",
}
"""Kinds that move the rank that prints them to another phase."""

ENDS = frozenset(
    {
        "child_failed",
        "sigquit",
        "child_exit",
        "process_exception",
        "scheduler_exception",
        "model_server_exception",
        "scheduler_dead",
        "scheduler_died",
        "subprocess_crashed",
        "scheduler_terminated",
        "server_terminated",
        "init_failed",
        "shell_killed",
        "unrecognized_arguments",
        "ambiguous_option",
        "argument_error",
        "uvicorn_finished",
        "uvicorn_shutdown_complete",
        "draining",
        "container_reason",
    }
)
"""Kinds after which a starting line means another launch."""

STARTS = frozenset({"server_args_dump", "launch_command"})
"""Kinds that only a starting server prints."""

_EVERYONE = ("ready", "sigterm", "draining", "uvicorn_shutdown")
_AFTER = ("serving", "shutdown")


@dataclass(slots=True)
class RunTracker:
    """Marks the records of one source with run and phase, in reading order."""

    run: int = 1
    phases: dict[str, str | None] = field(default_factory=dict)
    """Phase by rank tag; None until the rank prints a mark of its own."""
    starts: list[tuple[int, int]] = field(default_factory=lambda: [(0, 1)])
    """First line of each run of this source."""
    _main: str = "init"
    _over: bool = False
    _dumped_by: set[str | None] = field(default_factory=set)
    _said: int = 0

    def mark(self, event: Event, early: bool = False) -> None:
        """Set `run` and `phase` of an event."""
        if self._begins(event, early):
            self._restart(event)
        event.run = self.run
        self._said += event.kind != "other"
        if event.kind == "server_args_dump":
            self._dumped_by.add(event.node)
        self._advance(event)
        event.phase = (self.phases.get(event.rank) if event.rank else None) or self._main
        if event.kind in ENDS or (event.kind == "traceback" and self._in_arguments(event)):
            self._over = True

    def _begins(self, event: Event, early: bool) -> bool:
        if self._over:
            early = early and event.rank is None and event.level in ("WARNING", "INFO")
            return event.kind in STARTS or _sets_up(event) or early
        if event.kind not in STARTS or not self._said:
            return False
        if event.kind == "server_args_dump" and event.node not in self._dumped_by:
            return bool(self.phases) and not self._dumped_by
        return bool(self.phases) or self._main != "init"

    def _restart(self, event: Event) -> None:
        self.run += 1
        self.starts.append((event.line, self.run))
        self.phases, self._main, self._over = {}, "init", False
        self._dumped_by, self._said = set(), 0

    def _in_arguments(self, event: Event) -> bool:
        return event.rank is None and not self.phases and self._main == "init"

    def _advance(self, event: Event) -> None:
        phase = PHASE_OF.get(event.kind)
        if event.rank is not None:
            self.phases.setdefault(event.rank, None)
        if event.kind == "decode_batch" and self._joined_late():
            self._main = "serving"
        if phase is None:
            return
        if event.kind in _EVERYONE:
            self._main = phase
            self.phases = dict.fromkeys(self.phases, phase)
        elif event.rank is not None:
            if self.phases[event.rank] in _AFTER and phase in ("kv_pool", "warmup"):
                return  # a kernel compiled for a request, a pool made anew
            self.phases[event.rank] = phase
            if self._main not in _AFTER:
                self._main = phase
        elif self._main not in _AFTER:
            self._main = phase

    def _joined_late(self) -> bool:
        """Whether nothing of a start was seen: the log begins in the middle."""
        return self._main == "init" and not self._dumped_by and not any(self.phases.values())


def _sets_up(event: Event) -> bool:
    """A variable set by a shell that shows its commands: the next launch begins with it."""
    return event.kind == "environment_assignment" and event.text.startswith(("+ ", "export "))
