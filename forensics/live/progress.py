"""How far a launch is: phase and free memory of its ranks, its progress bar, who is late or silent.

Computed from a report and the time since the last bytes; the views only draw it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median

from forensics.diagnosis import RunReport
from forensics.events import Event
from forensics.findings import Finding
from forensics.incident import Run
from forensics.live.bars import Bar, bar_at_work
from forensics.live.silence import usual_silence_s

_MARKS = ("load_weight_begin", "load_weight_end", "memory_pool_end", "capture_begin", "capture_end")
"""What every rank prints at about the same time, in order."""

_LATE_S = 10.0
_LATE_SPREADS = 3.0


@dataclass(slots=True)
class RankState:
    """One rank: where it is, and how it stands against its peers."""

    tag: str
    phase: str
    free_gib: float | None = None
    silent_s: float | None = None
    """Since its last line, in the log's clock."""
    behind_s: float | None = None
    """How late it is against its peers, None if it is not."""
    behind_at: str = ""
    """The kind of line that its peers have printed and it has not."""


@dataclass(slots=True)
class RunState:
    """A launch at one moment."""

    run: int
    outcome: str
    phase: str
    ranks: list[RankState] = field(default_factory=list)
    bar: Bar | None = None
    silent_s: float = 0.0
    """Since the last bytes of any source."""
    usual_silence_s: float | None = None
    """How long this phase usually can be silent; None: as long as it likes."""
    alarm: Finding | None = None
    """The finding that foretells the worst."""

    @property
    def unusual_silence(self) -> bool:
        """Whether it has been silent for longer than its phase usually is."""
        return self.usual_silence_s is not None and self.silent_s > self.usual_silence_s

    @property
    def late(self) -> list[RankState]:
        """The ranks that are late against their peers."""
        return [rank for rank in self.ranks if rank.behind_s is not None]


def state_of(report: RunReport, open_lines: Sequence[bytes], silent_s: float) -> RunState:
    """The state of a launch; `open_lines` are lines still being written, `silent_s` the time
    since the last bytes came."""
    run = report.run
    ended = run.outcome in ("failed", "stopped", "hung")
    phase = run.phase if ended else reached(run)
    return RunState(
        run=run.number,
        outcome=run.outcome,
        phase=phase,
        ranks=_ranks(run, silent_s),
        bar=None if ended or phase == "serving" else bar_at_work(run, open_lines, phase),
        silent_s=silent_s,
        usual_silence_s=usual_silence_s(run, phase),
        alarm=alarm_of(report),
    )


def reached(run: Run) -> str:
    """The phase that the launch as a whole is in: that of its latest line with a mark."""
    if run.ready is not None:
        return "serving"
    phases = {facts.phase for facts in run.ranks.values()}
    return run.phase if run.phase not in phases or len(phases) != 1 else phases.pop()


def alarm_of(report: RunReport) -> Finding | None:
    """The critical or, without one, the warning precursor of a launch that still lives."""
    if report.run.outcome in ("failed", "stopped"):
        return None
    told = [f for f in report.findings if f.role in ("precursor", "root_cause")]
    for severity in ("critical", "warning"):
        for finding in told:
            if finding.severity == severity:
                return finding
    return None


def _ranks(run: Run, silent_s: float) -> list[RankState]:
    free = {row.rank: row.free_gib for row in run.memory if row.free_gib is not None}
    now = run.ended_at + timedelta(seconds=silent_s) if run.ended_at else None
    states = []
    for facts in run.ordered_ranks():
        last = facts.last.time if facts.last else None
        silent = (now - last).total_seconds() if now and last else None
        states.append(RankState(facts.tag, facts.phase, free.get(facts.tag), silent))
    if not states and run.memory:
        states.append(RankState("GPU", reached(run), run.memory[-1].free_gib, silent_s))
    if now is not None and run.ready is None:
        _mark_late(run, states, now)
    return states


def _mark_late(run: Run, states: list[RankState], now: datetime) -> None:
    """Ranks that have not printed what more than half of their peers have."""
    ranks = run.ordered_ranks()
    for mark in reversed(_MARKS):
        times = [_first(facts.events, mark) for facts in ranks]
        passed = [time for time in times if time is not None]
        if 2 * len(passed) <= len(ranks):
            continue
        usual = median(time.timestamp() for time in passed)
        spread = max(passed).timestamp() - min(passed).timestamp()
        behind = now.timestamp() - usual
        for state, time in zip(states, times, strict=True):
            if time is None and behind > max(_LATE_S, _LATE_SPREADS * spread):
                state.behind_s, state.behind_at = behind, mark
        return


def _first(events: Sequence[Event], kind: str) -> datetime | None:
    return next((event.time for event in events if event.kind == kind and event.time), None)
