"""Which runs of several sources are one launch: nodes, prefill and decode workers, replicas.

They overlap in time. Hosts may print different zones: the same moment then differs by whole
quarters of an hour. Nodes that name the same rendezvous belong together whatever their clocks say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from forensics.incident.launches import launch_of
from forensics.incident.retention import Kept
from forensics.timeline.clock import NO_DATE

Key = tuple[int, int]
"""Source, and the source's own run number."""

_SLACK = timedelta(minutes=10)
_NEAR = timedelta(minutes=5)
"""Two starts of one launch are at most so far apart when their zones differ."""
_QUARTER = timedelta(minutes=15)
_ZONES = timedelta(hours=14)


@dataclass(frozen=True, slots=True)
class Span:
    """When a run of one source began and ended, and what it says of its part in a deployment."""

    begin: datetime | None
    end: datetime | None
    rendezvous: str | None = None
    node_rank: int | None = None
    part: str | None = None
    """`prefill` or `decode`."""

    @property
    def days(self) -> tuple[datetime, datetime] | None:
        """Begin and end, if they name a day."""
        if self.begin is None or self.end is None or self.begin.year == NO_DATE:
            return None
        return self.begin, self.end


def span_of(key: Key, kept: Kept) -> Span:
    """The span of one run of one source."""
    begin = kept.first.time if kept.first else None
    end = kept.last.time if kept.last else None
    launch = launch_of([*kept.of("launch_command"), *kept.of("server_args_dump")])
    nodes, part = launch.number("nnodes") or 1, launch.get("disaggregation_mode")
    address = launch.get("dist_init_addr")
    rank = launch.number("node_rank")
    return Span(
        begin,
        end,
        rendezvous=str(address) if nodes > 1 and address else None,
        node_rank=int(rank) if rank is not None else None,
        part=part if part in ("prefill", "decode") else None,
    )


def matched(spans: Mapping[Key, Span]) -> list[list[Key]]:
    """The runs of all sources in groups: each group is one launch."""
    groups: list[list[Key]] = []
    begins = _begins(spans)
    for key in sorted(spans, key=lambda key: (begins[key], key[1], key[0])):
        home = next((group for group in groups if _belongs(key, group, spans)), None)
        if home is None:
            groups.append([key])
        else:
            home.append(key)
    return groups


def _begins(spans: Mapping[Key, Span]) -> dict[Key, datetime]:
    """When each run began; one without times stands where it does in its source."""
    begins: dict[Key, datetime] = {}
    next_of: dict[int, datetime] = {}
    for key in sorted(spans, reverse=True):
        begin = spans[key].begin or next_of.get(key[0])
        if begin is not None:
            begins[key] = next_of[key[0]] = begin
    last_of: dict[int, datetime] = {}
    for key in sorted(spans):
        begins.setdefault(key, last_of.get(key[0], datetime.max))
        last_of[key[0]] = begins[key]
    return begins


def _belongs(key: Key, group: list[Key], spans: Mapping[Key, Span]) -> bool:
    if any(key[0] == source for source, _ in group):
        return False
    return any(_together(key, spans[key], other, spans[other]) for other in group)


def _together(key: Key, one: Span, other_key: Key, other: Span) -> bool:
    if one.days is None or other.days is None:
        return key[1] == other_key[1]
    (begin, end), (other_begin, other_end) = one.days, other.days
    if begin - _SLACK <= other_end and other_begin - _SLACK <= end:
        return True
    partners = (
        one.rendezvous is not None
        and one.rendezvous == other.rendezvous
        and one.node_rank != other.node_rank
    ) or {one.part, other.part} == {"prefill", "decode"}
    return partners and key[1] == other_key[1] and _zones_apart(begin, other_begin)


def _zones_apart(one: datetime, other: datetime) -> bool:
    apart = abs(one - other)
    rest = apart % _QUARTER
    return apart <= _ZONES and min(rest, _QUARTER - rest) <= _NEAR
