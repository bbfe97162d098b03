"""Nodes that do not find each other: given different parameters, or never started."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from forensics.events import Event
from forensics.findings import Evidence, Finding, Remedy
from forensics.incident.processes import flag_number
from forensics.launch import Launch
from forensics.remedies import action, flag, kept
from forensics.rules.base import CONSEQUENCE, FAILURE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.said import Said, said

_SAME = (
    "nnodes",
    "tp_size",
    "pp_size",
    "dp_size",
    "ep_size",
    "dist_init_addr",
    "model_path",
    "enable_dp_attention",
    "mem_fraction_static",
    "quantization",
    "kv_cache_dtype",
)
"""Flags that every node of one launch must share; the first ones decide whether they meet."""
_MEETING = _SAME[:6]
_PLACEHOLDERS = frozenset({"localhost", "127.0.0.1", "0.0.0.0", "::1"})


def _nodes(case: Case) -> dict[int, Launch]:
    """The launches of the sources that are nodes of one launch (not prefill beside decode)."""
    found = {
        source: launch
        for source, launch in case.run.launches.items()
        if launch.flags and (launch.number("nnodes") or 1) > 1
    }
    parts = {launch.get("disaggregation_mode") for launch in found.values()}
    return found if len(parts) == 1 else {}


def _differences(nodes: dict[int, Launch]) -> dict[str, dict[int, Any]]:
    """Flags that the nodes do not share, with the value of each."""
    found = {}
    for name in _SAME:
        values = {source: launch.get(name) for source, launch in nodes.items()}
        if len({repr(value) for value in values.values()}) > 1 and None not in values.values():
            found[name] = values
    return found


@rule(
    "nodes-disagree",
    class_="rendezvous_config",
    summary="The nodes of one launch were given different parameters",
    needs="the launches of two or more nodes",
)
def nodes_disagree(case: Case) -> Iterator[Finding | Skip]:
    """The dumps of the nodes, side by side."""
    nodes = _nodes(case)
    if len(nodes) < 2 or case.run.ready is not None:
        return
    different = _differences(nodes)
    twice = _repeated_rank(nodes)
    meeting = [name for name in different if name in _MEETING]
    if not (meeting or twice is not None):
        return
    name = meeting[0] if meeting else "node_rank"
    values = different.get(name) or {source: launch.get(name) for source, launch in nodes.items()}
    dumps = [_dump_of(case, source) for source in nodes]
    event = next((dump for dump in reversed(dumps) if dump is not None), None)
    if event is None:
        return
    listed = ", ".join(f"{values[source]} ({case.path(source)})" for source in nodes)
    yield case.finding(
        "nodes-disagree",
        "rendezvous_config",
        event,
        title=f"The nodes do not agree on {name}: {listed}",
        explanation=_why(name)
        + (f" Also different: {', '.join(meeting[1:])}." if meeting[1:] else ""),
        evidence=case.evidence(*dumps),
        remedies=_agree(nodes, name, twice),
        rank=None,
        phase="init",
        known_at=case.known(event),
        weight=FAILURE + 5,
        facts={
            "flag": name,
            "values": {case.path(s): values[s] for s in nodes},
            "outcome": _end(case),
        },
        playbook="rendezvous",
    )


def _repeated_rank(nodes: dict[int, Launch]) -> int | None:
    """A node rank that two nodes were given."""
    ranks = [int(launch.number("node_rank") or 0) for launch in nodes.values()]
    return next((rank for rank in ranks if ranks.count(rank) > 1), None)


def _dump_of(case: Case, source: int) -> Event | None:
    kinds = ("server_args_dump", "launch_command")
    return next((e for e in case.run.of(*kinds) if e.source == source), None)


def _end(case: Case) -> str:
    return "failed" if case.run.outcome == "failed" else "hung"


def _why(name: str) -> str:
    if name == "node_rank":
        return (
            "Two nodes have the same node_rank: both claim the same ranks and the others never "
            "come, so everyone waits."
        )
    if name == "dist_init_addr":
        return "The nodes wait for each other at different addresses, so they never meet."
    return (
        f"Each node works out from {name} how many ranks there are and which are its own. With "
        "different values they wait for ranks that nobody starts, or refuse each other's tensors."
    )


def _agree(nodes: dict[int, Launch], name: str, twice: int | None) -> list[Remedy]:
    """The head node's value for everyone; a free rank where one was given twice."""
    sources = list(nodes)
    head = next((s for s in sources if nodes[s].number("node_rank") in (0, None)), sources[0])
    other = next(s for s in sources if s != head)
    if name == "node_rank":
        taken = {int(launch.number("node_rank") or 0) for launch in nodes.values()}
        free = next(rank for rank in range(len(nodes) + 1) if rank not in taken)
        return kept(
            flag(nodes[other], name, free, f"rank {twice} was given twice", direction="set")
        )
    value = nodes[head].get(name)
    return kept(flag(nodes[other], name, value, "the same on every node", direction="set"))


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
        explanation=_unmet_why(case, told, launch, address),
        evidence=[*_flags_shown(case, told.event), *case.failure_evidence(failure)],
        remedies=_unmet_remedies(case, told, launch, address),
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


def _flags_shown(case: Case, event: Event) -> list[Evidence]:
    return case.evidence(_dump_of(case, event.source))


def _unmet_title(told: Said, address: str) -> str:
    if told.match["joined"]:
        return (
            f"Only {told.match['joined']} of {told.match['all']} processes came to the rendezvous"
        )
    return f"Nobody answered at the rendezvous{f' {address}' if address else ''}"


def _unmet_why(case: Case, told: Said, launch: Launch, address: str) -> str:
    host = address.rsplit(":", 1)[0]
    nodes, rank = launch.get("nnodes"), launch.get("node_rank")
    text = f"This node was started as node_rank {rank} of nnodes {nodes}. " if nodes else ""
    if host in _PLACEHOLDERS:
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


def _unmet_remedies(case: Case, told: Said, launch: Launch, address: str) -> list[Remedy]:
    meet = flag(
        launch,
        "dist_init_addr",
        "<head node's address:port>",
        "one address of the head node that every node reaches, the same on all of them",
        direction="set",
    )
    return kept(
        meet,
        action(
            "start_all_nodes",
            "each of the nnodes needs a launch with its own node_rank, within the time-out",
        ),
    )


@rule(
    "loopback-rendezvous",
    class_="rendezvous_config",
    severity="warning",
    role="precursor",
    summary="Several nodes are to meet at a loopback address",
    needs="the launch line or the dump",
    playbook="rendezvous",
)
def loopback_rendezvous(case: Case) -> Iterator[Finding | Skip]:
    """Visible before any rank starts."""
    for source, launch in _nodes(case).items():
        address = str(launch.get("dist_init_addr") or "")
        event = _dump_of(case, source)
        if event is None or address.rsplit(":", 1)[0].strip("[]") not in _PLACEHOLDERS:
            continue
        yield case.finding(
            "loopback-rendezvous",
            "rendezvous_config",
            event,
            severity="warning",
            role="precursor",
            title=f"{launch.get('nnodes')} nodes are to meet at {address}, a loopback address",
            explanation="Each node looks for the head on itself; they will wait for each other.",
            known_at=case.known(event),
            rank=None,
            phase="init",
            facts={"address": address},
            playbook="rendezvous",
        )
        return
