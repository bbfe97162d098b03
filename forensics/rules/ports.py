"""A port that is taken: which one, by a race or by another server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from forensics.findings import Finding, Remedy
from forensics.incident import Failure
from forensics.remedies import action, flag, kept
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.said import Said, said

_TAKEN = re.compile(
    r"EADDRINUSE|[Aa]ddress already in use|Errno 98\]|errno: 98\b|Port is already in use"
    r"|port at \d+ is not available|Failed to bind to address"
)
_PORT = re.compile(
    r"port: (\d+)|\]:(\d+)\b|', (\d+)\)|tcp://[^\s'\"]*:(\d+)|:(\d+) \(errno|port (?:at )?(\d+)"
    r"|_port=(\d+)"
)


@dataclass(frozen=True, slots=True)
class _Refused:
    """A bind that failed, with what is known of the port and of who tried."""

    first: Said
    told: Said
    """The message that ended the process."""
    port: int | None
    owner: str
    """`http`, `bootstrap`, `rendezvous` or `messages`."""
    failure: Failure | None


@rule(
    "port-in-use",
    class_="port_in_use",
    summary="A port that the launch needs is taken",
    needs="the refusal to bind, with or without a traceback",
)
def port_in_use(case: Case) -> Iterator[Finding | Skip]:
    """A process ended because a port was taken."""
    if (found := _refused(case)) is None:
        return
    event = found.first.event
    failure = found.failure
    rank = failure.rank if failure else event.rank
    where = f"port {found.port}" if found.port else "a port"
    whose = _WHOSE[found.owner]
    race = found.owner in ("rendezvous", "messages") and _picked_at_random(case, found)
    yield case.finding(
        "port-in-use",
        "port_in_use",
        event,
        title=f"{where[0].upper()}{where[1:]} is taken: {whose} could not listen",
        explanation=_explain(found, where, whose, race),
        evidence=[
            found.first.evidence(case),
            found.told.evidence(case),
            *(case.failure_evidence(failure) if failure else []),
        ],
        remedies=_remedies(case, found, race),
        not_helpful=["memory flags: a port is taken, nothing ran out"],
        first=found.first.place(case),
        known_at=case.known(found.told.event, found.told.line),
        rank=rank,
        phase=(failure.phase if failure else event.phase),
        weight=FAILURE,
        facts={"port": found.port, "used_for": found.owner, "race": race, "outcome": "failed"},
    )


_WHOSE = {
    "http": "the HTTP server",
    "bootstrap": "the bootstrap server of disaggregation",
    "rendezvous": "the store at which the ranks of a process group meet",
    "messages": "the message queue between processes",
}


def _refused(case: Case) -> _Refused | None:
    """The bind that ended a process, and the first line about the same port."""
    failed = {id(failure.event): failure for failure in case.run.failures}
    lines = list(said(case, _TAKEN))
    for told in lines:
        failure = failed.get(id(told.event))
        if failure is None and told.event.kind != "bind_failed":
            continue
        port = _port(told)
        same = [line for line in lines if port is not None and _port(line) == port]
        return _Refused(same[0] if same else told, told, port, _owner(case, told, port), failure)
    return None


def _port(line: Said) -> int | None:
    found = _PORT.search(line.text[:2_000])
    return int(next(filter(None, found.groups()))) if found else None


def _owner(case: Case, told: Said, port: int | None) -> str:
    launch = case.run.launch_of(told.event.source)
    if port is not None and port == launch.number("disaggregation_bootstrap_port"):
        return "bootstrap"
    if told.event.kind == "bind_failed" or (port is not None and port == launch.number("port")):
        return "http"
    return "messages" if "tcp://" in told.text or "zmq" in told.text.lower() else "rendezvous"


def _picked_at_random(case: Case, found: _Refused) -> bool:
    """The port was not asked for: the launcher had found it free a moment before."""
    launch = case.run.launch_of(found.told.event.source)
    address = str(launch.get("dist_init_addr") or "")
    asked = {str(launch.get("nccl_port")), address.rsplit(":", 1)[-1]}
    return found.port is None or str(found.port) not in asked


def _explain(found: _Refused, where: str, whose: str, race: bool) -> str:
    text = f"{whose[0].upper()}{whose[1:]} could not bind {where}."
    if race:
        text += (
            " The port was picked while it was free, and another process took it before it was"
            " used: a race, which becomes likely when several servers or data-parallel replicas"
            " start on one host at once. A second start usually passes."
        )
    elif found.owner == "http":
        text += (
            " Another server, often the one of an earlier launch, still listens there. The process"
            " may hang instead of ending, and then holds its GPUs."
        )
    else:
        text += " Another launch on this host uses the same port."
    return text


def _remedies(case: Case, found: _Refused, race: bool) -> list[Remedy]:
    launch = case.run.launch_of(found.told.event.source)
    if found.owner == "http":
        return kept(
            action("stop_other_server", "the server that holds the port, if it is a leftover"),
            flag(launch, "port", "<free port>", "a port that nobody listens on", direction="set"),
        )
    if found.owner == "messages":
        return kept(
            action("retry_start", "the race is rarely lost twice") if race else None,
            flag(launch, "port", "<free port>", "the others are counted from it", direction="set"),
        )
    if found.owner == "bootstrap":
        return kept(
            flag(
                launch,
                "disaggregation_bootstrap_port",
                "<free port>",
                "each prefill server of a host needs its own",
                direction="set",
            ),
            action("stop_other_server", "the server that holds the port, if it is a leftover"),
        )
    several = (launch.number("dp_size") or 1) > 1 and not launch.get("enable_dp_attention")
    fixed = "<fixed free port>"
    reason = "a port outside the range that the kernel hands out cannot be lost to a race"
    multi_node = (launch.number("nnodes") or 1) > 1
    return kept(
        flag(launch, "dist_init_addr", "<head:free port>", reason, direction="set")
        if multi_node
        else flag(launch, "nccl_port", fixed, reason, direction="set"),
        action("retry_start", "the race is rarely lost twice") if race else None,
        action(
            "run_separate_instances",
            "one server for each replica, behind a router, each with its own ports",
        )
        if several
        else None,
        None if race else action("stop_other_server", "the launch that holds the port"),
    )
