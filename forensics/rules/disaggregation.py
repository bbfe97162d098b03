"""Prefill and decode apart: transfers of the KV cache between them that fail.

The transport speaks on the side that writes (prefill), the complaint comes from the side that waits
(decode); servers stay alive and healthy while requests fail.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from forensics.events import Event
from forensics.findings import Finding
from forensics.rules.base import CONSEQUENCE, FAILURE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.echoes import primary
from forensics.rules.said import SENT, Said, said
from forensics.rules.transfers import (
    LOOPBACK,
    SENT_TO_ITSELF,
    TROUBLES,
    Trouble,
    not_helpful,
    remedies_of,
)

_GID = re.compile(
    r"GID_Index (?P<index>\d+)\) (?P<gid>[0-9a-f:]+)|GID: ?(?P<gid2>fe[89ab][0-9a-f]:?[0-9a-f:]+)"
)
_BESIDE = 5
"""Lines within which the two are about the same transfer."""
_LINK_LOCAL = re.compile(r"^fe:?[89ab]")


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
        explanation=trouble.why
        + (SENT_TO_ITSELF if _to_itself(found) else "")
        + _about_gid(gid)
        + (_ALIVE if alive else ""),
        evidence=[
            *([gid.evidence(case)] if gid else []),
            line.evidence(case),
            *case.evidence(*complaints[:4]),
        ],
        remedies=remedies_of(trouble, launch, link_local=gid is not None, said=line.text),
        not_helpful=not_helpful(trouble),
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


def _to_itself(found: tuple[Trouble, Said]) -> bool:
    trouble, line = found
    return trouble.name == "bootstrap" and LOOPBACK.search(line.text) is not None


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


def _first(case: Case) -> tuple[Trouble, Said] | None:
    """The first line of the kind that tells most: transport before complaints."""
    for trouble in TROUBLES:
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
