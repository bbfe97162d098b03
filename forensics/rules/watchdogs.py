"""The scheduler's own watchdog, and a server that no longer answers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from forensics.events import Event
from forensics.findings import Finding, Remedy
from forensics.remedies import action, flag, kept
from forensics.rules.base import CONSEQUENCE, FAILURE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.collectives import Busy, busy_before, expected_s
from forensics.rules.echoes import primary
from forensics.rules.slow_start import faster, next_limit

_TITLE_TAG = re.compile(r"sglang::scheduler_?((?:_?[A-Z][A-Z_]*?\d+)+)")
_WAITS = re.compile(
    r"all_reduce|all_gather|reduce_scatter|broadcast|barrier|recv|wait|synchronize|poll|select"
    r"|_all_to_all|send_object|cond|acquire"
)
_COMPILES = re.compile(r"(?i)compile|jit|ninja|nvcc|nvrtc|triton/|deep_gemm|cpp_extension|autotun")


@rule(
    "scheduler-watchdog",
    class_="collective_hang",
    summary="The scheduler's watchdog ended a rank: one batch did not finish within its limit",
    names={
        "slow-start-watchdog": (
            "slow_start_timeout",
            "The scheduler's watchdog ended a rank that was still compiling or loading",
        )
    },
    needs="the watchdog's message; stacks (py-spy) tell where each rank stood",
)
def scheduler_watchdog(case: Case) -> Iterator[Finding | Skip]:
    """Slow if something was being compiled, else hung."""
    barks = [e for e in case.run.of("watchdog_timeout") if e.fields.get("soft") is not True]
    if not barks or case.run.first("collective_timeout") is not None:
        return
    failed = primary(case.run.failures)
    order = {id(event): place for place, event in enumerate(case.run.events)}
    if failed is not None and order[id(failed.event)] < order[id(barks[0])]:
        return
    busy = next(busy_before(case, barks[0], but=set()), None)
    stacks = _stacks(case)
    compiling = next((tag for tag, frames in stacks.items() if _at(frames, _COMPILES)), None)
    if busy is not None or compiling is not None:
        yield _slow(case, barks[0], busy, compiling)
    else:
        yield _hung(case, barks, stacks)


def _stacks(case: Case) -> dict[str, list[str]]:
    """The frames of each process that py-spy looked at, innermost first."""
    found: dict[str, list[str]] = {}
    now = ""
    for event in case.run.of("pyspy_dump", "pyspy_process", "pyspy_frame"):
        if event.kind == "pyspy_process":
            tag = _TITLE_TAG.search(event.string("process_title"))
            now = tag[1].strip("_").replace("_", " ") if tag else event.string("process_title")
        elif event.kind == "pyspy_frame":
            frame = f"{event.string('source_file')}:{event.string('function')}"
            found.setdefault(now, []).append(frame)
    return found


def _at(frames: list[str], pattern: re.Pattern[str]) -> bool:
    return any(pattern.search(frame) for frame in frames[:12])


def _odd_one(stacks: dict[str, list[str]]) -> str | None:
    """The one rank that does not wait for others, while all others do."""
    free = [tag for tag, frames in stacks.items() if not _at(frames[:4], _WAITS)]
    return free[0] if len(free) == 1 and len(stacks) > 1 else None


def _slow(case: Case, bark: Event, busy: Busy | None, compiling: str | None) -> Finding:
    limit = bark.number("timeout_s") or 300.0
    needed = expected_s(busy.bar) if busy else None
    what = busy.what if busy else "JIT compilation"
    rank = (busy.rank if busy else compiling) or bark.rank
    return case.finding(
        "slow-start-watchdog",
        "slow_start_timeout",
        busy.event if busy else bark,
        title=f"{rank or 'A rank'} was still busy with {what} when the scheduler's watchdog ended "
        f"it after {limit:.0f} s",
        explanation=f"The scheduler's watchdog ends a process whose batch takes longer than "
        f"watchdog_timeout ({limit:.0f} s). Here {what} was going on, which is slow, not stuck.",
        evidence=case.evidence(busy.event if busy else None, busy.bar if busy else None, bark),
        remedies=kept(
            flag(
                case.run.launch,
                "watchdog_timeout",
                next_limit(needed, limit),
                "gives the batch longer than the compilation takes",
                direction="increase",
                basis="computed" if needed else "heuristic",
                cost="a real hang is noticed later",
            ),
            *faster(what),
        ),
        not_helpful=["dist_timeout: that is the limit of collectives, another one"],
        rank=rank,
        known_at=case.known(bark),
        confidence="medium",
        weight=FAILURE,
        facts={"timeout": "watchdog_timeout", "timeout_s": limit, "needed_s": needed},
        playbook="slow-start",
    )


def _hung(case: Case, barks: list[Event], stacks: dict[str, list[str]]) -> Finding:
    limit = barks[0].number("timeout_s") or 300.0
    ranks = list(dict.fromkeys(e.rank for e in barks if e.rank))
    odd = _odd_one(stacks)
    rank = odd or (ranks[0] if len(ranks) == 1 else None)
    stood = f" Stacks: {odd} was not waiting for the others." if odd else ""
    return case.finding(
        "scheduler-watchdog",
        "collective_hang",
        barks[0],
        title=f"{rank or 'The ranks'} did not finish a batch within {limit:.0f} s",
        explanation=f"The scheduler's watchdog saw no progress for {limit:.0f} s "
        f"({', '.join(ranks) or 'one process'}).{stood} If all ranks wait in a collective, one of "
        "them, or a GPU, does not take part; if one rank computes, its kernel does not return.",
        evidence=case.evidence(*barks[:4], *list(case.run.of("pyspy_process"))[:4]),
        remedies=_hung_remedies(),
        not_helpful=["a longer watchdog_timeout: it only delays the end of a real hang"],
        rank=rank,
        confidence="medium" if odd else "low",
        known_at=case.known(barks[0]),
        weight=CONSEQUENCE + 1,
        facts={"outcome": "hung", "timeout_s": limit, "ranks": ranks},
    )


def _hung_remedies() -> list[Remedy]:
    return kept(
        action("inspect_rank_gpu", "the kernel log (Xid) and nvidia-smi of the rank that stood"),
        action("report_bug", "with the stacks of all ranks (py-spy), if the GPUs are sound"),
    )


_STREAK = 3


@rule(
    "server-unresponsive",
    class_="collective_hang",
    summary="The scheduler fell silent while health checks went on failing",
    needs="several failed health checks in a row, and nothing of the scheduler after them",
)
def server_unresponsive(case: Case) -> Iterator[Finding | Skip]:
    """Not one slow check: a streak at the end of the log, without a batch in between."""
    checks = list(case.run.of("health_check_failed"))
    if len(checks) < _STREAK or case.run.failures or case.run.outcome == "stopped":
        return
    active = _last_batch(case)
    streak = [e for e in checks if active is None or (e.time is not None and e.time > active)]
    if len(streak) < _STREAK:
        return
    yield case.finding(
        "server-unresponsive",
        "collective_hang",
        streak[0],
        title=f"The server stopped answering: {len(streak)} health checks failed in a row",
        explanation="No batch was run after the first of them. A scheduler that is only busy runs "
        "a batch now and then; this one stands, probably in a collective or a kernel.",
        evidence=case.evidence(*streak[:4]),
        remedies=_hung_remedies(),
        rank=None,
        phase="serving",
        confidence="low",
        known_at=case.known(streak[_STREAK - 1]),
        weight=CONSEQUENCE,
        facts={"outcome": "hung", "failed_checks": len(streak)},
    )


def _last_batch(case: Case) -> datetime | None:
    """When a scheduler last ran a batch."""
    rows = case.run.serving
    if rows is None:
        return None
    batches = rows.filter(rows["lane"].is_in(["decode", "prefill"]))["time"].max()
    return batches if isinstance(batches, datetime) else None
