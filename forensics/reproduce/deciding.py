"""Decides a trial while it runs: at the earliest line after which its end is certain.

A precursor decides nothing: of a control it is no proof, and a fix may get away with it. A crash
decides once its traceback is whole and its process is gone or silent, so that the failure named
is the first one and no echo. What a launch says after it is being ended is not read.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from forensics.diagnosis import RunReport
from forensics.incident import Run
from forensics.incident.outcome import is_crash
from forensics.live.ending import last_lines
from forensics.live.notices import TIMED_OUT, Verdict
from forensics.live.processes import Vigil
from forensics.live.silence import GONE
from forensics.live.watch import Watch
from forensics.memory import Ledger
from forensics.reproduce.judge import failure_of, is_same
from forensics.reproduce.model import Failure, TrialPlan
from forensics.reproduce.probe_requests import Answer
from forensics.reproduce.stopping import Stop

Outcome = Literal["passed", "failed", "timed-out", "interrupted", "not-started"]

QUIET_S = 3.0
"""A failed launch that says nothing for so long has said all, though it still runs."""

UNSURE_S = 30.0
"""The same where a traceback alone tells of it: some are survived, and loading is silent."""

MOST_S = 20.0
"""A crash that other processes talk over is decided after so long."""

AFTER_ANSWER_S = 0.5
"""After a good answer the log is read on for so long."""

PROBE_S = 1000.0
"""A probe has limits of its own; this one is for when they fail."""

_FROM_OUTSIDE = "the launch was stopped from outside"
_AFTER_CAPTURE = ("max_total_tokens", "uvicorn_started", "ready")


@dataclass(frozen=True, slots=True)
class Decision:
    """How a trial ended."""

    outcome: Outcome
    because: str
    phase: str = "init"
    line: int | None = None
    failure: Failure | None = None


class TrialWatch:
    """Stands between the supervisor and a `Watch`, and ends the trial when it is decided."""

    def __init__(
        self,
        watch: Watch,
        trial: TrialPlan,
        stop: Stop,
        ask: Callable[[RunReport], Callable[[], Answer | None] | None],
        decided: Callable[[Decision], None] = lambda decision: None,
        each_step: Callable[[], None] = lambda: None,
        expected: Failure | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.decision: Decision | None = None
        self.report: RunReport | None = None
        """The launch as it was when the trial was decided."""
        self._watch, self._trial, self._stop = watch, trial, stop
        self._ask, self._tell_decided, self._each_step = ask, decided, each_step
        self._expected, self._clock = expected, clock
        self._began = self._heard_at = clock()
        self._failed_at: float | None = None
        self._judged: RunReport | None = None
        self._all_captured = False
        self._answer: Callable[[], Answer | None] | None = None
        self._answer_by = self._answered_at = 0.0

    @property
    def vigil(self) -> Vigil | None:
        """Looks after the processes."""
        return self._watch.vigil

    @vigil.setter
    def vigil(self, vigil: Vigil | None) -> None:
        self._watch.vigil = vigil

    @property
    def is_serving(self) -> bool:
        """Whether the server was ready, and well, when the trial was decided."""
        run = self.report.run if self.report is not None else None
        return run is not None and run.ready is not None and run.outcome in ("ready", "serving")

    def heard(self, source: int, data: bytes) -> None:
        """Bytes came; what is said after the decision is the end that we made."""
        if self.decision is None and not self._stop.requested:
            self._heard_at = self._clock()
            self._watch.heard(source, data)

    def caught_up(self) -> None:
        """Nothing was there before."""
        self._watch.caught_up()

    def remark(self, text: str) -> None:
        """Tell something about the watching itself."""
        self._watch.remark(text)

    def step(self) -> Verdict | None:
        """A verdict as soon as the trial is decided."""
        self._each_step()
        if self.decision is None and (found := self._decide(self._clock())) is not None:
            self._settle(found)
        return self._verdict() if self.decision is not None else None

    def finish(self, because: str, *, gone: bool = False) -> Verdict:
        """The command has ended, by itself or because it was asked to."""
        if self.decision is None and self._stop.requested:
            self._settle(self._interrupted())
        if self.decision is None:
            verdict = self._watch.finish(because, gone=gone)
            self._settle(self._ended(verdict, because))
        return self._verdict()

    def _settle(self, decision: Decision) -> None:
        self.decision, self.report = decision, self._watch.report
        self._tell_decided(decision)

    def _verdict(self) -> Verdict:
        assert self.decision is not None
        return Verdict(self.decision.outcome, self.decision.phase, 0, self.decision.because)

    def _decide(self, now: float) -> Decision | None:
        if self._stop.requested:
            return self._interrupted()
        verdict = self._watch.step()
        report = self._watch.report
        if verdict is not None and verdict.exit_code == TIMED_OUT:
            return self._made("timed-out", verdict.because)
        if verdict is not None and verdict.outcome == "stopped":
            return self._made("interrupted", _FROM_OUTSIDE)
        if report is None:
            return None
        if verdict is not None and verdict.outcome in ("failed", "hung"):
            return self._failing(now, report, verdict)
        self._failed_at = None
        if self._answer is not None:
            return self._answered(now, report)
        if self._trial.goal == "capture" and self._captured(report, now):
            return self._passed(report, "all graphs are captured", _capture_end(report.run))
        if report.run.ready is None:
            return None
        if self._trial.goal in ("capture", "ready"):
            return self._passed(report, "the server is ready", report.run.ready.line)
        self._answer, self._answer_by = self._ask(report), now + PROBE_S
        if self._answer is None:
            because = "the server is ready, but its port is not reached from here to ask it"
            return self._made("interrupted", because)
        return None

    def _failing(self, now: float, report: RunReport, verdict: Verdict) -> Decision | None:
        """Failed, once it has nothing more to say."""
        if verdict.outcome == "hung":
            return self._failed(report, verdict.because)
        if self._failed_at is None:
            self._failed_at = now
        sure = any(is_crash(event) for event in report.run.events)
        silent = now - max(self._heard_at, self._failed_at)
        if silent >= (QUIET_S if sure else UNSURE_S) or (sure and now - self._failed_at > MOST_S):
            return self._failed(report, "the launch failed")
        limit = self._trial.timeout_s
        if now - self._began >= limit and report.run.ready is None:
            return self._made("timed-out", f"not ready after {limit:g} s")
        return None

    def _answered(self, now: float, report: RunReport) -> Decision | None:
        assert self._answer is not None
        answer = self._answer()
        if answer is None:
            late = now > self._answer_by
            return self._made("timed-out", "the probe came to no end") if late else None
        self._answered_at = self._answered_at or now
        if now - self._answered_at < (AFTER_ANSWER_S if answer.ok else QUIET_S):
            return None  # the log may have something to say about it yet
        if answer.ok:
            return self._passed(report, answer.said, None)
        failure = Failure(
            rule="probe-unanswered", class_="unknown", phase="serving", title=answer.said
        )
        return self._made("failed", answer.said, failure=failure)

    def _passed(self, report: RunReport, because: str, line: int | None) -> Decision:
        """At its goal, unless it got there in a state that counts as a failure."""
        root, failure = report.root_cause, failure_of(report)
        if root is not None and failure is not None:
            asked_for = self._expected is not None and is_same(self._expected, failure)
            if asked_for or root.severity == "critical":
                return self._failed(report, f"{because}, but {failure.title}")
        return self._made("passed", because, line=line)

    def _failed(self, report: RunReport, how: str) -> Decision:
        failure = failure_of(report)
        because = f"{how}: {failure.title}" if failure and failure.title not in how else how
        line = report.root_cause.known_at.line if report.root_cause else None
        return self._made("failed", because, failure=failure, line=line)

    def _ended(self, verdict: Verdict, how: str) -> Decision:
        """The command ended before its goal, without being asked to."""
        report = self._watch.report
        if verdict.outcome == "stopped":
            return self._made("interrupted", _FROM_OUTSIDE)
        root = report.root_cause if report is not None else None
        wordless = root is None or root.rule == GONE
        if report is not None and root is not None and (self._watch.is_log or not wordless):
            # SGLang ends a failed launch by killing its own processes: that is no news
            return self._failed(report, how if wordless else "the launch failed")
        last = next(iter(last_lines(report, 1)), "") if report is not None else ""
        said = f"{how} before it came to its goal" + (f"; its last line: {last}" if last else "")
        if not self._watch.is_log:
            return self._made("not-started", said)
        failure = Failure(
            rule="ended-by-itself",
            class_="unknown",
            phase=verdict.phase,
            title=f"{how} before it came to its goal",
            text=last or None,
        )
        return self._made("failed", said, failure=failure)

    def _interrupted(self) -> Decision:
        return self._made("interrupted", f"it was stopped by {self._stop.by}")

    def _made(
        self,
        outcome: Outcome,
        because: str,
        *,
        line: int | None = None,
        failure: Failure | None = None,
    ) -> Decision:
        report = self._watch.report
        phase = report.run.phase if report else "init"
        return Decision(outcome, because, phase, line, failure)

    def _captured(self, report: RunReport, now: float) -> bool:
        if report is not self._judged:
            self._judged, self._all_captured = report, all_captured(report.run)
        if not self._all_captured:
            return False
        return any(report.run.of(*_AFTER_CAPTURE)) or now - self._heard_at >= QUIET_S


def all_captured(run: Run) -> bool:
    """Whether every rank has captured its decode graphs, a draft model's too, to the end."""
    ledgers = run.ledgers()
    drafts = bool(run.launch.get("speculative_algorithm"))
    return bool(ledgers) and all(_is_captured(ledger, drafts) for ledger in ledgers)


def _is_captured(ledger: Ledger, drafts: bool) -> bool:
    kinds = {capture.kind for capture in ledger.captures}
    if not all(capture.finished for capture in ledger.captures):
        return False
    has_draft = any(kind.startswith("draft") for kind in kinds)
    return bool(kinds & {"decode", "verify"}) and (has_draft or not drafts)


def _capture_end(run: Run) -> int | None:
    ends = [event.line for event in run.of("capture_end")]
    return max(ends, default=None)
