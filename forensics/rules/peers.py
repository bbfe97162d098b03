"""Nodes that wait for peers which do not come, with or without an exception at the end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from forensics.events import Event
from forensics.findings import Finding, Remedy
from forensics.incident.processes import flag_number
from forensics.launch import Launch
from forensics.remedies import action, flag, kept
from forensics.rules.base import CONSEQUENCE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.rendezvous import is_loopback
from forensics.rules.said import Said, said

_UNMET = re.compile(
    r"waiting for clients\. (?P<joined>\d+)/(?P<all>\d+) clients joined"
    r"|client socket has timed out after \d+ ?ms while trying to connect to"
    r" \((?P<host>[^,()]+), (?P<port>\d+)\)"
    r"|client socket has failed to connect to any network address of"
    r" \((?P<host2>[^,()]+), (?P<port2>\d+)\)"
    r"|network addresses of \((?P<host3>[^,()]+), (?P<port3>\d+)\) cannot be retrieved"
    r"|store->get\('0'\) got error: (?:wait timeout|Socket Timeout)"
    r"|wait timeout after \d+ms, keys: "
)


@rule(
    "peers-missing",
    class_="rendezvous_config",
    summary="A node waited for the others at the rendezvous until it gave up",
    needs="the time-out of the store or of a connection to it",
    playbook="rendezvous",
)
def peers_missing(case: Case) -> Iterator[Finding | Skip]:
    """The store's own words say who did not come, or where nobody answered."""
    failed = {id(failure.event): failure for failure in case.run.failures}
    lines = list(said(case, _UNMET))
    told = next((line for line in lines if id(line.event) in failed), None)
    if told is None or case.run.ready is not None:
        return
    failure = failed[id(told.event)]
    launch = case.run.launch_of(told.event.source)
    address = _address(told) or str(launch.get("dist_init_addr") or "")
    if flag_number(case.run, told.event.source, "nnodes") == 1 and not address:
        return
    yield case.finding(
        "peers-missing",
        "rendezvous_config",
        told.event,
        title=_unmet_title(told, address),
        explanation=_unmet_why(told, launch, address),
        evidence=[
            *case.evidence(dump_of(case, told.event.source)),
            *case.failure_evidence(failure),
        ],
        remedies=_meet(launch),
        not_helpful=["memory flags: nothing was allocated yet"],
        rank=failure.rank,
        phase="init",
        weight=CONSEQUENCE + 4,
        confidence="medium",
        facts={"address": address or None, "joined": told.match["joined"]},
        playbook="rendezvous",
    )


def _address(told: Said) -> str | None:
    match = told.match
    for host, port in (("host", "port"), ("host2", "port2"), ("host3", "port3")):
        if match[host]:
            return f"{match[host]}:{match[port]}"
    return None


def _unmet_title(told: Said, address: str) -> str:
    if told.match["joined"]:
        return (
            f"Only {told.match['joined']} of {told.match['all']} processes came to the rendezvous"
        )
    return f"Nobody answered at the rendezvous{f' {address}' if address else ''}"


def _unmet_why(told: Said, launch: Launch, address: str) -> str:
    host = address.rsplit(":", 1)[0]
    nodes, rank = launch.get("nnodes"), launch.get("node_rank")
    text = f"This node was started as node_rank {rank} of nnodes {nodes}. " if nodes else ""
    if is_loopback(address):
        return text + (
            f"It waits at {address}, which every host takes for itself: the nodes can only meet at "
            "an address of the head node that all of them reach."
        )
    if told.match["host3"]:
        return text + f"The name {host} has no address here."
    return text + (
        "Every node must be started, with the same nnodes, sizes and dist_init_addr and a "
        "node_rank of its own; the head's port must be open. Compare the launch lines of all nodes."
    )


def _meet(launch: Launch) -> list[Remedy]:
    return kept(
        flag(
            launch,
            "dist_init_addr",
            "<head node's address:port>",
            "one address of the head node that every node reaches, the same on all of them",
            direction="set",
        ),
        action(
            "start_all_nodes",
            "each of the nnodes needs a launch with its own node_rank, within the time-out",
        ),
    )


def dump_of(case: Case, source: int) -> Event | None:
    """What a source started."""
    kinds = ("server_args_dump", "launch_command")
    return next((e for e in case.run.of(*kinds) if e.source == source), None)


_TRIES = re.compile(
    r"client socket has failed to connect to \[?(?P<host>[\w.:-]+?)\]?:(?P<port>\d+) \(errno"
    r"|network addresses of \((?P<host3>[^,()]+), (?P<port3>\d+)\) cannot be retrieved"
)
_LONG = timedelta(seconds=90)
_PAST_MEETING = (
    "dist_init_end",
    "load_weight_begin",
    "load_weight_end",
    "nccl_version",
    "memory_baseline",
    "ready",
)


@rule(
    "still-waiting-for-peers",
    class_="rendezvous_config",
    summary="The log ends while the ranks of a node wait for other nodes",
    needs="several nodes, and nothing after the begin of the process groups for a while",
    playbook="rendezvous",
)
def still_waiting(case: Case) -> Iterator[Finding | Skip]:
    """No exception yet: tries that fail again and again, or silence, then somebody stopped it."""
    run = case.run
    begin = run.first("dist_init_begin")
    if begin is None or run.failures or run.first(*_PAST_MEETING) is not None:
        return
    if all(flag_number(run, source, "nnodes") == 1 for source in run.sources):
        return
    tries = list(said(case, _TRIES))
    last = run.events[-1]
    waited = last.time - begin.time if last.time and begin.time else timedelta()
    if waited < _LONG and len(tries) < 3:
        return
    line = tries[0] if tries else None
    launch = run.launch_of(begin.source)
    address = _tried(line) or str(launch.get("dist_init_addr") or "")
    yield case.finding(
        "still-waiting-for-peers",
        "rendezvous_config",
        line.event if line else begin,
        title=f"The ranks still wait for the other nodes{f' at {address}' if address else ''}",
        explanation=f"{waited.total_seconds():.0f} s after the process groups were begun, no rank "
        "had come past that step. Every node must be started, with the same nnodes, sizes and "
        "dist_init_addr and a node_rank of its own; the head's port must be open.",
        evidence=[
            *case.evidence(dump_of(case, begin.source), begin),
            *([line.evidence(case)] if line else []),
        ],
        remedies=_meet(launch),
        rank=None,
        phase="init",
        known_at=case.known(last),
        confidence="medium" if line else "low",
        weight=CONSEQUENCE + 1,
        facts={"outcome": "hung", "address": address or None},
        playbook="rendezvous",
    )


def _tried(line: Said | None) -> str | None:
    if line is None:
        return None
    host, port = (
        line.match["host"] or line.match["host3"],
        line.match["port"] or line.match["port3"],
    )
    return f"{host}:{port}"
