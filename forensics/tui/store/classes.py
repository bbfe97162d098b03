"""What the index knows of a line, as one small number: its rank, its kind and how bad it is.

A log of millions of lines has a few dozen such classes, so two bytes a line hold them.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cache

from forensics.events import OTHER, Event
from forensics.findings import SEVERITIES, Severity
from forensics.grammar import load
from forensics.incident.failures import CRASH_KINDS

PART = 0
"""Code of a line that begins no record: it belongs to one before it, or is not yet read."""

_MOST = 60_000
_MOST_RANKS = 2_000
_BAD_LEVELS = frozenset({"ERROR", "CRITICAL", "FATAL"})
_BAD_FILES = frozenset({"errors", "memory_errors"})
"""Grammar files of what is an error whoever says it."""
_BAD_KINDS = CRASH_KINDS | {
    *("traceback", "exception", "sigquit", "child_failed", "scheduler_dead", "scheduler_died"),
    *("watchdog_timeout", "watchdog_crashed", "kernel_oom_kill", "gpu_xid", "fatal_python_error"),
    *("terminate_called", "segfault_encountered", "subprocess_crashed", "shell_killed"),
    *("capture_failed", "dist_init_failed", "server_terminated", "asgi_exception"),
}
_UNEASY_KINDS = frozenset({"retract", "watchdog_soft", "request_aborted", "python_warning"})


@dataclass(frozen=True, slots=True)
class LineClass:
    """What lines have in common: who wrote them, what kind of record, how bad it is."""

    rank: str | None
    kind: str
    severity: Severity | None


class ClassTable:
    """Gives each class its code; codes are given once and stay."""

    def __init__(self) -> None:
        self.entries: list[LineClass] = [LineClass(None, "", None)]
        """By code; the first is that of `PART`."""
        self._codes: dict[LineClass, int] = {}
        self._ranks: set[str | None] = set()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self.entries)

    def code(self, rank: str | None, kind: str, severity: Severity | None) -> int:
        """The code of a class. Of a log with too many ranks to be true the later ones are one."""
        found = self._codes.get(LineClass(rank, kind, severity))
        if found is not None:
            return found
        with self._lock:
            if len(self._ranks) >= _MOST_RANKS and rank not in self._ranks:
                rank = None
            if len(self.entries) >= _MOST:
                rank, kind = None, OTHER
            entry = LineClass(rank, kind, severity)
            if entry not in self._codes:
                self._ranks.add(rank)
                self._codes[entry] = len(self.entries)
                self.entries.append(entry)
            return self._codes[entry]

    def of_event(self, event: Event) -> int:
        """The code of a record."""
        return self.code(event.rank, event.kind, severity_of(event))


def grade(severity: Severity | None) -> int:
    """Severities as numbers, the mildest first; -1 for none."""
    return -1 if severity is None else SEVERITIES.index(severity)


def severity_of(event: Event) -> Severity | None:
    """How bad a record looks by itself, before any rule has judged: None for routine."""
    if event.kind == "http_access":
        return "warning" if (event.number("status") or 0) >= 500 else None
    if event.level in _BAD_LEVELS or event.traceback is not None or event.kind in _BAD_KINDS:
        return "critical"
    if _file_of(event.kind) in _BAD_FILES:
        return "critical"
    if event.level == "WARNING" or event.kind in _UNEASY_KINDS:
        return "warning"
    return None


@cache
def _file_of(kind: str) -> str:
    known = load().kinds.get(kind)
    return known.file if known else ""
