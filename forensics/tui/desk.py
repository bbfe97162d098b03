"""Where one looks: the run, the rank, the line, the finding; and where each step leads.

No widgets here: the screen asks the desk to move, then draws what `selection` says.
"""

from __future__ import annotations

from forensics.diagnosis import RunReport
from forensics.findings import Finding
from forensics.tui.model import Loaded, Selection
from forensics.tui.stops import Kind, RunStops
from forensics.views.verdict import in_full, main_finding


class Desk:
    """What is looked at, once something is loaded. Moves that lead nowhere return False."""

    def __init__(self, loaded: Loaded) -> None:
        self.loaded = loaded
        self.selection = Selection()
        self._by_user = False
        reports = loaded.diagnosis.reports
        full = in_full(reports)
        self._open(reports.index(full) if full is not None else 0)

    @property
    def report(self) -> RunReport:
        """The run that is looked at."""
        return self.loaded.report(self.selection.run)

    @property
    def finding(self) -> Finding | None:
        """The finding that is looked at."""
        return self.loaded.finding(self.selection.run, self.selection.finding_id)

    def grown(self, loaded: Loaded) -> None:
        """The same logs after they have grown.

        Until the user goes somewhere, the latest run and its gravest finding are looked at.
        """
        self.loaded = loaded
        run = self.selection.run
        if not self._by_user:
            self._open(len(loaded.diagnosis.reports) - 1)
            return
        self._stops = RunStops(loaded.report(run), loaded.paths)
        if self.selection.finding_id and self.finding is None:
            self.selection = self.selection.but(finding_id=None)

    def line(self, source: int, line: int, event_index: int | None = None) -> bool:
        """To a line, in whichever run it is."""
        run = self._run_of(source, line)
        chosen = self.selection.but(source=source, line=line, event_index=event_index)
        if run != self.selection.run:
            self._stops = RunStops(self.loaded.report(run), self.loaded.paths)
            chosen = chosen.but(run=run, rank=None, finding_id=None)
        self.selection = chosen
        self._by_user = True
        return True

    def to_finding(self, finding_id: str) -> bool:
        """To a finding."""
        finding = self.loaded.finding(self.selection.run, finding_id)
        if finding is None:
            return False
        source, line = self._stops.place_of(finding)
        run = self.selection.run
        self.selection = Selection(run, finding.rank, source, line, finding_id=finding.id)
        self._by_user = True
        return True

    def go(self, kind: Kind, step: int) -> bool:
        """To the next finding, warning or traceback (`step` 1), or the one before (-1)."""
        here = self.selection
        stop = self._stops.next(kind, here.source, here.line or 0, step)
        if stop is None:
            return False
        if stop.finding_id:
            return self.to_finding(stop.finding_id)
        return self.line(stop.source, stop.line)

    def evidence(self, *, anew: bool) -> bool:
        """To the first line that the finding rests on, or from one to the next."""
        finding = self.finding
        if finding is None:
            return False
        places = [finding.first, *finding.evidence]
        found = list(dict.fromkeys((self.loaded.source_of(p.source), p.line) for p in places))
        here = (self.selection.source, self.selection.line or 0)
        at = (found.index(here) + 1) % len(found) if here in found and not anew else 0
        return self.line(*found[at])

    def rank(self, rank: str | None) -> bool:
        """Look at one rank, or at all (None)."""
        self.selection = self.selection.but(rank=rank)
        return True

    def next_rank(self, step: int) -> bool:
        """The next rank or the one before; behind the last come all together."""
        lanes = self.loaded.pictures[self.selection.run].lanes
        ranks = list(dict.fromkeys([None, *(lane.rank for lane in lanes)]))
        here = ranks.index(self.selection.rank) if self.selection.rank in ranks else 0
        return len(ranks) > 1 and self.rank(ranks[(here + step) % len(ranks)])

    def run(self, run_index: int) -> bool:
        """Another run."""
        if not 0 <= run_index < len(self.loaded.diagnosis.reports):
            return False
        self._open(run_index)
        self._by_user = True
        return True

    def ends(self, way: int) -> bool:
        """The first line of the run (-1), or the last (1)."""
        run = self.report.run
        ends = run.first_line if way < 0 else run.last_line
        source = self.selection.source if self.selection.source in ends else min(ends, default=0)
        return source in ends and self.line(source, ends[source])

    def _open(self, run_index: int) -> None:
        """A run, with what matters most selected: its cause, its gravest finding, its failure."""
        report = self.loaded.report(run_index)
        self._stops = RunStops(report, self.loaded.paths)
        finding = main_finding(report) or next(iter(report.findings), None)
        if finding is not None:
            source, line = self._stops.place_of(finding)
            self.selection = Selection(run_index, finding.rank, source, line, None, finding.id)
            return
        source, line = _notable(report)
        self.selection = Selection(run_index, source=source, line=line)

    def _run_of(self, source: int, line: int) -> int:
        """The run that holds a line; the present one where it lies between runs."""
        for index, report in enumerate(self.loaded.diagnosis.reports):
            first, last = report.run.first_line.get(source), report.run.last_line.get(source)
            if first is not None and last is not None and first <= line <= last:
                return index
        return self.selection.run


def _notable(report: RunReport) -> tuple[int, int]:
    """The first failure of a run without findings, else its last line."""
    if report.run.failures:
        failure = report.run.failures[0]
        return failure.event.source, failure.line
    source = report.run.sources[0] if report.run.sources else 0
    return source, report.run.last_line.get(source, 1)
