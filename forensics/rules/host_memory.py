"""Host memory: processes killed for it, and how much the hierarchical cache takes of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from forensics.events import Event
from forensics.findings import Finding, Remedy
from forensics.incident.processes import tag_of_index
from forensics.remedies import action, flag, kept
from forensics.rules.base import QUIET_CAUSE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.host_leak import growth_of
from forensics.rules.memory_facts import whole

_LEAST_RATIO = 1.05
"""A host cache smaller than the pool on the GPU helps little; below it a size is set instead."""
_SIGKILL = frozenset({-9, 137})
_DEAD = ("scheduler_dead", "scheduler_died", "subprocess_crashed", "child_exit", "exit_code_line")
_ALLOCATING = ("host_cache_allocating", "host_pool_allocating")
_INDEX = re.compile(r"scheduler_?(?:DP\d+_)?(?:TP)?(\d+)")


def cache_demand(case: Case) -> tuple[Event, float, int] | None:
    """The first line that takes host memory for the cache, its size in GB, and how many ranks."""
    lines = list(case.run.of(*_ALLOCATING))
    if not lines or (size := lines[0].number("host_gib")) is None:
        return None
    tp_size = whole(case.run.launch.get("tp_size")) or 1
    seen = len({(e.source, e.rank) for e in lines})
    return lines[0], size, max(tp_size, seen)


@rule(
    "host-cache-demand",
    playbook="host-memory",
    class_="host_ram_oom",
    severity="info",
    role="precursor",
    summary="How much host memory the hierarchical cache takes on all ranks together",
    needs="the lines that allocate it",
)
def host_cache_demand(case: Case) -> Iterator[Finding | Skip]:
    """The size is per rank: the host must bear it as many times as there are ranks."""
    if (demand := cache_demand(case)) is None:
        return
    event, size, ranks = demand
    if ranks < 2 or case.run.ready is not None:
        return
    yield case.finding(
        "host-cache-demand",
        "host_ram_oom",
        event,
        severity="info",
        role="precursor",
        title=f"The hierarchical cache takes {size * ranks:.0f} GB of host memory in all",
        explanation=f"{size:.0f} GB for each of {ranks} ranks, pinned: it cannot be swapped, and a "
        "container's limit counts it.",
        rank=None,
        phase="kv_pool",
        known_at=case.known(event),
        facts={"per_rank_gb": size, "ranks": ranks, "total_gb": round(size * ranks, 1)},
        playbook="host-memory",
    )


@rule(
    "host-oom-kill",
    playbook="host-memory",
    class_="host_ram_oom",
    summary="The kernel killed a process for host memory",
    needs="the kernel's line, a container's OOMKilled, or a rank killed while it took host memory",
)
def host_oom_kill(case: Case) -> Iterator[Finding | Skip]:
    """With the kernel's word it is certain; a rank killed while pinning memory is likely so."""
    proof = case.run.first("kernel_oom_kill", "kernel_oom_reason") or _oom_killed(case)
    dead = _killed(case)
    demand = cache_demand(case)
    if proof is None and (dead is None or demand is None or case.run.ready is not None):
        return
    if proof is not None and growth_of(case) is not None:
        return  # the leak's own rule tells more
    event = proof if proof is not None else dead
    if event is None:
        return
    pinning = demand is not None and demand[0].line < event.line and case.run.ready is None
    kill = case.run.first("kernel_oom_kill")
    yield case.finding(
        "host-oom-kill",
        "host_ram_oom" if proof is not None else "external_kill",
        event,
        title=_title(case, proof, dead, pinning),
        explanation=_explanation(case, proof, demand if pinning else None, kill),
        evidence=case.evidence(demand[0] if demand else None, proof, dead),
        remedies=_remedies(case, demand if pinning else None, proof),
        not_helpful=[
            "mem_fraction_static, in either direction: GPU memory was not short",
            "longer time-outs: the process is dead",
        ],
        rank=_rank(case, dead),
        phase="kv_pool" if pinning else event.phase,
        confidence="high" if proof is not None else "medium",
        weight=QUIET_CAUSE - 5,
        facts={
            "demand_gb": demand and round(demand[1] * demand[2], 1),
            "resident_gib": kill and _resident_gib(kill),
            "outcome": "failed",
        },
        playbook="host-memory",
    )


