"""Watching: judges a session when it is worth it, tells what changed, and knows when to stop."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from forensics.diagnosis import Diagnosis, RunReport
from forensics.findings import Finding, Severity
from forensics.live.changes import FindingStream
from forensics.live.ending import QUIET_S, Ending, Until, alarming, end_of, last_lines
from forensics.live.notices import (
    PRECURSOR,
    TIMED_OUT,
    Notice,
    PhaseNotice,
    ProgressNotice,
    Remark,
    Verdict,
)
from forensics.live.pacing import Pacer, Urgency, urgency_of
from forensics.live.places import Places
from forensics.live.processes import Vigil
from forensics.live.progress import RunState, alarm_of, reached, state_of
from forensics.live.session import Session
from forensics.live.silence import gone_without_word, silent_launch, stopped_processes

_GRACE_S = 0.1
"""Before a precursor ends the waiting, the other ranks get so long to print the same line."""

_PROGRESS_EVERY_S = 1.0
_LOOK_EVERY_S = 0.5


@dataclass(slots=True)
class Goal:
    """What is waited for, and what ends the waiting early."""

    until: Until = "ready"
    fail_on: Severity | None = "critical"
    """A finding that foretells a failure ends the waiting from this severity on; None: never."""
    timeout_s: float | None = None
    start_timeout_s: float | None = None
    """The same, but only until the server is ready."""
    ignore_past: bool = False
    """Launches that had ended before the watching began do not count."""


class Watch:
    """One watched launch. Feed it with `heard`, ask `step` often; both in one thread."""

    def __init__(
        self,
        session: Session,
        goal: Goal,
        tell: Callable[[Notice], None],
        *,
        vigil: Vigil | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.places = Places([source.facts.path for source in session.sources])
        self.report: RunReport | None = None
        """The launch that is watched, as last judged."""
        self._session, self._goal, self._tell = session, goal, tell
        self.vigil = vigil
        self._clock = clock
        self._stream = FindingStream()
        self._began = self._quiet_since = clock()
        self._pacer = Pacer(self._began)
        self._caught_up = False
        self._first_run = 1
        self._diagnosis: Diagnosis | None = None
        self._ending = Ending()
        self._alarmed_at: float | None = None
        self._hung_since: float | None = None
        self._phase: tuple[int, str] | None = None
        self._progress: tuple[object, ...] = ()
        self._next_progress = self._next_look = 0.0

    def heard(self, source: int, data: bytes) -> None:
        """Bytes of a source came."""
        events = self._session.feed(source, data)
        self._quiet_since = self._clock()
        self._pacer.heard(urgency_of(events, serving=self.serving))

    def caught_up(self, age_s: float = 0.0) -> None:
        """What stood in the sources before was heard; its last line is so old."""
        self._caught_up = True
        now = self._clock()
        self._quiet_since = now - age_s
        past = self._look(now)
        if past and self._goal.ignore_past and past.run.outcome in ("failed", "stopped"):
            self._first_run = past.run.number + 1
        elif past:
            self._take(past, now)

    def remark(self, text: str) -> None:
        """Tell something about the watching itself."""
        self._tell(Remark(text))

    def step(self) -> Verdict | None:
        """Judge if it is due, tell what changed; a verdict if the waiting is over."""
        if not self._caught_up:
            return None
        now = self._clock()
        if (ahead := self._alarm_before_crash()) is not None:
            return ahead
        if self._pacer.due(now, serving=self.serving) or self._ending.settles(
            now, self._quiet_since
        ):
            self._judge(now)
        self._tell_progress(now)
        return self._decide(now)

    def _alarm_before_crash(self) -> Verdict | None:
        """A precursor that was told ends the waiting, though the crash follows on its heels."""
        if self._alarmed_at is None or self._pacer.waiting is not Urgency.failure:
            return None
        found = alarming(self.report, self._goal.fail_on)
        return self._verdict(PRECURSOR, f"about to fail: {found.title}", found) if found else None

    def finish(self, because: str, *, gone: bool = False) -> Verdict:
        """The verdict when the input has ended; `gone`: its writers ended without a word."""
        for index in range(len(self._session.sources)):
            self._session.end(index)
        now = self._clock()
        self._ending.close()
        self._judge(now)
        if gone and self.report and self.report.run.outcome not in ("failed", "hung", "stopped"):
            self._add(self._gone(self.report, because))
        if finding := alarming(self.report, self._goal.fail_on):
            return self._verdict(PRECURSOR, because, finding)
        return self._verdict(end_of(self.report, self._goal.until).exit_code, because)

    def give_up(self, exit_code: int, because: str, finding: Finding | None = None) -> Verdict:
        """A verdict before the launch has ended."""
        self._judge(self._clock())
        return self._verdict(exit_code, because, finding)

    def state(self) -> RunState | None:
        """The launch at this moment."""
        if self.report is None:
            return None
        lines = [source.open_line for source in self._session.sources]
        return state_of(self.report, lines, max(self._clock() - self._quiet_since, 0.0))

    @property
    def is_log(self) -> bool:
        """Whether anything was recognised as a log."""
        return self._session.is_log

    @property
    def serving(self) -> bool:
        """Whether the launch has become ready."""
        return self.report is not None and self.report.run.ready is not None

    def _judge(self, now: float) -> None:
        """Judge, and tell what changed."""
        if report := self._look(now):
            self._take(report, now)

    def _look(self, now: float) -> RunReport | None:
        """Judge; returns the latest launch that counts."""
        began = time.perf_counter()
        diagnosis = self._session.snapshot()
        self.places.relocate(diagnosis)
        self._diagnosis = diagnosis
        self._pacer.judged(now, time.perf_counter() - began)
        reports = [r for r in diagnosis.reports if r.run.number >= self._first_run]
        return reports[-1] if reports else None

    def _take(self, report: RunReport, now: float) -> None:
        self.report = report
        self._first_run = report.run.number
        self._ending.note(report, now)
        self._ending.settles(now, self._quiet_since)
        self._tell_phase(report)
        self._publish(report, now)

    def _publish(self, report: RunReport, now: float) -> None:
        for change in self._stream.update(report, now, settled=self._ending.settled):
            self._tell(change)

    def _decide(self, now: float) -> Verdict | None:
        if self._ending.settled and self.report:
            end = end_of(self.report, self._goal.until)
            if end.because:
                return self._verdict(end.exit_code, end.because)
        if not self._ending.pending:
            if finding := self._alarm(now):
                return self._verdict(PRECURSOR, f"about to fail: {finding.title}", finding)
            if vital := self._look_after(now):
                return vital
        if (because := self._overdue(now - self._began)) is not None:
            return self.give_up(TIMED_OUT, because)
        return None

    def _overdue(self, waited_s: float) -> str | None:
        """Why the waiting has been too long, None if it has not."""
        goal = self._goal
        until, limit = goal.until, goal.timeout_s
        if limit is None or waited_s < limit:
            until, limit = "ready", None if self.serving else goal.start_timeout_s
        if limit is None or waited_s < limit:
            return None
        return f"not {until} after {limit:g} s{self._session.nothing_read()}"

    def _alarm(self, now: float) -> Finding | None:
        """The finding that ends the waiting, once the other ranks had time to say the same."""
        found = alarming(self.report, self._goal.fail_on)
        if found is None:
            self._alarmed_at = None
        elif self._alarmed_at is None:
            self._alarmed_at = now
        elif now - self._alarmed_at >= _GRACE_S:
            return found
        return None

    def _look_after(self, now: float) -> Verdict | None:
        """Silence, and what the operating system says of the processes."""
        silent_s = now - self._quiet_since
        told = self._hung_since == self._quiet_since
        if silent_s < QUIET_S or told or self.report is None or self._diagnosis is None:
            return None
        if now < self._next_look:
            return None
        self._next_look = now + _LOOK_EVERY_S
        run, incident = self.report.run, self._diagnosis.incident
        phase = reached(run)
        vitals = self.vigil.check(now) if self.vigil else None
        if vitals and vitals.gone:
            return self.finish("no process has the log open any more", gone=True)
        found = stopped_processes(run, incident, list(vitals.stopped) if vitals else [], phase)
        found = found or silent_launch(run, incident, silent_s, phase)
        if found is None:
            return None
        self._hung_since = self._quiet_since
        self._add(found)
        return self._verdict(end_of(self.report, self._goal.until).exit_code, found.title)

    def _gone(self, report: RunReport, how: str) -> Finding | None:
        assert self._diagnosis is not None
        return gone_without_word(report.run, self._diagnosis.incident, how, report.run.phase)

    def _add(self, finding: Finding | None) -> None:
        """A finding that rests on more than the log."""
        if finding is None or self.report is None:
            return
        report = self.report
        self.places.move(finding)
        report.findings.insert(0, finding)
        report.root_cause = finding
        report.run.outcome = str(finding.facts["outcome"])
        self._publish(report, self._clock())

    def _verdict(self, exit_code: int, because: str, finding: Finding | None = None) -> Verdict:
        report = self.report
        if report is None:
            return Verdict("unknown", "init", exit_code, because)
        named = report.root_cause or finding or alarm_of(report)
        return Verdict(
            outcome=report.run.outcome,
            phase=report.run.phase,
            exit_code=exit_code,
            because=because,
            run=report.run.number,
            root_cause=report.root_cause,
            finding=finding,
            new_command=report.new_command,
            new_env=report.new_env,
            remove_env=report.remove_env,
            last_lines=[] if named else last_lines(report),
        )

    def _tell_phase(self, report: RunReport) -> None:
        state = self.state()
        if state is None or self._phase == (state.run, state.phase):
            return
        self._phase = (state.run, state.phase)
        ranks = {rank.tag: rank.phase for rank in state.ranks}
        self._tell(PhaseNotice(report.run.number, state.phase, ranks))

    def _tell_progress(self, now: float) -> None:
        if now < self._next_progress or self._ending.over or self.serving:
            return
        if (state := self.state()) is None:
            return
        self._next_progress = now + _PROGRESS_EVERY_S
        mark = (state.run, state.phase, state.bar, state.unusual_silence, len(state.late))
        if mark != self._progress and (state.bar or state.unusual_silence or state.late):
            self._tell(ProgressNotice(state))
        self._progress = mark
