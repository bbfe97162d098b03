"""GPU memory that grows with traffic: what start-up left was used up by nothing that is known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

from forensics.events import Event
from forensics.findings import Finding
from forensics.incident import Failure
from forensics.remedies import action
from forensics.rules.base import DEGRADED, Skip, rule
from forensics.rules.case import Case
from forensics.rules.neighbours import ledger_of

_LONG = timedelta(minutes=30)
_GROWN_GIB = 4.0
_OUTSIDE_GIB = 5.0
"""Context, NCCL and modules grow by less than this after the baseline was taken."""
_SMALL_REQUEST = 0.25
_POINTS = 4
_RISE_GIB = 3.0
_USED = re.compile(r"(?P<used>\d+) ?/ ?(?P<total>\d+) ?M(?:i?B)|(?P<used2>\d+)MiB */ *\d+MiB")


def leaked_gib(case: Case, failure: Failure) -> float | None:
    """What grew before a failure while serving, if batches do not explain it; else None.

    Either outside PyTorch's allocator, or inside it over a long time and far beyond the request.
    """
    oom, ledger = failure.oom, ledger_of(case, failure)
    if oom is None or ledger is None or ledger.baseline_gib is None or oom.total_gib is None:
        return None
    outside = oom.outside_torch_gib
    if outside is not None:
        grown = outside - max(oom.total_gib - ledger.baseline_gib, 0.0)
        if grown > _OUTSIDE_GIB:
            return grown
    if ledger.end_gib is None or oom.allocated_gib is None or not _long_served(case, failure):
        return None
    grown = oom.allocated_gib - (ledger.baseline_gib - ledger.end_gib)
    if grown < max(_GROWN_GIB, 0.5 * ledger.end_gib) or oom.requested_gib > _SMALL_REQUEST * grown:
        return None
    return grown


def _long_served(case: Case, failure: Failure) -> bool:
    ready, now = case.run.ready, failure.event.time
    return bool(ready and ready.time and now and now - ready.time > _LONG)


@dataclass(frozen=True, slots=True)
class Readings:
    """Used memory of one GPU over time, GiB."""

    gpu: str
    events: list[Event]
    used_gib: list[float]


def growth_on_gpu(case: Case) -> Readings | None:
    """The GPU whose used memory rises from reading to reading after the server was ready."""
    if case.run.ready is None:
        return None
    series: dict[str, Readings] = {}
    for event in case.run.of("gpustat_line", "nvidia_smi_memory"):
        found = _USED.search(event.text)
        if found is None or event.line < case.run.ready.line:
            continue
        gpu = str(event.fields.get("gpu", "0"))
        one = series.setdefault(gpu, Readings(gpu, [], []))
        one.events.append(event)
        one.used_gib.append(int(found["used"] or found["used2"]) / 1024)
    rising = [one for one in [*series.values(), *_at_updates(case)] if _rises(one.used_gib)]
    return max(rising, key=lambda one: one.used_gib[-1] - one.used_gib[0], default=None)


def _at_updates(case: Case) -> list[Readings]:
    """What each rank had used since the first of several weight updates began.

    Each begins with the cache emptied, and the new weights take the place of the old ones.
    """
    series: dict[str, list[Event]] = {}
    for event in case.run.of("update_weights_begin"):
        if event.number("avail_gib") is not None:
            series.setdefault(event.rank or "0", []).append(event)
    return [
        Readings(rank, events, [(free[0] or 0.0) - (now or 0.0) for now in free])
        for rank, events in series.items()
        if (free := [event.number("avail_gib") for event in events])
    ]


def _rises(used: list[float]) -> bool:
    if len(used) < _POINTS or used[-1] - used[0] < _RISE_GIB:
        return False
    late = used[-1] - used[len(used) // 2] > 0.25 * (used[-1] - used[0])
    return late and sum(b > a for a, b in pairwise(used)) >= 0.75 * (len(used) - 1)


@rule(
    "gpu-memory-growth",
    playbook="gpu-memory-leak",
    class_="gpu_memory_leak",
    severity="warning",
    summary="Used GPU memory rises from reading to reading while serving",
    needs="several readings of nvidia-smi or gpustat after readiness",
)
def gpu_memory_growth(case: Case) -> Iterator[Finding | Skip]:
    """Weights, pool and graphs do not grow; activations come and go."""
    readings = growth_on_gpu(case)
    if readings is None:
        return
    used, failed = readings.used_gib, bool(case.run.failures)
    yield case.finding(
        "gpu-memory-growth",
        "gpu_memory_leak",
        readings.events[_POINTS - 1],
        severity="warning",
        role="precursor" if failed else "root_cause",
        title=_title(readings),
        explanation=f"{len(used)} readings rise steadily by {used[-1] - used[0]:.1f} GiB. Weights, "
        "KV pool and graphs have their size from the start, and activations are reused.",
        evidence=case.evidence(readings.events[0], readings.events[-1]),
        remedies=[
            action("upgrade_sglang", "such leaks are mended from release to release"),
            action("scheduled_restart", "keeps it below the card's size until then"),
            action("report_bug", "readings and the kind of requests are what developers need"),
        ],
        not_helpful=["a lower mem_fraction_static: it only delays the end"],
        rank=readings.events[0].rank,
        phase="serving",
        weight=DEGRADED,
        facts={"used_gib": used[:200]},
        playbook="gpu-memory-leak",
    )


def _title(readings: Readings) -> str:
    used = readings.used_gib
    if readings.events[0].kind == "update_weights_begin":
        return f"{used[-1]:.1f} GiB lost over {len(used)} weight updates while serving"
    return f"GPU {readings.gpu} grew from {used[0]:.1f} to {used[-1]:.1f} GiB while serving"
