"""Whose memory it was: other processes on the same GPU, of this job or of somebody else."""

from __future__ import annotations

from forensics.grammar.oom import OutOfMemory
from forensics.incident import Failure
from forensics.memory import Ledger
from forensics.rules.case import Case

_SHARE = 0.03
"""Less than this share of the card is a display or a monitor, not a neighbour."""
_SHARE_IN_LOADING = 0.2
"""In loading nothing says how much more was needed, so a neighbour must be large to count."""
_OWN_CONTEXT_GIB = 1.0
_LIKE = 0.35
"""Ranks' helper processes on another rank's GPU differ by less than this share."""
_NEAR_PIDS = 24


def tp_size(case: Case) -> int:
    """Ranks of one replica, by its flag or the ranks seen."""
    value = case.run.launch.get("tp_size")
    seen = len({facts.tag for facts in case.run.ranks.values()})
    return value if isinstance(value, int) and not isinstance(value, bool) else max(seen, 1)


def neighbour_class(case: Case, failure: Failure) -> str | None:
    """The class of a failure that would not have happened without other processes, else None."""
    oom = failure.oom
    if oom is None or not explains(case, failure, oom):
        return None
    if own_share(case, oom) >= 0.5 * held_by_others(oom):
        return "rank_memory_imbalance"
    return "other_process_on_gpu"


def held_by_others(oom: OutOfMemory) -> float:
    """What other processes hold on the GPU: as listed, else what is left over of the total."""
    if oom.processes:
        return oom.others_gib
    if oom.total_gib is None or oom.free_gib is None or oom.in_use_gib is None:
        return 0.0
    return max(oom.total_gib - oom.free_gib - oom.in_use_gib, 0.0)


def explains(case: Case, failure: Failure, oom: OutOfMemory) -> bool:
    """Whether the request would have fitted without the others, who came or grew since the start.

    What was taken before the baseline was known to the sizing of the pool and is no surprise.
    """
    others, total = held_by_others(oom), oom.total_gib or 0.0
    if failure.phase in ("init", "load"):
        return others > _SHARE_IN_LOADING * total > 0
    if others < max(_SHARE * total, 1.0) or oom.requested_gib - (oom.free_gib or 0.0) > others:
        return False
    ledger = ledger_of(case, failure)
    if ledger is None or ledger.baseline_gib is None or not total:
        return True
    before = max(total - ledger.baseline_gib - _OWN_CONTEXT_GIB, 0.0)
    return others - before > max(oom.requested_gib - (oom.free_gib or 0.0), 1.0)


def own_share(case: Case, oom: OutOfMemory) -> float:
    """What the others hold that are processes of this job: its other ranks and its main process.

    Known by pids near the failing one's (ranks are started one after the other), by pids that the
    log names, or by coming as many alike as there are other ranks.
    """
    mine = job_pids(case)
    alike = _alike(oom, tp_size(case) - 1)
    own = 0.0
    for pid, used in oom.processes.items():
        near = oom.own_pid is not None and abs(pid - oom.own_pid) <= _NEAR_PIDS
        small = used < 0.25 * (oom.in_use_gib or oom.total_gib or used)
        if pid in mine or (near and small) or pid in alike:
            own += used
    return own


def job_pids(case: Case) -> set[int]:
    """Pids that the log names as this job's."""
    kinds = ("uvicorn_started", "child_exit", "subprocess_crashed", "process_monitor")
    return {int(pid) for e in case.run.of(*kinds) if (pid := e.number("pid")) is not None}


def _alike(oom: OutOfMemory, ranks: int) -> set[int]:
    """As many processes of nearly the same small size as there are other ranks."""
    if ranks < 2 or len(oom.processes) < ranks:
        return set()
    sizes = sorted(oom.processes.items(), key=lambda item: item[1])
    for start in range(len(sizes) - ranks + 1):
        group = sizes[start : start + ranks]
        least, most = group[0][1], group[-1][1]
        if most - least <= _LIKE * most:
            return {pid for pid, _ in group}
    return set()


def ledger_of(case: Case, failure: Failure) -> Ledger | None:
    """The ledger of the failing rank; of the only one, where ranks are not told apart."""
    for facts in case.run.ordered_ranks():
        if facts.tag == failure.rank and facts.source == failure.event.source:
            return facts.ledger
    ledgers = case.run.ledgers()
    return ledgers[0] if len(ledgers) == 1 else None


def least_free(case: Case) -> tuple[str, float, float] | None:
    """The rank with the least free memory at the first capture, its figure, and the others' least.

    From the latest figure that all ranks print: capture begin, after the pool, before weights.
    """
    for name in ("capture_begin_gib", "after_pool_gib", "after_weights_gib", "baseline_gib"):
        figures = [(ledger.rank, getattr(ledger, name)) for ledger in case.run.ledgers()]
        known = [(rank, free) for rank, free in figures if free is not None]
        if len(known) >= 2 and len(known) == len(figures):
            (rank, least), *rest = sorted(known, key=lambda item: item[1])
            return rank, least, rest[0][1]
    return None
