"""Prefill and decode apart: transfers of the KV cache between them that fail.

The transport speaks on the side that writes (prefill), the complaint comes from the side that waits
(decode); servers stay alive and healthy while requests fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from forensics.events import Event
from forensics.findings import Finding, Remedy
from forensics.launch import Launch
from forensics.remedies import action, env, flag, kept
from forensics.rules.base import CONSEQUENCE, FAILURE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.echoes import primary
from forensics.rules.said import SENT, Said, said

_GID = re.compile(
    r"GID_Index (?P<index>\d+)\) (?P<gid>[0-9a-f:]+)|GID: ?(?P<gid2>fe[89ab][0-9a-f]:?[0-9a-f:]+)"
)
_BESIDE = 5
"""Lines within which the two are about the same transfer."""
_LINK_LOCAL = re.compile(r"^fe:?[89ab]")


@dataclass(frozen=True, slots=True)
class _Trouble:
    """One way in which a transfer fails: its words, its name, and what to do."""

    name: str
    pattern: re.Pattern[str]
    title: str
    why: str
    transport: bool = True
    """The side that moves the data says so; else it is the other side's complaint."""


_TROUBLES = (
    _Trouble(
        "no_device",
        re.compile(
            r"No available RNIC|No IB devices|Failed to open RDMA|Failed to open (?:IB|RDMA) device"
            r"|Mooncake Transfer Engine initialization failed|no RDMA devices"
        ),
        "No RDMA device could be opened for KV transfers",
        "The transfer engine found no usable RDMA device: none is visible in the container, or the "
        "name given is not one of this host.",
    ),
    _Trouble(
        "registration",
        re.compile(r"Failed to register memory|ibv_reg_mr|memory registration failed"),
        "GPU memory could not be registered with the RDMA device",
        "The device cannot reach GPU memory directly: usually the nvidia-peermem module is not "
        "loaded on the host, or the container may not lock memory (memlock).",
    ),
    _Trouble(
        "handshake",
        re.compile(r"Failed to modify QP to RTR|Failed to exchange handshake|Failed to set up QP"),
        "The RDMA connection between prefill and decode could not be set up",
        "The two devices do not reach each other: different networks or address types (GID), or a "
        "mismatch of MTU.",
    ),
    _Trouble(
        "protection",
        re.compile(r"local protection error|remote access error|local access violation"),
        "An RDMA write of the KV cache was refused",
        "The device refused the address that it was given to read or write: memory that is not "
        "registered with it, or a connection over an address that does not route.",
    ),
    _Trouble(
        "retries",
        re.compile(r"transport retry counter exceeded|RNR retry|retry exceeded"),
        "An RDMA write of the KV cache got no answer",
        "Packets are lost or do not route between the two devices: link, switch (flow control), "
        "address type (GID), or the other process has died.",
    ),
    _Trouble(
        "nixl",
        re.compile(r"NIXL_ERR_\w+|nixlBackendError|UCX\s+ERROR"),
        "NIXL could not transfer the KV cache",
        "The transfer library reports an error of its backend.",
    ),
    _Trouble(
        "mismatch",
        re.compile(r"(?:Page size|KV cache dtype|kv_cache_dtype|TP size|page_size) mismatch"),
        "Prefill and decode were started with different settings",
        "Both sides must agree on the layout of the KV cache that they exchange.",
    ),
    _Trouble(
        "bootstrap",
        re.compile(
            r"(?:Could not fetch|Error fetching|Failed to fetch) prefill (?:parallel )?info"
            r"|timed out after [\d.]+ ?s in KVPoll\.Bootstrapping"
            r"|Failed to register (?:to|prefill instance to) bootstrap"
            r"|bootstrap server.*(?:refused|unreachable)"
        ),
        "Decode and prefill did not find each other at the bootstrap server",
        "The bootstrap server of the prefill instance did not answer: wrong address or port, a "
        "blocked port, or prefill that is not up yet.",
        transport=False,
    ),
    _Trouble(
        "waiting",
        re.compile(
            r"timed out after [\d.]+ ?s in KVPoll|Failed to get kvcache from prefill instance"
            r"|Failed to send kv chunk|Losing connection with prefill instance"
            r"|Lost connection with prefill|Decode instance could be dead|KVTransferError"
        ),
        "The KV cache of a request did not arrive",
        "The side that waits cannot know why: the cause stands in the other side's log.",
        transport=False,
    ),
)


@rule(
    "pd-transfer",
    class_="pd_transfer",
    summary="The KV cache could not be moved from prefill to decode",
    needs="the transport's error, or the complaint of the side that waited",
)
def pd_transfer(case: Case) -> Iterator[Finding | Skip]:
    """The transport's own words before the complaints, whatever log they stand in."""
    if not _apart(case) or _died_first(case):
        return
    if (found := _first(case)) is None:
        return
    trouble, line = found
    launch = case.run.launch_of(line.event.source)
    gid = _link_local(case, line.event)
    complaints = [
        e for e in case.run.of("transfer_failed", "kv_transfer_failed") if e is not line.event
    ]
    alive = not case.run.failures and case.run.ready is not None
    yield case.finding(
        "pd-transfer",
        "pd_transfer",
        line.event,
        title=trouble.title + (" over a link-local address" if gid else ""),
        explanation=trouble.why + _about_gid(gid) + (_ALIVE if alive else ""),
        evidence=[
            *([gid.evidence(case)] if gid else []),
            line.evidence(case),
            *case.evidence(*complaints[:4]),
        ],
        remedies=_remedies(trouble, launch, gid),
        not_helpful=_not_helpful(trouble),
        first=line.place(case),
        known_at=case.known(line.event, line.line),
        rank=line.event.rank or _rank_beside(case, line.event),
        phase="serving" if case.run.ready is not None else line.event.phase,
        confidence="high" if trouble.transport else "medium",
        weight=FAILURE if trouble.transport or trouble.name == "bootstrap" else CONSEQUENCE,
        facts={"trouble": trouble.name, "complaints": len(complaints)}
        | ({"outcome": "degraded"} if alive else {}),
    )


