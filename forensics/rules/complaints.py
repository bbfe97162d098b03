"""Records that tell of something wrong, and the failure to which each belongs.

Signatures may look at them where no exception fits: what a compiler said before a traceback, the
rest of a message after it, the last words of a process that ended without one. A notice that the
launch outlived, or that has nothing to do with the failure at hand, is left out: healthy starts
print many of those.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from forensics.events import PHASES, Event
from forensics.incident import Failure
from forensics.incident.processes import tag_of_dead
from forensics.rules.case import Case
from forensics.timeline.runs import PHASE_OF

_TAIL_LINES = 25
"""How far a failure's message may go on after its traceback, as lines without a head."""
_HEAD_LINES = 15
"""How far before a traceback a compiler's words may stand, as lines without a head."""
_OBITUARY_LINES = 400
"""How far after a process's last words (a C++ and a Python stack) the launcher reports it."""
_LONGEST = 2000

_NOT_OURS = frozenset(
    {
        "server_args_dump",
        "launch_command",
        "request_received",
        "http_access",
        "import_ignored",
        "generation_config_missing",
        "python_warning",
        "python_warning_source",
    }
)
"""What a user or client wrote, and notices of healthy starts."""
_LAST_WORDS = frozenset(
    {"cpp_what", "terminate_called", "fatal_python_error", "kernel_segfault", "device_assert_line"}
)
"""Kinds that say by themselves that a process ended."""
_COMPLAINS = re.compile(
    r"error|fail|fatal|assert|abort|cannot|can't|could ?n[o']t|unable|missing|not found|invalid"
    r"|unsupported|not support|no such|illegal|unrecogni|denied|not permitted|what\(\)|out of"
    r"|no kernel|too old|killed"
)
"""Of text in lower case: to search that is ten times as fast as to ignore case."""


@dataclass(frozen=True, slots=True)
class Complaint:
    """A record, and the failure that it tells of (None: none with a traceback)."""

    event: Event
    failure: Failure | None

    @property
    def first(self) -> Event:
        """Where it begins: the failure's record, unless the complaint comes before it."""
        if self.failure is not None and self.failure.line < self.event.line:
            return self.failure.event
        return self.event


def complaints(case: Case) -> list[Complaint]:
    """The complaints of a run, in reading order."""
    if "complaints" not in case.memo:
        case.memo["complaints"] = list(_found(case))
    found: list[Complaint] = case.memo["complaints"]
    return found


def _found(case: Case) -> list[Complaint]:
    explained = any(_is_servers(failure) for failure in case.run.failures)
    found = []
    for event in case.run.events:
        if event.kind in _NOT_OURS or not _COMPLAINS.search(event.text[:_LONGEST].lower()):
            continue
        failure = _telling(case, event)
        if event.rank is None and event.kind in _LAST_WORDS:
            event.rank = _rank_of_dead(case, event)
        if failure is None and not _last_words(event) and (explained or _outlived(case, event)):
            continue
        found.append(Complaint(event, failure))
    return found


def _rank_of_dead(case: Case, event: Event) -> str | None:
    """The rank of a process that the launcher reports dead after its last words."""
    for later in case.run.of("subprocess_crashed", "scheduler_dead", "scheduler_died"):
        if later.source == event.source and 0 < later.line - event.line <= _OBITUARY_LINES:
            return tag_of_dead(case.run, event.source, later.fields)
    return None


def _last_words(event: Event) -> bool:
    """Whether a record says by itself that a process, or a rank's work, ended."""
    by_rank = event.rank is not None and event.level in ("ERROR", "FATAL", "CRITICAL")
    return event.kind in _LAST_WORDS or by_rank


def _is_servers(failure: Failure) -> bool:
    """Whether a traceback is of the server itself, not of what started it."""
    frames = failure.traceback.frames if failure.traceback else []
    return any("sglang/" in frame.file for frame in frames)


def _telling(case: Case, event: Event) -> Failure | None:
    """The failure to which a line without a head belongs.

    It goes on with the message of one before it, or is what a compiler said just before one.
    """
    if event.rank is not None:
        return None
    for failure in case.run.failures:
        own = failure.event
        if own.source != event.source:
            continue
        after = own.line < event.line <= own.end_line + _TAIL_LINES
        if after and event.time in (None, own.time):
            return failure
        if 0 < own.line - event.end_line <= _HEAD_LINES:
            return failure
    return None


def _outlived(case: Case, event: Event) -> bool:
    """Whether the launch went on to another phase after a complaint."""
    here = PHASES.index(event.phase)
    return any(
        later.line > event.line
        and later.source == event.source
        and (later.rank == event.rank or None in (later.rank, event.rank))
        and here < PHASES.index(PHASE_OF[later.kind]) < PHASES.index("shutdown")
        for later in case.run.of(*PHASE_OF)
    )
