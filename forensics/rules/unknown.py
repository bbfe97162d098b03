"""When no rule fits: the first bad line, its rank, the phase and the frames that matter.

Never silence, and never a guess dressed up.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from forensics.events import Event, Frame
from forensics.findings import Finding
from forensics.incident import Failure
from forensics.incident.failures import CRASH_KINDS, REQUEST_KINDS, served_before
from forensics.incident.outcome import CRASHES, is_crash
from forensics.incident.processes import tag_of_dead
from forensics.rules.base import UNEXPLAINED, Skip, rule
from forensics.rules.case import Case
from forensics.rules.echoes import ECHO_KINDS, is_echo

PLAYBOOK = "unknown-failure"

_ECHOES = frozenset({"child_failed", "sigquit", "child_exit", "init_failed", "server_terminated"})
_NO_FAILURE = REQUEST_KINDS | ECHO_KINDS | {"http_access", "cpp_frame"}
_OUTLIVED = timedelta(minutes=15)
"""Longer than the usual timeouts of collectives and watchdogs."""
_PLUMBING = re.compile(
    r"torch/(?:nn/modules/module|utils/_contextlib)|multiprocessing/|concurrent/|runpy|<frozen|"
    r"<string>|threading\.py|asyncio/|uvloop|uvicorn/|contextlib"
)


@rule(
    PLAYBOOK,
    class_="unknown",
    summary="A failed run that no rule explains: the first bad line, its rank and its frames",
    needs="a run that failed; judged last, when no rule gave a cause",
    names={
        "echo-failures": ("unknown", "Ranks that failed after the first one, because of it"),
    },
)
def published_by_causes(case: Case) -> Iterator[Finding | Skip]:
    """Nothing: `causes.judge` publishes under these ids once every other rule has spoken."""
    del case
    yield from ()


def unexplained(case: Case) -> Finding | None:
    """The finding for a failed run that no rule explains; None if nothing bad is to be seen."""
    failure = first_failure(case)
    event = first_bad(case)
    if failure is not None and not (event is not None and is_echo(failure)):
        return _of_failure(case, failure)
    if event is not None:
        return _of_event(case, event)
    return _of_failure(case, failure) if failure else None


def first_failure(case: Case) -> Failure | None:
    """The failure that comes first of those that are nobody's echo, else the very first."""
    crash = next((e.time for e in case.run.events if e.kind in CRASHES and e.time), None)
    for failure in case.run.failures:
        if not is_echo(failure) and not _long_before(failure, crash):
            return failure
    return case.run.failures[0] if case.run.failures else None


def _long_before(failure: Failure, crash: datetime | None) -> bool:
    """A traceback while serving that the server outlived."""
    if failure.event.kind in CRASH_KINDS or failure.phase != "serving":
        return False
    at = failure.event.time
    return crash is not None and at is not None and crash - at > _OUTLIVED


def first_bad(case: Case) -> Event | None:
    """The first record that tells of a failure: of an error level, else of a crash."""
    order = {id(event): place for place, event in enumerate(case.run.events)}
    crash = next((e for e in case.run.events if is_crash(e)), None)
    end = order[id(crash)] if crash is not None else len(order)
    for event in case.run.events[: end + 1]:
        if event.level in ("ERROR", "CRITICAL", "FATAL") and event.kind not in _NO_FAILURE:
            return event
    primary = [e for e in case.run.events if is_crash(e) and e.kind not in _ECHOES]
    return primary[0] if primary else crash


def condensed(frames: list[Frame], most: int = 6) -> list[str]:
    """The frames that matter: without plumbing, repeats folded, the innermost last."""
    kept: list[str] = []
    for frame in frames:
        if not _PLUMBING.search(frame.file) and (not kept or kept[-1] != frame.short):
            kept.append(frame.short)
    return kept[-most:]


def _of_failure(case: Case, failure: Failure) -> Finding:
    traceback = failure.traceback
    raised = traceback.cause if traceback else None
    name = raised.name if raised and raised.type else "error"
    said = raised.message.split("\n")[0] if raised else failure.event.text
    frames = condensed(raised.frames if raised else [])
    path = f" Innermost frames: {' > '.join(frames)}." if frames else ""
    where = f" on {failure.rank}" if failure.rank else ""
    return case.finding(
        PLAYBOOK,
        "unknown",
        failure.event,
        title=f"No rule explains this {name}{where}: {said[:160]}",
        explanation=f"No rule explains this failure. The first was {name}: {said[:300]}.{path}",
        evidence=case.failure_evidence(failure),
        confidence="low",
        phase=failure.phase,
        rank=failure.rank,
        weight=UNEXPLAINED,
        facts={"exception": name, "message": said[:400], "frames": frames},
        known_at=case.known(failure.event, failure.event.end_line),
    )


def _of_event(case: Case, event: Event) -> Finding:
    said, what = event.text.split("\n")[0], _what(case, event)
    if what is not None:
        said = f"{said}: {what.text.strip().removeprefix('what():').strip()}"
    return case.finding(
        PLAYBOOK,
        "unknown",
        event,
        title=f"No rule explains this line: {said[:160]}",
        explanation="No rule explains this failure, and no traceback of it stands in the log. "
        f"The first bad line says: {said[:300]}",
        evidence=case.evidence(event, what),
        confidence="low",
        weight=UNEXPLAINED,
        rank=event.rank or tag_of_dead(case.run, event.source, event.fields),
        phase="serving" if served_before(case.run, event) else event.phase,
        facts={"message": said[:400], "kind": event.kind},
    )


def _what(case: Case, event: Event) -> Event | None:
    """The message of a C++ exception, which stands on the line after its type."""
    if event.kind != "terminate_called":
        return None
    after = (e for e in case.run.of("cpp_what") if e.source == event.source)
    return next((e for e in after if 0 < e.line - event.line <= 2), None)
