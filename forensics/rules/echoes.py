"""Echoes: what a process says because another one failed.

A closed connection, an aborted communicator or a store that no longer answers is printed by the
survivors, often before the process that failed has printed its own exception.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from forensics.events import Event, Raised
from forensics.findings import Finding
from forensics.incident import Failure
from forensics.rules.case import Case

ECHO_KINDS = frozenset(
    {
        "tcpstore_error",
        "nccl_store_error",
        "gloo_peer_closed",
        "peer_lost",
        "collective_aborted",
        "collective_state",
        "collective_timeout",
        "load_straggler",
        "monitored_barrier_failed",
        "scheduler_died",
        "scheduler_dead",
        "server_terminated",
        "init_failed",
        "process_name_line",
    }
)
"""Kinds of exceptions and records that tell of somebody else's failure."""

_ECHO_TYPES = frozenset(
    {
        "EOFError",
        "BrokenPipeError",
        "ConnectionResetError",
        "ConnectionRefusedError",
        "KeyboardInterrupt",
        "SystemExit",
        "CancelledError",
        "RemoteDisconnected",
    }
)
_ECHO_TEXT = re.compile(
    r"communicator was aborted|remote process exited|ncclRemoteError|[Cc]onnection (?:was )?closed"
    r"|Connection reset by peer|Broken pipe|Socket closed|recvValue failed|sendBytes failed"
    r"|Server process (?:exited|terminated)|other ranks that didn't finish|scheduler died"
    r"|Please see the error messages above|Server unexpectedly exits|Connection aborted"
    r"|actor died unexpectedly|Watchdog caught collective|c10::DistBackendError"
)

_WAITED = frozenset({"transfer_failed", "prefill_dead"})
"""What prefill and decode say when the other side has failed."""

_WORDS = {
    "collective_timeout": "timed out in a collective",
    "gloo_peer_closed": "lost a connection",
    "tcpstore_error": "lost the store",
    "collective_aborted": "aborted its communicator",
}


def echoes_another(raised: Raised) -> bool:
    """Whether an exception tells of another process's failure."""
    return (
        raised.name in _ECHO_TYPES
        or raised.kind in ECHO_KINDS
        or bool(_ECHO_TEXT.search(raised.message[:2_000]))
    )


def is_echo(failure: Failure) -> bool:
    """Whether a failure follows from another process's: its first exception says so."""
    raised = failure.traceback.cause if failure.traceback else None
    if raised is not None and raised.type:
        return echoes_another(raised)
    if failure.event.kind in ECHO_KINDS:
        return True
    return bool(_ECHO_TEXT.search(failure.event.text[:2_000]))


def primary(failures: Iterable[Failure]) -> Failure | None:
    """The first failure that is nobody's echo."""
    return next((failure for failure in failures if not is_echo(failure)), None)


def of_others(case: Case, root: Finding) -> Finding | None:
    """One finding for all that failed after and because of the root cause; None if nothing did."""
    here = root.first.source
    records = [
        event
        for event in _later(case, root)
        if event.rank != root.rank or case.path(event.source) != here
    ]
    if not records:
        return None
    ranks = list(dict.fromkeys(event.rank for event in records if event.rank))
    first = records[0]
    who = f"{len(ranks)} other rank{'s' * (len(ranks) != 1)}" if ranks else "Other processes"
    named = f": {', '.join(ranks[:16])}{', …' * (len(ranks) > 16)}" if ranks else ""
    kinds = {_WORDS[e.kind] for e in records if e.kind in _WORDS}
    how = f" ({', '.join(sorted(kinds))})" if kinds else ""
    return case.finding(
        "echo-failures",
        root.class_,
        first,
        severity="warning",
        role="consequence",
        title=f"{who} failed in consequence{how}{named}",
        explanation="They lost a peer that had failed, or failed in the same way after it. "
        "Mend the root cause; these need nothing of their own.",
        evidence=case.evidence(*_one_each(records)),
        rank=ranks[0] if len(ranks) == 1 else None,
        facts={"ranks": ranks, "records": len(records)},
        playbook="echo-failures",
    )


def _later(case: Case, root: Finding) -> list[Event]:
    """Failures and echo records other than the root's own."""
    own = {(e.source, e.line) for e in root.evidence} | {(root.first.source, root.first.line)}
    failed = {id(failure.event) for failure in case.run.failures}
    told = (ECHO_KINDS | _WAITED) - {"process_name_line", "collective_state"}
    if root.class_ == "pd_transfer":
        told -= _WAITED
    return [
        event
        for event in case.run.events
        if (id(event) in failed or (event.kind in told and event.rank is not None))
        and (case.path(event.source), event.line) not in own
    ]


def _one_each(records: list[Event]) -> list[Event]:
    """The first record of each rank."""
    firsts: dict[tuple[int, str | None], Event] = {}
    for event in records:
        firsts.setdefault((event.source, event.rank), event)
    return list(firsts.values())[:8]
