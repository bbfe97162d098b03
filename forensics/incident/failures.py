"""Processes that failed: every traceback that ends one, with what it was doing."""

from __future__ import annotations

from collections.abc import Iterable

from forensics.events import Event, Traceback
from forensics.grammar.oom import OutOfMemory, parse_out_of_memory
from forensics.incident.model import Failure
from forensics.incident.phases import phase_of_frames

REQUEST_KINDS = frozenset(
    {"asgi_exception", "serving_error", "http_server_error", "request_received", "request_finished"}
)
"""Records whose traceback ends a request, not a process."""

CRASH_KINDS = frozenset(
    {
        "scheduler_exception",
        "process_exception",
        "model_server_exception",
        "thread_exception",
        "ray_scheduler_crashed",
        "ray_actor_terminated",
        "warmup_failed",
        "init_failed",
    }
)
"""Records that say that a process or its main thread ended."""


def find_failures(events: Iterable[Event], ready: Event | None) -> list[Failure]:
    """The failures among the events of one run, in reading order."""
    return [failure for event in events if (failure := _failure(event, ready)) is not None]


def _failure(event: Event, ready: Event | None) -> Failure | None:
    if event.kind in REQUEST_KINDS:
        return None
    if event.traceback is None and event.kind not in CRASH_KINDS:
        return None
    served = ready is not None and (event.source != ready.source or event.line > ready.line)
    frames = event.traceback.frames if event.traceback else []
    phase = phase_of_frames(frames, ready=served) or event.phase
    return Failure(event, event.rank, phase, event.traceback, _out_of_memory(event))


def _out_of_memory(event: Event) -> OutOfMemory | None:
    """The allocator's message of a failure: of its first exception that has one."""
    for message in _messages(event.traceback):
        if found := parse_out_of_memory(message):
            return found
    return parse_out_of_memory(event.text)


def _messages(traceback: Traceback | None) -> list[str]:
    return [raised.message for raised in traceback.chain] if traceback else []
