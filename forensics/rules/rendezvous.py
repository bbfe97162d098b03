"""Nodes of one launch that were given different parameters."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.events import Event
from forensics.findings import Finding, Remedy
from forensics.incident.launches import launch_of
from forensics.launch import Launch
from forensics.remedies import flag, kept
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.case import Case

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
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "0.0.0.0", "::1"})


def is_loopback(address: str) -> bool:
    """Whether every host takes an address for itself."""
    return address.rsplit(":", 1)[0].strip("[]") in _LOOPBACK


Node = tuple[int, str | None]
"""A source, and the node that a wrapper names in it."""


def nodes_of(case: Case) -> dict[Node, tuple[Event, Launch]]:
    """The dump and launch of each node; empty where prefill and decode run apart."""
    found: dict[Node, tuple[Event, Launch]] = {}
    for event in case.run.of("server_args_dump", "launch_command"):
        launch = launch_of([event])
        dumped = event.kind == "server_args_dump"
        if launch.flags and (dumped or (event.source, event.node) not in found):
            found[event.source, event.node] = (event, launch)
    launches = [launch for _, launch in found.values()]
    parts = {launch.get("disaggregation_mode") for launch in launches}
    several = any((launch.number("nnodes") or 1) > 1 for launch in launches)
    return found if several and len(parts) == 1 else {}


def _differences(launches: list[Launch]) -> list[str]:
    """Flags that the nodes do not share."""
    found = []
    for name in _SAME:
        values = [launch.get(name) for launch in launches]
        if len({repr(value) for value in values}) > 1 and None not in values:
            found.append(name)
    return found


@rule(
    "nodes-disagree",
    class_="rendezvous_config",
    summary="The nodes of one launch were given different parameters",
    needs="the launches of two or more nodes",
    playbook="rendezvous",
)
def nodes_disagree(case: Case) -> Iterator[Finding | Skip]:
    """The dumps of the nodes, side by side."""
    nodes = nodes_of(case)
    if len(nodes) < 2:
        return
    launches = [launch for _, launch in nodes.values()]
    different = _differences(launches)
    meeting = [name for name in different if name in _MEETING]
    twice = _repeated_rank(launches)
    served = case.run.ready is not None and "nnodes" not in meeting
    if served or not (meeting or twice is not None):
        return
    name = meeting[0] if meeting else "node_rank"
    dumps = [dump for dump, _ in nodes.values()]
    values = {_named(case, node): launch.get(name) for node, (_, launch) in nodes.items()}
    listed = ", ".join(f"{value} ({where})" for where, value in values.items())
    also = f" Also different: {', '.join(meeting[1:])}." if meeting[1:] else ""
    yield case.finding(
        "nodes-disagree",
        "rendezvous_config",
        dumps[-1],
        title=f"The nodes do not agree on {name}: {listed}",
        explanation=_why(name) + also,
        evidence=case.evidence(*dumps),
        remedies=_agree(launches, name, twice),
        rank=None,
        phase="init",
        known_at=case.known(dumps[-1]),
        weight=FAILURE + 5,
        facts={"flag": name, "values": values, "outcome": _end(case)},
        playbook="rendezvous",
    )


def _named(case: Case, node: Node) -> str:
    return node[1] or case.path(node[0])


def _repeated_rank(launches: list[Launch]) -> int | None:
    """A node rank that two nodes were given."""
    ranks = [int(launch.number("node_rank") or 0) for launch in launches]
    return next((rank for rank in ranks if ranks.count(rank) > 1), None)


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


def _agree(launches: list[Launch], name: str, twice: int | None) -> list[Remedy]:
    """The head node's value for everyone; a free rank where one was given twice."""
    head = next((one for one in launches if one.number("node_rank") in (0, None)), launches[0])
    other = next(one for one in launches if one is not head)
    if name == "node_rank":
        taken = {int(launch.number("node_rank") or 0) for launch in launches}
        free = next(rank for rank in range(len(launches) + 1) if rank not in taken)
        return kept(flag(other, name, free, f"rank {twice} was given twice", direction="set"))
    if name == "nnodes":
        most = max(int(launch.number("nnodes") or 1) for launch in launches)
        wrong = next(one for one in launches if one.number("nnodes") != most)
        return kept(flag(wrong, name, most, "the same on every node", direction="set"))
    value = head.get(name)
    return kept(flag(other, name, value, "the same on every node", direction="set"))


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
    for event, launch in nodes_of(case).values():
        address = str(launch.get("dist_init_addr") or "")
        if (launch.number("nnodes") or 1) < 2 or not is_loopback(address):
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
