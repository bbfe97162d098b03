"""Addresses of nodes: those that only exist on their own host, and links that do not carry."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from forensics.findings import Finding
from forensics.incident.processes import flag_number
from forensics.remedies import action, env, kept
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.said import Said, said

_GLOO, _NCCL = "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"
_REFUSED = re.compile(
    r"(?:Connect to|connect to|remote=|connecting to|to connect to) ?\[?(?P<host>[\w.:-]+?)\]?"
    r"(?:<\d+>|:\d+|, ?\d+\))?\W.*?(?P<why>Connection refused|No route to host|Connection timed out"
    r"|Network is unreachable|Software caused connection abort|timed out)"
    r"|SO_ERROR: (?P<why2>[\w ]+), remote=\[?(?P<host2>[\w.:-]+?)\]?:\d+"
)
_DOCKER = ipaddress.ip_network("172.17.0.0/16")
_USING = re.compile(
    r"(?:Bootstrap|NET/Socket) : Using (?:\[0\])?(?P<name>[\w.-]+):(?P<host>[\d.]+)"
)


def _several_nodes(case: Case) -> bool:
    return any(flag_number(case.run, source, "nnodes") > 1 for source in case.run.sources)


@rule(
    "unreachable-address",
    class_="network_interface",
    summary="A rank gave its peers an address that they cannot reach",
    needs="a refused connection to a loopback, link-local or bridge address, on several nodes",
)
def unreachable_address(case: Case) -> Iterator[Finding | Skip]:
    """Peers are told to connect to an address that only exists on its own host."""
    if not _several_nodes(case) or case.run.ready is not None:
        return
    for line in said(case, _REFUSED):
        host = line.match["host"] or line.match["host2"] or ""
        if (kind := local_only(host)) is not None:
            yield _unreachable(case, line, host, kind)
            return
    if case.run.outcome not in ("failed", "hung"):
        return
    for line in said(case, _USING):
        if (kind := local_only(line.match["host"])) is not None:
            yield _unreachable(case, line, line.match["host"], kind)
            return


def local_only(host: str) -> str | None:
    """Why an address cannot be reached from another host; None if it may be."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "a name for the host itself" if host == "localhost" else None
    if address.is_loopback:
        return "a loopback address"
    if address.is_link_local:
        return "a link-local address"
    if address.version == 4 and address in _DOCKER:
        return "the address of Docker's bridge"
    return None


def _unreachable(case: Case, line: Said, host: str, kind: str) -> Finding:
    by_nccl = "NCCL" in line.text or line.event.kind.startswith("nccl")
    variable, library = (_NCCL, "NCCL") if by_nccl else (_GLOO, "Gloo")
    used = next((found for found in said(case, _USING) if found.match["host"] == host), None)
    name = f" (interface {used.match['name']})" if used else ""
    failed = {id(failure.event): failure for failure in case.run.failures}
    failure = failed.get(id(line.event)) or next(iter(case.run.failures), None)
    return case.finding(
        "unreachable-address",
        "network_interface",
        line.event,
        title=f"Peers were told to connect to {host}{name}: {kind}, which they cannot reach",
        explanation=f"{library} chose {host}{name} as this host's address. "
        f"It is {kind}: other nodes reach something else there, or nothing. Name the interface "
        "of the network that connects the nodes; for Gloo also check that the host's name does "
        "not resolve to 127.0.1.1 in /etc/hosts.",
        evidence=[
            *(case.evidence(used.event) if used else []),
            line.evidence(case),
            *(case.failure_evidence(failure) if failure else []),
        ],
        remedies=kept(
            env(variable, "set", "the interface of the network between nodes", to="<interface>"),
        ),
        first=line.place(case),
        known_at=case.known(line.event, line.line),
        rank=failure.rank if failure else line.event.rank,
        phase=failure.phase if failure else line.event.phase,
        weight=FAILURE,
        facts={"address": host, "why": kind},
    )


@rule(
    "bridge-interface",
    class_="network_interface",
    severity="warning",
    role="precursor",
    summary="NCCL picked an interface that only exists on its own host",
    needs="NCCL's INFO lines, on several nodes",
    playbook="unreachable-address",
)
def bridge_interface(case: Case) -> Iterator[Finding | Skip]:
    """Visible when the communicator is made, minutes before it fails."""
    if not _several_nodes(case) or case.run.ready is not None:
        return
    for line in said(case, _USING):
        if (kind := local_only(line.match["host"])) is None:
            continue
        yield case.finding(
            "bridge-interface",
            "network_interface",
            line.event,
            severity="warning",
            role="precursor",
            title=f"NCCL uses {line.match['name']} ({line.match['host']}): {kind}",
            explanation="Other nodes cannot reach it.",
            known_at=case.known(line.event),
            rank=line.event.rank,
            playbook="unreachable-address",
        )
        return


_VERBS = re.compile(
    r"NET/IB : Got completion from peer .*status=(?P<status>\d+)"
    r"|NCCL WARN Call to (?P<call>ibv_\w+)(?: \w+)? failed"
)
_STATUS = {
    "5": "the work was flushed: the connection had failed before",
    "12": "no acknowledgement came (retries exceeded)",
    "13": "the peer's receiver was not ready",
}
"""Completion status of ibv_wc_status, by number."""


@rule(
    "ib-transport",
    class_="network_interface",
    summary="NCCL's traffic over InfiniBand or RoCE failed",
    needs="NCCL's warning with the status of the verbs library",
)
def ib_transport(case: Case) -> Iterator[Finding | Skip]:
    """The verbs library names what failed; the aborted communicators are echoes."""
    if case.run.outcome not in ("failed", "hung"):
        return
    if (line := next(iter(said(case, _VERBS)), None)) is None:
        return
    status, call = line.match["status"], line.match["call"]
    what = _STATUS.get(status or "", f"status {status}") if status else f"{call} failed"
    failure = next(iter(case.run.failures), None)
    yield case.finding(
        "ib-transport",
        "network_interface",
        line.event,
        title=f"NCCL over InfiniBand or RoCE failed: {what}",
        explanation="The network card could not move NCCL's data: a link is down, packets are lost "
        "or do not route (address type, MTU, flow control), or the peer has died.",
        evidence=[line.evidence(case), *(case.failure_evidence(failure) if failure else [])],
        remedies=kept(
            action("check_ib_link", "ibstat, and ib_write_bw between the two hosts"),
            env("NCCL_IB_HCA", "set", "only devices that reach the other nodes", to="<devices>"),
            env("NCCL_IB_GID_INDEX", "set", "a routable RoCE v2 address", to="<RoCE v2 index>"),
        ),
        first=line.place(case),
        known_at=case.known(line.event, line.line),
        rank=line.event.rank or (failure.rank if failure else None),
        weight=FAILURE - 5,
        confidence="medium",
        facts={"status": status, "call": call},
    )
