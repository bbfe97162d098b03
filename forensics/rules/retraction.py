"""The KV pool is full: rare retractions are normal, storms are not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from math import ceil
from statistics import median

from forensics.events import Event
from forensics.findings import Finding, Remedy
from forensics.remedies import flag, kept
from forensics.rules.base import DEGRADED, Skip, rule
from forensics.rules.case import Case
from forensics.rules.fractions import grow_pool
from forensics.rules.memory_facts import whole
from forensics.rules.thresholds import threshold

_WINDOW = timedelta(minutes=1)
_MANY = threshold(
    "retractions_per_minute",
    3,
    "a minute",
    "From so many retractions on, with a fall in throughput, it is a storm",
    least=1,
)
_FLOOD = threshold(
    "retraction_flood_per_minute",
    10,
    "a minute",
    "From so many retractions on it is a storm whatever the throughput",
    least=1,
)
_FALL = threshold(
    "retraction_throughput_share",
    0.5,
    "of the throughput before",
    "Below this share throughput counts as fallen",
    most=1.0,
)
_FULL = threshold(
    "pool_nearly_full_share",
    0.98,
    "of the KV pool",
    "From this usage on, with requests waiting, the pool counts as nearly full",
    most=1.0,
)


@dataclass(frozen=True, slots=True)
class Storm:
    """Retractions of a run: how many in the worst minute, and what throughput did."""

    events: list[Event]
    worst: int
    before_tps: float | None
    after_tps: float | None

    def harmful(self, case: Case) -> bool:
        """Whether it is more than the occasional retraction of a well used pool."""
        if self.worst < case.threshold(_MANY):
            return False
        fell = bool(self.before_tps and self.after_tps is not None) and (
            (self.after_tps or 0.0) < case.threshold(_FALL) * (self.before_tps or 0.0)
        )
        return fell or self.worst >= case.threshold(_FLOOD)


def storm_of(case: Case, rank: str | None, events: Sequence[Event]) -> Storm:
    """The retractions of one rank, with its decode throughput before the first and after."""
    times = [e.time for e in events if e.time is not None]
    worst = max((sum(t <= u <= t + _WINDOW for u in times) for t in times), default=len(events))
    first = events[0]
    before, after = _throughput(case, rank, first)
    return Storm(list(events), worst, before, after)


def _storms(case: Case) -> list[tuple[str | None, Storm]]:
    """The retractions of each rank that has any."""
    by_rank: dict[tuple[int, str | None], list[Event]] = {}
    for event in case.run.of("retract"):
        by_rank.setdefault((event.source, event.rank), []).append(event)
    return [(rank, storm_of(case, rank, events)) for (_, rank), events in by_rank.items()]


def _throughput(case: Case, rank: str | None, first: Event) -> tuple[float | None, float | None]:
    rows = case.run.serving
    if rows is None or not rows.height:
        return None, None
    import polars as pl

    mine = rows.filter((pl.col("lane") == "decode") & (pl.col("source") == first.source))
    if rank is not None:
        mine = mine.filter(pl.col("rank") == rank)
    busy = mine.filter(pl.col("tps").is_not_null() & (pl.col("running").fill_null(0) > 0))
    sides = (busy.filter(pl.col("line") < first.line), busy.filter(pl.col("line") > first.line))
    halves = [side["tps"].to_list() for side in sides]
    # A server that drains at the end is slow because it has little to do.
    return (
        median(halves[0]) if halves[0] else None,
        median(sorted(halves[1])[: max(len(halves[1]) * 3 // 4, 1)]) if halves[1] else None,
    )


@rule(
    "kv-retraction",
    class_="kv_capacity_exhausted",
    severity="warning",
    summary="The KV pool is full and running requests are put back",
    needs="retraction lines",
)
def kv_retraction(case: Case) -> Iterator[Finding | Skip]:
    """Requests are put back and prefilled again: a storm when it happens again and again."""
    storms = _storms(case)
    if not storms:
        return
    rank, storm = max(storms, key=lambda item: item[1].worst)
    harmful = storm.harmful(case) and case.run.ready is not None
    # Of very many only the first and the last ones are kept as events; all are counted.
    first, count = storm.events[0], max(len(storm.events), case.run.counts["retract"])
    known = (
        storm.events[min(ceil(case.threshold(_MANY)), len(storm.events)) - 1] if harmful else first
    )
    yield case.finding(
        "kv-retraction",
        "kv_capacity_exhausted",
        first,
        severity="warning" if harmful else "info",
        role="root_cause" if harmful else "context",
        title=f"The KV pool is full: {count} retractions, {storm.worst} in the worst minute"
        if harmful
        else f"{count} retraction{'s' if count > 1 else ''}: the pool is well used",
        explanation="When a decode step finds no free slot, running requests are put back and "
        f"prefilled again later.{_fall(storm)} "
        + (
            "Long requests lose much work each time." if harmful else "Now and then this is normal."
        ),
        evidence=case.evidence(*storm.events[:4]),
        remedies=_remedies(case) if harmful else [],
        not_helpful=["a lower mem_fraction_static: the pool would be even smaller"],
        rank=rank,
        phase="serving",
        known_at=case.known(known),
        weight=DEGRADED,
        facts={
            "retractions": count,
            "worst_minute": storm.worst,
            "tps_before": storm.before_tps,
            "tps_after": storm.after_tps,
        },
    )


def _fall(storm: Storm) -> str:
    if storm.before_tps is None or storm.after_tps is None:
        return ""
    return f" Decode throughput went from {storm.before_tps:.0f} to {storm.after_tps:.0f} token/s."


def fewer_requests(case: Case) -> Remedy | None:
    """A limit on running requests at what the pool holds, by the tokens of those seen."""
    launch = case.run.launch
    allowed = whole(launch.get("max_running_requests"))
    running = _running(case)
    if running is None:
        return None
    target = max(running - 1 if running < 10 else int(running * 0.75), 1)
    if allowed is not None and target >= allowed:
        target = max(allowed // 2, 1)
    return flag(
        launch,
        "max_running_requests",
        target,
        f"up to {running} requests were running when the pool was full",
        direction="decrease",
        basis="observed",
        cost="requests wait in the queue instead",
    )


def _running(case: Case) -> int | None:
    rows = case.run.serving
    first = case.run.first("retract") or (case.run.failures[0].event if case.run.failures else None)
    if rows is None or first is None:
        return None
    import polars as pl

    before = rows.filter((pl.col("lane") == "decode") & (pl.col("line") < first.line))
    found = (before if before.height else rows)["running"].max()
    return found if isinstance(found, int) and found > 0 else None


def conservative(case: Case) -> Remedy | None:
    """A more careful admission of requests."""
    now = case.run.launch.number("schedule_conservativeness") or 1.0
    return flag(
        case.run.launch,
        "schedule_conservativeness",
        round(max(now + 0.3, 1.3), 1),
        "requests are admitted only where their future tokens fit, too",
        direction="increase",
        cost="fewer requests run at once",
    )


def _remedies(case: Case) -> list[Remedy]:
    return kept(fewer_requests(case), conservative(case), grow_pool(case))


@rule(
    "kv-pool-nearly-full",
    playbook="kv-retraction",
    class_="kv_capacity_exhausted",
    severity="info",
    role="precursor",
    summary="The KV pool is full to the last percent while requests wait",
    needs="decode lines with usage and queue",
)
def kv_pool_nearly_full(case: Case) -> Iterator[Finding | Skip]:
    """Usage of nearly everything with a queue: the next step is a retraction."""
    rows = case.run.serving
    if rows is None or not rows.height:
        yield Skip("no batch lines in this log")
        return
    import polars as pl

    full = rows.filter(
        (pl.col("lane") == "decode")
        & (pl.col("usage") >= case.threshold(_FULL))
        & (pl.col("queue") > 0)
    ).sort("source", "line")
    retract = case.run.first("retract", "token_pool_empty", "request_exceeds_pool")
    if not full.height or retract is None:
        return
    row = full.row(0, named=True)
    if row["source"] != retract.source or row["line"] >= retract.line:
        return
    event = Event(
        row["source"],
        row["line"],
        "decode_batch",
        f"Decode batch, token usage: {row['usage']:.2f}, #queue-req: {row['queue']}",
        time=row["time"],
        rank=row["rank"],
        phase="serving",
    )
    yield case.finding(
        "kv-pool-nearly-full",
        "kv_capacity_exhausted",
        event,
        severity="info",
        role="precursor",
        title=f"The KV pool is {row['usage']:.0%} full with {row['queue']} requests waiting",
        explanation="From here every decode step may find no free slot; requests are then put "
        "back.",
        known_at=case.known(event, event.line),
        facts={"usage": row["usage"], "queue": row["queue"]},
        playbook="kv-retraction",
    )
