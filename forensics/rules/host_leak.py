"""A process whose host memory grows with traffic, until it is killed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from forensics.events import Event
from forensics.findings import Finding, Remedy
from forensics.remedies import action, flag, kept
from forensics.rules.base import DEGRADED, QUIET_CAUSE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.thresholds import threshold

_READING = re.compile(
    r"pid=(?P<pid>\d+)[ ,]+name=(?P<name>\S+)[ ,]+rss(?:_gib|_gb)?[=: ](?P<rss>\d+(?:\.\d+)?)"
)
_POINTS = 4
_FACTOR = threshold(
    "host_leak_factor", 1.8, "times the first reading", "Growth to less is no leak", least=1.0
)
_RISE_GIB = threshold("host_leak_gib", 3.0, "GiB", "A smaller rise of host memory is no leak")
_STEADY = 0.75
"""Share of the steps that must be upwards."""


@dataclass(frozen=True, slots=True)
class Growth:
    """One process's resident memory over time."""

    pid: int
    name: str
    events: list[Event]
    sizes_gib: list[float]

    @property
    def hours(self) -> float | None:
        """Between the first and the last reading."""
        first, last = self.events[0].time, self.events[-1].time
        return (last - first).total_seconds() / 3600 if first and last else None


def growth_of(case: Case) -> Growth | None:
    """The process that grew most, if its growth is steady and large."""
    series: dict[int, Growth] = {}
    for event in case.run.of("process_monitor"):
        for found in _READING.finditer(event.text):
            pid = int(found["pid"])
            one = series.setdefault(pid, Growth(pid, found["name"], [], []))
            one.events.append(event)
            one.sizes_gib.append(float(found["rss"]))
    grown = [one for one in series.values() if _steady(case, one.sizes_gib)]
    return max(grown, key=lambda one: one.sizes_gib[-1] - one.sizes_gib[0], default=None)


def _steady(case: Case, sizes: list[float]) -> bool:
    if len(sizes) < _POINTS or sizes[-1] < case.threshold(_FACTOR) * sizes[0]:
        return False
    if sizes[-1] - sizes[0] < case.threshold(_RISE_GIB):
        return False
    up = sum(b > a for a, b in pairwise(sizes))
    # A cache that fills stops growing; a leak does not.
    half = sizes[len(sizes) // 2]
    late = sizes[-1] - half > 0.25 * (sizes[-1] - sizes[0])
    return up >= _STEADY * (len(sizes) - 1) and late


@rule(
    "host-memory-leak",
    class_="host_memory_leak",
    summary="Host memory of a process grows steadily with traffic",
    needs="several readings of a process's resident memory",
)
def host_memory_leak(case: Case) -> Iterator[Finding | Skip]:
    """Steady growth, in the end a kill: not a limit that is too low."""
    growth = growth_of(case)
    if growth is None:
        return
    kill = case.run.first("kernel_oom_kill", "container_reason", "shell_killed")
    sizes, hours = growth.sizes_gib, growth.hours
    rate = f", {(sizes[-1] - sizes[0]) / hours:.1f} an hour" if hours else ""
    event = kill if kill is not None else growth.events[_POINTS - 1]
    yield case.finding(
        "host-memory-leak",
        "host_memory_leak",
        event,
        severity="critical" if kill else "warning",
        title=f"Host memory of {growth.name} grew from {sizes[0]:.1f} to {sizes[-1]:.1f} GiB"
        + (", until it was killed" if kill else ""),
        explanation=f"{len(sizes)} readings rise steadily{rate}; GPU memory and KV usage do not "
        "follow. A higher limit only delays the end.",
        evidence=case.evidence(growth.events[0], growth.events[-1], kill),
        remedies=_remedies(case),
        not_helpful=[
            "mem_fraction_static or a smaller chunk: they are about GPU memory",
            "a higher container limit: the growth goes on",
        ],
        rank=None,
        phase="serving",
        weight=QUIET_CAUSE if kill else DEGRADED,
        facts={
            "pid": growth.pid,
            "process": growth.name,
            "sizes_gib": sizes[:200],
            "hours": hours and round(hours, 2),
            "outcome": "failed" if kill else "degraded",
        },
        playbook="host-memory-leak",
    )


def _remedies(case: Case) -> list[Remedy]:
    radix = None
    if case.run.launch.get("disable_radix_cache") is not True:
        radix = flag(
            case.run.launch,
            "disable_radix_cache",
            True,
            "tells whether the prefix cache's bookkeeping is what grows",
            cost="no reuse of prefixes",
        )
    return kept(
        action("upgrade_sglang", "such leaks are mended from release to release"),
        action("scheduled_restart", "keeps it below the limit until then"),
        radix,
    )
