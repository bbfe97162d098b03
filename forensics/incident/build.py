"""From the chunks of all sources to an incident: runs matched across sources, facts drawn."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from forensics.incident.failures import find_failures
from forensics.incident.launches import launch_of
from forensics.incident.ledgers import read_ledger
from forensics.incident.matching import matched, span_of
from forensics.incident.model import Incident, RankFacts, Run, SourceFacts
from forensics.incident.outcome import outcome_of
from forensics.incident.processes import name_processes
from forensics.incident.retention import Kept, take_rows
from forensics.incident.rows import RowStore
from forensics.timeline import Chunk
from forensics.timeline.clock import NO_DATE

_UNRANKED_RANK0 = frozenset({"capture_progress", "capture_sizes", "shards_progress"})
"""Lines that rank 0 prints without a tag."""


@dataclass(slots=True)
class IncidentBuilder:
    """Takes chunks as they come and builds the incident at any moment."""

    sources: list[SourceFacts] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    _kept: dict[tuple[int, int], Kept] = field(default_factory=dict)
    """By source and the source's own run number."""
    _rows: RowStore = field(default_factory=RowStore)

    @property
    def span_s(self) -> int:
        """Seconds over which new rows of routine lines may come summed up."""
        return max(self._rows.span_s, 1)

    def add(self, source: int, chunk: Chunk, starts: list[tuple[int, int]]) -> None:
        """Take a chunk of a source; `starts` are first line and number of its runs so far."""
        due = False
        for event in chunk.events:
            due = self._of(source, event.run).add(event) or due
        for routine in chunk.serving:
            for run, kind, count in self._rows.take(routine, source, starts):
                self._of(source, run).counts[kind] += count
        if due:
            self._take_rows()

    def forget(self, source: int) -> None:
        """Leave out what a source said: it turned out to be no log."""
        self._kept = {key: kept for key, kept in self._kept.items() if key[0] != source}

    def kinds(self, source: int) -> set[str]:
        """The kinds of lines seen in a source."""
        return {
            kind for key, kept in self._kept.items() if key[0] == source for kind in kept.counts
        }

    def build(self) -> Incident:
        """The incident as far as it was read."""
        self._take_rows()
        runs = [self._run(number, group) for number, group in enumerate(self._matched(), start=1)]
        return Incident(self.sources, runs, self.skipped)

    def fork(self) -> IncidentBuilder:
        """A builder that has read the same and goes its own way from here."""
        self._take_rows()
        kept = {key: part.copy() for key, part in self._kept.items()}
        return IncidentBuilder(self.sources, self.skipped, kept, self._rows.copy())

    def _of(self, source: int, run: int) -> Kept:
        return self._kept.setdefault((source, run), Kept())

    def _take_rows(self) -> None:
        if events := take_rows(self._kept.values()):
            from forensics.timeline.serving import from_events

            self._rows.add(from_events(events))

    def _matched(self) -> list[list[tuple[int, int]]]:
        return matched({key: span_of(key, kept) for key, kept in self._kept.items()})

    def _run(self, number: int, group: list[tuple[int, int]]) -> Run:
        run = Run(number, sources=sorted({source for source, _ in group}))
        for key in sorted(group):
            kept = self._kept[key]
            run.counts.update(kept.counts)
            run.events += kept.events()
            if kept.first and kept.last:
                run.first_line[key[0]] = kept.first.line
                run.last_line[key[0]] = max(kept.last.end_line, kept.last.line)
        if len(group) > 1:
            run.events.sort(key=lambda e: (e.time or datetime.min, e.source, e.line))
        _set_launches(run)
        _set_times(run)
        _set_ranks(run)
        _set_last(run, [(key[0], self._kept[key]) for key in group])
        _set_end(run, [self._kept[key] for key in group])
        name_processes(run)
        run.ready = run.first("ready")
        for event in run.of("ready"):
            run.readies.setdefault(event.source, event)
        run.failures = find_failures(run)
        run.serving = self._rows.of(group)
        _set_served(run)
        _set_memory(run, [source.path for source in self.sources])
        run.outcome, run.phase = outcome_of(run)
        return run


def _set_launches(run: Run) -> None:
    """The launch of each source, and of the run: that of its first node."""
    for source in run.sources:
        run.launches[source] = launch_of(e for e in run.events if e.source == source)
    told = [launch for launch in run.launches.values() if launch.flags or launch.command]
    first = [launch for launch in told if launch.get("node_rank") in (0, None)]
    run.launch = (first or told or list(run.launches.values()))[0]


def _set_last(run: Run, parts: list[tuple[int, Kept]]) -> None:
    """When each rank last spoke: routine lines count, though they are not kept as events."""
    for source, kept in parts:
        for tag, event in kept.last_by_rank.items():
            facts = run.ranks.get((source, tag or ""))
            if facts is not None and (facts.last is None or facts.last.line < event.line):
                facts.last = event


def _set_end(run: Run, parts: list[Kept]) -> None:
    """A run that serves ends with its last line, and most of its lines are routine."""
    if run.ended_at is None:
        return
    said = (event.time for kept in parts for event in kept.last_by_rank.values())
    run.ended_at = max([run.ended_at, *(at for at in said if at and at.year != NO_DATE)])


def _set_served(run: Run) -> None:
    """Routine lines are rows alone: the first and the last of them may be those of the run."""
    if run.serving is None:
        return
    times = run.serving["time"].drop_nulls()
    first, last = times.min(), times.max()
    if not isinstance(first, datetime) or not isinstance(last, datetime) or last.year == NO_DATE:
        return
    # Rows have the time at which their span begins: a start that is known is more exact.
    run.started_at = run.started_at or first
    run.ended_at = max(run.ended_at or last, last)


def _set_times(run: Run) -> None:
    times = [event.time for event in run.events if event.time and event.time.year != NO_DATE]
    if times:
        run.started_at, run.ended_at = min(times), max(times)


def _set_ranks(run: Run) -> None:
    for event in run.events:
        if event.rank is not None:
            key = (event.source, event.rank)
            facts = run.ranks.get(key)
            if facts is None:
                facts = run.ranks[key] = RankFacts(event.rank, event.source)
            facts.events.append(event)
            facts.phase, facts.last = event.phase, event
    firsts: dict[int, RankFacts] = {}
    for facts in run.ordered_ranks():
        firsts.setdefault(facts.source, facts)
    for event in run.events:
        if event.rank is None and event.kind in _UNRANKED_RANK0 and event.source in firsts:
            firsts[event.source].events.append(event)
    for facts in firsts.values():
        facts.events.sort(key=lambda event: event.line)


def _set_memory(run: Run, paths: list[str]) -> None:
    """A ledger for each rank; a launch on one GPU prints no tags, its ledger is the main one's."""
    ranked = run.ordered_ranks()
    if not ranked:
        lone = [event for event in run.events if event.rank is None]
        reader = read_ledger("TP0", lone, paths[run.sources[0]])
        run.lone_ledger = reader.ledger
        run.memory = reader.rows
    for facts in ranked:
        reader = read_ledger(facts.tag, facts.events, paths[facts.source])
        facts.ledger = reader.ledger
        run.memory += reader.rows
    _set_totals(run)


def _set_totals(run: Run) -> None:
    """Device totals stand in allocator messages only; cards of one node are alike."""
    totals = Counter(
        failure.oom.total_gib for failure in run.failures if failure.oom and failure.oom.total_gib
    )
    if len(totals) != 1:
        return
    total = next(iter(totals))
    for ledger in run.ledgers():
        ledger.total_gib = total
    for row in run.memory:
        row.total_gib = total
