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


@rule(
    "gpu-fault",
    class_="gpu_hardware",
    summary="The kernel reported a fault of a GPU, and then a rank failed in CUDA",
    needs="an Xid of the kernel and the failure after it",
)
def gpu_fault(case: Case) -> Iterator[Finding | Skip]:
    """A rank failed and the card is to blame: the kernel had said so before."""
    xid = next((event for event in case.run.of("gpu_xid") if hardware_fault(event)), None)
    failure = primary(case.run.failures)
    if xid is None or failure is None or not _first(case, xid, failure.event):
        return
    if not _in_cuda(failure):
        return
    what = hardware_fault(xid)
    yield case.finding(
        "gpu-fault",
        "gpu_hardware",
        xid,
        title=f"A GPU is faulty: {what} (Xid {xid.string('xid')})",
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
        weight=FAILURE + 12,
        facts={"xid": xid.number("xid")},
    )


def _in_cuda(failure: Failure) -> bool:
    chain = failure.traceback.chain if failure.traceback else []
    said = " ".join(raised.message for raised in chain) + failure.event.text
    return any(word in said for word in ("CUDA", "NCCL", "cuda"))


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
