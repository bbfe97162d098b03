"""Processes that failed: every traceback that ends one, with what it was doing."""

from __future__ import annotations

from forensics.events import Event, Traceback
from forensics.grammar.oom import OutOfMemory, parse_out_of_memory
from forensics.incident.model import Failure, Run
from forensics.incident.phases import phase_of_frames
from forensics.incident.processes import flag_number
from forensics.timeline.runs import PHASE_OF

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


_ANYONE = frozenset({"uvicorn_started", "uvicorn_running", "ready"})
"""Marks of a server that goes on, whoever printed the traceback."""


def find_failures(run: Run) -> list[Failure]:
    """The failures among the events of one run, in reading order.

    A traceback after which its process went on starting was caught: it is no failure.
    """
    found = [failure for event in run.events if (failure := _failure(run, event)) is not None]
    return [failure for failure in found if not _survived(run, failure)] if found else []


_OF_A_START = (
    "server_args_dump",
    "launch_command",
    "dist_init_begin",
    "load_weight_begin",
    "load_weight_end",
    "memory_pool_end",
    "capture_begin",
    "ready",
)


def joined_late(run: Run) -> bool:
    """Whether the log begins in the middle: a server serves in it, and nothing shows its start."""
    return run.counts["decode_batch"] > 0 and not any(run.counts[kind] for kind in _OF_A_START)


def served_before(run: Run, event: Event) -> bool:
    """Whether the server that an event belongs to was ready by then."""
    if joined_late(run):
        return True
    own = run.readies.get(event.source)
    if own is not None:
        return event.line > own.line
    if run.ready is None or flag_number(run, event.source, "nnodes") == 1:
        return False
    at, ready_at = event.time, run.ready.time
    return at is not None and ready_at is not None and at >= ready_at


def is_interrupt(event: Event) -> bool:
    """Whether a traceback tells of Ctrl-C: somebody ended the launch, nothing failed."""
    chain = event.traceback.chain if event.traceback else []
    return bool(chain) and chain[0].name == "KeyboardInterrupt"


def _failure(run: Run, event: Event) -> Failure | None:
    if event.kind in REQUEST_KINDS or is_interrupt(event):
        return None
    if event.traceback is None and event.kind not in CRASH_KINDS:
        return None
    frames = event.traceback.frames if event.traceback else []
    phase = phase_of_frames(frames, ready=served_before(run, event)) or event.phase
    return Failure(event, event.rank, phase, event.traceback, _out_of_memory(event))


def _survived(run: Run, failure: Failure) -> bool:
    event = failure.event
    if event.kind in CRASH_KINDS or failure.phase in ("serving", "shutdown"):
        return False
    alone = not any(source == event.source for source, _ in run.ranks)
    for other in run.events:
        if other.source == event.source and other.line > event.end_line:
            same = other.rank == failure.rank and (failure.rank is not None or alone)
            if other.kind in _ANYONE or (same and other.kind in PHASE_OF):
                return True
    return False


def _out_of_memory(event: Event) -> OutOfMemory | None:
    """The allocator's message of a failure: of its first exception that has one."""
    for message in _messages(event.traceback):
        if found := parse_out_of_memory(message):
            return found
    return parse_out_of_memory(event.text)


def _messages(traceback: Traceback | None) -> list[str]:
    return [raised.message for raised in traceback.chain] if traceback else []