def _oom_killed(case: Case) -> Event | None:
    reasons = case.run.of("container_reason")
    return next((e for e in reasons if "OOMKilled" in e.string("container_cause")), None)


def _killed(case: Case) -> Event | None:
    """The first line that says that a process ended by SIGKILL, a rank's by preference."""
    found: list[Event] = []
    for failure in case.run.failures:
        chain = failure.traceback.chain if failure.traceback else []
        if any(raised.kind == "scheduler_died" for raised in chain):
            found.append(failure.event)
    for event in case.run.of(*_DEAD):
        code = event.number("exit_code")
        if event.kind == "scheduler_dead" or (code is not None and int(code) in _SIGKILL):
            found.append(event)
    return next((e for e in found if _index(e) is not None), found[0] if found else None)


def _index(event: Event) -> int | None:
    chain = event.traceback.chain if event.traceback else []
    for fields in (event.fields, *(raised.fields for raised in chain)):
        if isinstance(index := fields.get("index"), int):
            return index
        if match := _INDEX.search(str(fields.get("process_name") or "")):
            return int(match[1])
    return None


def _rank(case: Case, dead: Event | None) -> str | None:
    if dead is None:
        return None
    index = _index(dead)
    if index is None:
        return dead.rank
    return tag_of_index(case.run, dead.source, index) or f"TP{index}"


def _resident_gib(kill: Event) -> float:
    names = ("anon_rss_kib", "file_rss_kib", "shmem_rss_kib")
    return round(sum(kill.number(name) or 0.0 for name in names) / 2**20, 2)


def _title(case: Case, proof: Event | None, dead: Event | None, pinning: bool) -> str:
    rank = _rank(case, dead)
    who = rank or "A process"
    when = " while it took host memory for the hierarchical cache" if pinning else ""
    if proof is not None:
        return f"{who} was killed for host memory{when}"
    return f"{who} was killed (SIGKILL){when}: most likely for host memory"


def _explanation(
    case: Case, proof: Event | None, demand: tuple[Event, float, int] | None, kill: Event | None
) -> str:
    del case
    text = (
        "The kernel's out-of-memory killer ended it; such a process prints nothing itself."
        if proof is not None
        else "A process killed by SIGKILL prints nothing itself; `dmesg -T | grep -i oom` tells "
        "whether the kernel did it."
    )
    if kill is not None:
        text += f" It held {_resident_gib(kill):.1f} GiB of host memory."
    if demand is not None:
        _, size, ranks = demand
        text += (
            f" The cache's size is per rank: {size:.0f} GB x {ranks} ranks = {size * ranks:.0f} GB "
            "of pinned memory."
        )
    return text


def _remedies(
    case: Case, demand: tuple[Event, float, int] | None, proof: Event | None
) -> list[Remedy]:
    limited = proof is None or proof.kind == "container_reason" or "cgroup" in proof.text.lower()
    limited = limited or "MEMCG" in proof.text if proof is not None else limited
    room = (
        action("raise_container_memory", "the limit counts pinned memory of all ranks")
        if limited
        else action("add_host_ram", "the whole host ran out")
    )
    smaller = smaller_cache(case, demand[1], demand[2]) if demand else None
    swap = None if demand else action("add_swap", "swap bears what is rarely used")
    return kept(smaller, room, swap)


def smaller_cache(case: Case, size: float, ranks: int, fits: float | None = None) -> Remedy | None:
    """A smaller host cache: by its size, or by its ratio where that is what was set.

    `fits`: what is known to fit on one rank, GB.
    """
    launch = case.run.launch
    target = int(fits if fits is not None else size * 0.6)
    reason = f"{target} GB x {ranks} ranks = {target * ranks} GB instead of {size * ranks:.0f}"
    ratio = launch.number("hicache_ratio") or 2.0
    by_size = launch.number("hicache_size") or launch.get("hicache_ratio") is None
    if by_size or ratio * target / size < _LEAST_RATIO:
        if target < 1:
            return None
        return flag(
            launch,
            "hicache_size",
            target,
            reason,
            direction="decrease" if by_size else "set",
            basis="computed" if fits is not None else "heuristic",
            cost="fewer prefixes are kept",
        )
    return flag(
        launch,
        "hicache_ratio",
        round(ratio * target / size, 2),
        reason,
        direction="decrease",
        basis="computed",
        cost="fewer prefixes are kept",
    )
