"""A collective that never completed: who did not come. Dead, or only slow?"""

from __future__ import annotations

from collections.abc import Iterator

from forensics.events import Event
from forensics.findings import Finding, Remedy
from forensics.incident.processes import flag_number
from forensics.remedies import action, kept
from forensics.rules.base import CONSEQUENCE, FAILURE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.collectives import Standoff, busy_before, standoff
from forensics.rules.echoes import primary
from forensics.rules.slow_start import slow_rank
from forensics.rules.xid import hardware_fault


@rule(
    "collective-hang",
    class_="collective_hang",
    summary="Ranks waited in a collective until the watchdog ended them: one did not come",
    names={
        "slow-start-collective": (
            "slow_start_timeout",
            "One rank was still compiling or loading when the others' collective timed out",
        )
    },
    needs="the watchdog's messages of the ranks that waited",
)
def collective_hang(case: Case) -> Iterator[Finding | Skip]:
    """The rank that is missing among those that waited is the suspect."""
    if (found := standoff(case)) is None:
        return
    first = found.waiters[0].event
    failed = primary(case.run.failures)
    ended = [failed.event] if failed is not None else []
    ended += case.run.of("subprocess_crashed", "child_exit", "scheduler_died", "scheduler_dead")
    if any(_before(case, event, first) for event in ended):
        return  # the others waited for a rank that had failed: its own rule speaks
    waited = {w.event.rank for w in found.waiters}
    for busy in busy_before(case, first, but=waited):
        yield slow_rank(case, found, busy)
        return
    yield _hang(case, found)


def _before(case: Case, event: Event, other: Event) -> bool:
    order = {id(e): place for place, e in enumerate(case.run.events)}
    return order.get(id(event), 0) < order.get(id(other), 0)


def _hang(case: Case, found: Standoff) -> Finding:
    fault = _fault(case, found.waiters[0].event)
    suspects = found.suspects(case.run)
    rank = suspects[0] if len(suspects) == 1 else None
    begin = fault or found.waiters[0].event
    last = found.waiters[-1].event
    return case.finding(
        "collective-hang",
        "collective_hang",
        begin,
        title=_title(found, suspects, fault),
        explanation=_explain(case, found, suspects, fault),
        evidence=case.evidence(fault, *(w.event for w in found.waiters[:8])),
        remedies=_remedies(case, suspects, found),
        not_helpful=[
            "a longer watchdog_timeout or dist_timeout: a rank that is dead will not come",
            "memory flags: nothing here was short of memory",
        ],
        confidence="high" if fault or rank else "medium",
        rank=rank,
        phase=found.waiters[0].event.phase,
        known_at=case.known(last),
        weight=FAILURE if fault else CONSEQUENCE + 2,
        facts={
            "outcome": "hung",
            "waited": [w.event.rank or f"rank {w.number}" for w in found.waiters],
            "missing": suspects,
            "collective": found.op,
            "sequence": found.seq,
            "timeout_s": found.timeout_s,
        },
    )


def _fault(case: Case, end: Event) -> Event | None:
    """A fault of a card that the kernel reported before the ranks gave up."""
    for event in case.run.events:
        if event is end:
            return None
        if hardware_fault(event):
            return event
    return None


def _title(found: Standoff, suspects: list[str], fault: Event | None) -> str:
    op = f"{found.op} {found.seq}"
    if len(suspects) == 1:
        who = f"{suspects[0]} never joined {op}"
    elif suspects:
        who = f"{', '.join(suspects[:8])} did not join {op}"
    elif found.elsewhere:
        who = f"{op} never completed: the missing rank is on a node whose log is not here"
    else:
        who = f"{op} never completed although every rank joined"
    return f"{who}: {hardware_fault(fault)} (Xid {fault.string('xid')})" if fault else who


def _explain(case: Case, found: Standoff, suspects: list[str], fault: Event | None) -> str:
    count = len(found.waiters)
    said = (
        f"{count} rank{'s' * (count != 1)} waited {found.ran_s:.0f} s in {found.op} "
        f"(sequence {found.seq}) and were ended by the watchdog (limit {found.timeout_s:.0f} s)."
    )
    if fault is not None:
        said += (
            f" Before that the kernel reported Xid {fault.string('xid')}: {hardware_fault(fault)}."
        )
    if found.missing and suspects:
        said += (
            f" {', '.join(suspects[:8])} printed no such message: it did not reach the collective."
        )
    elif found.behind:
        said += f" {', '.join(suspects[:8])} waited in another one: its sequence had diverged."
    elif not found.elsewhere:
        said += " All had joined, so the link between them, or a GPU, stood still."
    return said + " The time-outs are echoes: what the missing rank did is the question."


def _remedies(case: Case, suspects: list[str], found: Standoff) -> list[Remedy]:
    who = suspects[0] if len(suspects) == 1 else "the missing rank"
    several = any(flag_number(case.run, source, "nnodes") > 1 for source in case.run.sources)
    links = action("check_ib_link", "a link that is down stalls a collective without an error")
    return kept(
        action("inspect_rank_gpu", f"dmesg and nvidia-smi for the GPU of {who}: Xid, ECC, NVLink"),
        action("drain_node", "take the node out of service until its GPU has been reset or tested"),
        links if several or not suspects else None,
    )
