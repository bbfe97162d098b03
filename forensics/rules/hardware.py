"""Faults of the card, its memory or its links, as CUDA and the kernel report them."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.events import Event
from forensics.findings import Finding
from forensics.incident import Failure
from forensics.remedies import action, kept
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.echoes import primary
from forensics.rules.xid import hardware_fault

_CUDA = frozenset({"gpu_ecc_error"})


@rule(
    "gpu-fault",
    class_="gpu_hardware",
    summary="A GPU, its memory or its link is faulty",
    needs="an Xid of the kernel or CUDA's own message",
)
def gpu_fault(case: Case) -> Iterator[Finding | Skip]:
    """A rank failed and the card is to blame: CUDA says so, or the kernel said so before."""
    xid = next((event for event in case.run.of("gpu_xid") if hardware_fault(event)), None)
    told = next((failure for failure in case.run.failures if _says(failure)), None)
    failure = told or _after(case, xid)
    if failure is None:
        return
    begin = xid if xid is not None and _first(case, xid, failure.event) else failure.event
    what = hardware_fault(xid) if xid is not None else "CUDA reports a fault of the device"
    yield case.finding(
        "gpu-fault",
        "gpu_hardware",
        begin,
        title=f"A GPU is faulty: {what}" + (f" (Xid {xid.string('xid')})" if xid else ""),
        explanation=f"{failure.rank or 'A process'} failed while its GPU was faulty: {what}. No "
        "flag mends a card. Exceptions that follow, on this rank and its peers, are echoes.",
        evidence=[*case.evidence(xid), *case.failure_evidence(failure)],
        remedies=kept(
            action("inspect_rank_gpu", "dmesg, nvidia-smi -q: Xid, ECC counters, remapped rows"),
            action("drain_node", "take the node out of service until the GPU was reset or tested"),
        ),
        rank=failure.rank,
        phase=failure.phase,
        known_at=case.known(failure.event, failure.event.end_line),
        weight=FAILURE + 5,
        facts={"xid": xid.number("xid") if xid else None},
    )


def _says(failure: Failure) -> bool:
    chain = failure.traceback.chain if failure.traceback else []
    return failure.event.kind in _CUDA or any(raised.kind in _CUDA for raised in chain)


def _after(case: Case, xid: Event | None) -> Failure | None:
    """The first failure after a fault that the kernel reported, if CUDA failed in it."""
    failure = primary(case.run.failures)
    if xid is None or failure is None or not _first(case, xid, failure.event):
        return None
    chain = failure.traceback.chain if failure.traceback else []
    said = " ".join(raised.message for raised in chain) + failure.event.text
    return failure if "CUDA" in said or "NCCL" in said or "cuda" in said else None


def _first(case: Case, one: Event, other: Event) -> bool:
    order = {id(event): place for place, event in enumerate(case.run.events)}
    return order.get(id(one), 0) < order.get(id(other), 0)


@rule(
    "gpu-xid",
    class_="gpu_hardware",
    severity="warning",
    role="precursor",
    summary="The kernel reported a fault of a GPU",
    needs="an Xid line of the kernel log",
    playbook="gpu-fault",
)
def gpu_xid(case: Case) -> Iterator[Finding | Skip]:
    """Known at the kernel's line, before any rank complains."""
    for event in case.run.of("gpu_xid"):
        if (what := hardware_fault(event)) is None:
            continue
        yield case.finding(
            "gpu-xid",
            "gpu_hardware",
            event,
            severity="warning",
            role="precursor",
            title=f"Xid {event.string('xid')}: {what} ({event.string('pci_address')})",
            explanation="The kernel reports a fault of a card; ranks that use it will fail or "
            "stand still.",
            remedies=[action("inspect_rank_gpu", "nvidia-smi -q and the kernel log of this host")],
            known_at=case.known(event),
            rank=None,
            facts={"xid": event.number("xid"), "pci": event.string("pci_address")},
            playbook="gpu-fault",
        )
        return
