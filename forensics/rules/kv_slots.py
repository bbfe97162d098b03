"""The scheduler found no slot: none for tokens in the pool, or none for a request in its table."""

from __future__ import annotations

import re
from collections.abc import Iterator

from forensics.events import Event, Traceback
from forensics.findings import Finding
from forensics.incident import Failure
from forensics.remedies import action, flag, kept
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.fractions import grow_pool
from forensics.rules.memory_facts import context_len, whole
from forensics.rules.retraction import conservative, fewer_requests


@rule(
    "kv-slots-empty",
    class_="kv_capacity_exhausted",
    summary="The scheduler ran out of KV slots or request slots and raised",
    names={
        "request-slots-empty": ("kv_capacity_exhausted", "The table of requests is full"),
        "kv-slots-miscounted": (
            "kv_accounting_bug",
            "Slots were refused although enough of them were free",
        ),
    },
    needs="its message",
)
def kv_slots_empty(case: Case) -> Iterator[Finding | Skip]:
    """Token accounting, not GPU memory: no slot was left for tokens or for a request."""
    for failure in case.run.failures:
        chain = failure.traceback.chain if failure.traceback else []
        kinds = {raised.kind for raised in chain} | {failure.event.kind}
        if "request_slots_empty" in kinds:
            yield _requests(case, failure.event, failure.rank, failure.phase)
            return
        if kinds & {"token_pool_empty", "request_exceeds_pool"}:
            yield _tokens(case, failure)
            return


def _requests(case: Case, event: Event, rank: str | None, phase: str) -> Finding:
    now = whole(case.run.launch.get("max_running_requests"))
    summary = case.run.first("max_total_tokens")
    now = now or (int(summary.number("max_running_requests") or 0) if summary else 0) or None
    larger = flag(
        case.run.launch,
        "max_running_requests",
        now * 2 if now else 64,
        "each running request needs one row of the table, and there were none left; the printed "
        "advice to lower it makes the table smaller still",
        direction="increase",
        basis="computed",
        cost="a larger request table",
    )
    return case.finding(
        "request-slots-empty",
        "kv_capacity_exhausted",
        event,
        title="No request slot was left: the table of running requests is full",
        explanation="The table has a row for each running request, and more were admitted than it "
        "has rows. GPU memory is not short.",
        remedies=kept(larger, action("upgrade_sglang", "admission counts rows in later releases")),
        not_helpful=["mem_fraction_static: the table's size is the number of requests"],
        rank=rank,
        phase=phase,
        weight=FAILURE,
        facts={"max_running_requests": now, "outcome": "failed"},
        playbook="kv-slots-empty",
    )


_WANTED = re.compile(r"Try to allocate (\d+) tokens")
_AVAILABLE = re.compile(r"Ava\w+ tokens: (\d+)")


def _tokens(case: Case, failure: Failure) -> Finding:
    said = "\n".join([failure.event.text, *(r.message for r in (failure.traceback or _NONE).chain)])
    wanted, available = _WANTED.search(said), _AVAILABLE.search(said)
    if wanted and available and int(available[1]) >= int(wanted[1]):
        return _miscounted(case, failure, int(wanted[1]), int(available[1]))
    return _too_few(case, failure.event, failure.rank, failure.phase)


_NONE = Traceback()


def _miscounted(case: Case, failure: Failure, wanted: int, available: int) -> Finding:
    """Enough slots by the server's own count, and yet none were given out."""
    return case.finding(
        "kv-slots-miscounted",
        "kv_accounting_bug",
        failure.event,
        title=f"{wanted:,} KV slots were refused with {available:,} available",
        explanation="By its own count the pool had slots enough, in pieces that the allocator "
        "could not use or counted twice: a defect of the bookkeeping, not a shortage.",
        evidence=case.failure_evidence(failure),
        remedies=kept(
            action("upgrade_sglang", "such defects are mended from release to release"),
            action("report_bug", "the message and the launch flags are what developers need"),
        ),
        not_helpful=["mem_fraction_static, in either direction: slots were there"],
        rank=failure.rank,
        phase=failure.phase,
        weight=FAILURE,
        facts={"wanted": wanted, "available": available, "outcome": "failed"},
        playbook="kv-accounting",
    )


def _too_few(case: Case, event: Event, rank: str | None, phase: str) -> Finding:
    context, summary = context_len(case), case.run.first("max_total_tokens")
    pool = summary.number("tokens") if summary else None
    figures = f" The pool holds {pool:,.0f} tokens." if pool else ""
    smaller = bool(pool and context and pool < context)
    return case.finding(
        "kv-slots-empty",
        "kv_capacity_exhausted",
        event,
        title="No KV slot was left for the next tokens: the pool is full",
        explanation="The scheduler admitted more tokens than the pool has slots, and could put "
        f"nothing back. This is token accounting, not GPU memory.{figures}",
        remedies=kept(
            grow_pool(case) if smaller else None,
            fewer_requests(case),
            conservative(case),
            grow_pool(case),
        ),
        not_helpful=["a lower mem_fraction_static: the pool would be even smaller"],
        rank=rank,
        phase=phase,
        weight=FAILURE,
        facts={"pool_tokens": pool, "context_len": context, "outcome": "failed"},
    )
