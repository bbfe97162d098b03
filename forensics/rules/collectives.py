"""Who waited in a collective, who did not come, and what that one was doing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from forensics.events import Event
from forensics.incident import Run
from forensics.incident.processes import local_ranks, tag_of_global, world_size
from forensics.rules.case import Case

_GROUP = re.compile(r"\[PG (?:ID \S+ PG GUID (\S+)|(\S+)) Rank \d+\]")
_SAME_MOMENT = timedelta(seconds=120)
"""Watchdogs of one collective fire within so long of each other."""


@dataclass(frozen=True, slots=True)
class Waiter:
    """One process that gave up waiting."""

    event: Event
    source: int
    number: int
    """Global rank."""
    seq: int
    op: str
    group: str


@dataclass(slots=True)
class Standoff:
    """A collective that some processes waited for in vain."""

    waiters: list[Waiter]
    seq: int
    op: str
    timeout_s: float
    ran_s: float
    began: datetime | None
    """When the first of them began to wait."""
    missing: list[tuple[int, int]] = field(default_factory=list)
    """Source and global rank of the processes that should have come and did not wait."""
    behind: list[Waiter] = field(default_factory=list)
    """Those that wait in an earlier collective, or in another one, than the others."""
    elsewhere: bool = False
    """Every process of the logs waited, and there are more nodes than logs."""

    def suspects(self, run: Run) -> list[str]:
        """Tags of the processes that did not come, or `rank N` where the log has no tag."""
        found = self.missing or [(w.source, w.number) for w in self.behind]
        return [tag_of_global(run, source, n) or f"rank {n}" for source, n in found]


def waiters(case: Case) -> list[Waiter]:
    """The first watchdog message of every process, in reading order."""
    found: dict[tuple[int, int], Waiter] = {}
    for event in case.run.of("collective_timeout"):
        number = event.number("global_rank")
        number = event.number("rank") if number is None else number
        if number is None:
            continue
        group = _GROUP.search(event.text)
        waiter = Waiter(
            event,
            event.source,
            int(number),
            int(event.number("seq") or 0),
            event.string("op"),
            (group[1] or group[2]) if group else "",
        )
        found.setdefault((event.source, waiter.number), waiter)
    return list(found.values())


def standoff(case: Case) -> Standoff | None:
    """The first collective that timed out, with those who did not come."""
    everyone = waiters(case)
    if not everyone:
        return None
    at = everyone[0].event.time
    waiting = [w for w in everyone if _near(w.event.time, at)]
    groups = Counter(w.group for w in waiting)
    waiting = [w for w in waiting if w.group == groups.most_common(1)[0][0]]
    (seq, op), _ = Counter((w.seq, w.op) for w in waiting).most_common(1)[0]
    ran_s = max((w.event.number("ran_ms") or 0.0) / 1000 for w in waiting)
    found = Standoff(
        waiting,
        seq,
        op,
        timeout_s=(waiting[0].event.number("timeout_ms") or 0.0) / 1000,
        ran_s=ran_s,
        began=at - timedelta(seconds=ran_s) if at else None,
        behind=[w for w in waiting if (w.seq, w.op) != (seq, op)],
    )
    _find_missing(case, found)
    return found


def _near(one: datetime | None, other: datetime | None) -> bool:
    return one is None or other is None or abs(one - other) <= _SAME_MOMENT


def _find_missing(case: Case, found: Standoff) -> None:
    run = case.run
    waited = {w.number for w in found.waiters}
    sources = {w.source for w in found.waiters}
    world = max((world_size(run, source) or 0 for source in sources), default=0)
    seen: set[int] = set(waited)
    for source in sorted(run.sources):
        for number in local_ranks(run, source):
            if number not in seen:
                found.missing.append((source, number))
                seen.add(number)
    found.elsewhere = world > len(seen)
    if len(found.missing) > max(len(waited), 1):
        # Most say nothing: then silence singles nobody out.
        found.missing = []


@dataclass(frozen=True, slots=True)
class Busy:
    """Work that a process had begun and not finished."""

    event: Event
    """Where the work began."""
    what: str
    rank: str | None
    bar: Event | None = None
    """The last progress bar before the time-out."""


_WORK = (
    ("DeepGEMM pre-compilation", ("deepgemm_precompile", "deepgemm_compile_all")),
    ("weight loading", ("load_weight_begin",)),
    ("graph capture", ("capture_begin",)),
    ("kernel autotuning", ("autotune_begin",)),
    ("JIT compilation", ("jit_ops", "extension_building", "deepgemm_single_compile")),
)
"""Long work: its name, and the kinds that begin it; the narrowest last."""
_BARS = {
    "DeepGEMM pre-compilation": ("deepgemm_progress",),
    "weight loading": ("shards_progress", "download_progress", "fetch_progress"),
    "graph capture": ("capture_progress",),
    "kernel autotuning": ("autotune_progress",),
}
_ENDS = frozenset(
    {
        "load_weight_end",
        "kv_cache_allocated",
        "memory_pool_end",
        "capture_begin",
        "capture_end",
        "autotune_end",
        "max_total_tokens",
        "ready",
    }
)
"""Kinds that show that a rank went on to other things."""
_DONE = 100.0


def busy_before(case: Case, end: Event, *, but: set[str | None]) -> Iterator[Busy]:
    """Work that was going on at an event on ranks other than those that waited.

    A bar that was still moving proves it; without bars, a session that was not left does.
    """
    before = list(_until(case, end))
    for what, begins in _WORK:
        bars = [e for e in before if e.kind in _BARS.get(what, ())]
        last = bars[-1] if bars else None
        if last is not None and last.number("percent") == _DONE:
            continue
        for event in _open(before, begins):
            if event.rank in but or (last is not None and event.source != last.source):
                continue
            if last is not None and _owner(before, begins, last) not in (event.rank, None):
                continue
            yield Busy(event, what, event.rank, last)


def _open(before: list[Event], begins: tuple[str, ...]) -> list[Event]:
    """Where each rank began work of a kind that it had not left by the last of these events."""
    found: dict[tuple[int, str | None], Event] = {}
    for event in before:
        key = (event.source, event.rank)
        if event.kind in begins:
            found.setdefault(key, event)
        elif event.kind == "ready":
            found.clear()
        elif event.kind in _ENDS:
            found.pop(key, None)
    return sorted(found.values(), key=lambda e: (e.source, e.line))


def _owner(before: list[Event], begins: tuple[str, ...], bar: Event) -> str | None:
    """The rank that draws a bar: the first to begin the narrowest such work before it."""
    earlier = [e for e in before if e.source == bar.source and e.line < bar.line]
    for kind in reversed(begins):
        ranks = [e.rank for e in earlier if e.kind == kind and e.rank]
        if ranks and len(begins) > 1:
            return ranks[0]
        if ranks:
            return min(ranks, key=lambda tag: (len(tag), tag))
    return None


def _until(case: Case, end: Event) -> Iterator[Event]:
    for event in case.run.events:
        if event is end:
            return
        yield event


_CLOCK = re.compile(r"^(?:(\d+):)?(\d+):(\d\d)$")


def seconds(clock: str) -> float | None:
    """Seconds of a progress bar's `1:02:03` or `09:24`; None for `?`."""
    found = _CLOCK.match(clock)
    if not found:
        return None
    hours, minutes, rest = (int(part or 0) for part in found.groups())
    return hours * 3600.0 + minutes * 60 + rest


def expected_s(bar: Event | None) -> float | None:
    """How long the work of a bar takes in all, by the bar's own estimate."""
    if bar is None:
        return None
    done, left = seconds(bar.string("elapsed")), seconds(bar.string("left"))
    return None if done is None or left is None else done + left