_ALIVE = (
    " The servers stay alive and answer their health checks; requests fail all the same, so the "
    "launch is degraded, not stopped."
)


def _apart(case: Case) -> bool:
    """Prefill and decode run apart, as far as the log tells."""
    modes = {launch.get("disaggregation_mode") for launch in case.run.launches.values()}
    if modes & {"prefill", "decode"}:
        return True
    kinds = ("transfer_failed", "kv_transfer_failed", "rdma_slice_failed", "prefill_dead")
    return any(case.run.counts[kind] for kind in kinds)


def _died_first(case: Case) -> bool:
    """A process failed before any transport did: then transfers fail because of it."""
    failure, found = primary(case.run.failures), _first(case)
    if failure is None or found is None:
        return False
    order = {id(event): place for place, event in enumerate(case.run.events)}
    said_by_it = found[1].event is failure.event
    return not said_by_it and order[id(failure.event)] < order[id(found[1].event)]


def _first(case: Case) -> tuple[_Trouble, Said] | None:
    """The first line of the kind that tells most: transport before complaints."""
    for trouble in _TROUBLES:
        line = next((line for line in said(case, trouble.pattern) if _counts(line.event)), None)
        if line is not None:
            return trouble, line
    return None


def _counts(event: Event) -> bool:
    return event.kind not in SENT and event.kind != "http_access"


def _link_local(case: Case, event: Event | None) -> Said | None:
    """The line that shows that a device's chosen address is link-local."""
    for line in said(case, _GID):
        gid = line.match["gid"] or line.match["gid2"] or ""
        if _LINK_LOCAL.match(gid) and (event is None or line.event.source == event.source):
            return line
    return None


def _rank_beside(case: Case, event: Event) -> str | None:
    """The rank that complains next to the transport's line, which names none."""
    for other in case.run.of("transfer_failed"):
        near = other.source == event.source and 0 < other.line - event.line <= _BESIDE
        if near and other.rank is not None:
            return other.rank
    return None


def _about_gid(gid: Said | None) -> str:
    if gid is None:
        return ""
    return (
        f" The device chose GID index {gid.match['index'] or '0'}, a link-local address (fe80::): "
        "it does not route. A RoCE v2 index with a routable address is needed (show_gids)."
    )


def _remedies(trouble: _Trouble, launch: Launch, gid: Said | None) -> list[Remedy]:
    device = flag(
        launch,
        "disaggregation_ib_device",
        "<device with a routable GID>",
        "names the device instead of leaving the choice to discovery",
        direction="set",
    )
    index = env(
        "MC_GID_INDEX", "set", "the address that Mooncake uses of the device", to="<RoCE v2 index>"
    )
    other = flag(
        launch,
        "disaggregation_transfer_backend",
        "mooncake" if launch.get("disaggregation_transfer_backend") == "nixl" else "nixl",
        "another transport, on both sides",
        direction="set",
        cost="both sides must have it installed",
    )
    links = action("check_ib_link", "ibstat and ib_write_bw between the two hosts")
    peermem = action("load_nvidia_peermem", "modprobe nvidia-peermem on the host")
    chosen: dict[str, list[Remedy | None]] = {
        "no_device": [device, other],
        "registration": [peermem, device],
        "handshake": [device, index, links],
        "protection": [device, index, other, peermem if gid is None else None],
        "retries": [links, device, index],
        "nixl": [other, links],
        "mismatch": [action("align_settings", "page size, dtype and layout alike on both sides")],
        "bootstrap": [
            action("check_bootstrap_address", "the prefill host and port, as decode reaches them"),
            env(
                "SGLANG_DISAGGREGATION_BOOTSTRAP_TIMEOUT",
                "increase",
                "if prefill is only slow to come up",
                to="600",
            ),
        ],
        "waiting": [
            action("read_prefill_log", "the cause stands in the other side's log, at this time")
        ],
    }
    return kept(*chosen[trouble.name])


def _not_helpful(trouble: _Trouble) -> list[str]:
    if not trouble.transport:
        return []
    return [
        "disaggregation_bootstrap_port: both sides had found each other",
        "restarting prefill or decode: both are alive",
    ]


@rule(
    "link-local-gid",
    class_="pd_transfer",
    severity="warning",
    role="precursor",
    summary="The RDMA device of KV transfers uses a link-local address",
    needs="the line of the transfer engine that names the GID",
    playbook="pd-transfer",
)
def link_local_gid(case: Case) -> Iterator[Finding | Skip]:
    """Visible at the start, long before the first transfer."""
    if (line := _link_local(case, None)) is None:
        return
    yield case.finding(
        "link-local-gid",
        "pd_transfer",
        line.event,
        severity="warning",
        role="precursor",
        title="The RDMA device chose a link-local address (fe80::), which does not route",
        explanation="Transfers within one host may pass; between hosts they will be refused.",
        known_at=case.known(line.event),
        rank=None,
        facts={"gid_index": line.match["index"]},
        playbook="pd-transfer",
    )
