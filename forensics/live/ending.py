"""How a watched launch ends: the signs of it, the time they need to settle, the exit code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from forensics.diagnosis import RunReport
from forensics.findings import SEVERITIES, Finding, Severity
from forensics.live.notices import FAILED, READY

Until = Literal["ready", "serving", "failed"]

QUIET_S, MOST_S = 1.0, 5.0
"""An end is final when nothing was written for so long, or so long after its first sign."""

_OVER = ("failed", "hung", "stopped")


@dataclass(slots=True)
class Ending:
    """The end of a launch while its last lines are still coming.

    Eight ranks take seconds to print their tracebacks, and the first is rarely the cause: what is
    said before the output is quiet would have to be taken back.
    """

    _sign_at: float | None = None
    _final: bool = False

    def note(self, report: RunReport, now: float) -> None:
        """A report was judged: does it show an end?"""
        if report.run.outcome not in _OVER:
            self._sign_at, self._final = None, False
        elif self._sign_at is None:
            self._sign_at = now

    def settles(self, now: float, quiet_since: float) -> bool:
        """True once, when the end has become final and is to be judged for good."""
        if self._sign_at is None or self._final:
            return False
        self._final = now - quiet_since >= QUIET_S or now - self._sign_at >= MOST_S
        return self._final

    def close(self) -> None:
        """Nothing more will come."""
        self._final = True

    @property
    def pending(self) -> bool:
        """An end shows, and its last lines are still coming."""
        return self._sign_at is not None and not self._final

    @property
    def over(self) -> bool:
        """An end shows, final or not."""
        return self._sign_at is not None

    @property
    def settled(self) -> bool:
        """Nothing is pending: what is found can be told."""
        return not self.pending


@dataclass(frozen=True, slots=True)
class End:
    """Exit code and reason; without a reason it is not the end."""

    exit_code: int
    because: str = ""


def end_of(report: RunReport | None, until: Until) -> End:
    """Whether a launch has come to what was waited for, or to an end."""
    if report is None:
        return End(FAILED)
    run = report.run
    if run.outcome in ("failed", "hung"):
        return End(FAILED, f"the launch {'failed' if run.outcome == 'failed' else 'hangs'}")
    if run.outcome == "stopped":
        fine = until == "failed" or (until == "ready" and run.ready is not None)
        return End(READY if fine else FAILED, "the launch was stopped")
    if until == "ready" and run.ready is not None:
        return End(READY, "the server is ready")
    if until == "serving" and run.ready is not None and run.counts["decode_batch"]:
        return End(READY, "the server answers requests")
    return End(READY if run.ready is not None else FAILED)


def alarming(report: RunReport | None, bar: Severity | None) -> Finding | None:
    """The finding that foretells a failure, or tells of wrong answers, at or above a bar."""
    if report is None or bar is None or report.run.outcome in _OVER:
        return None
    for finding in report.findings:
        foretells = finding.role in ("precursor", "root_cause") or finding.severity == "critical"
        high = SEVERITIES.index(finding.severity) >= SEVERITIES.index(bar)
        if foretells and high and finding.role != "consequence":
            return finding
    return None


def last_lines(report: RunReport, most: int = 10) -> list[str]:
    """The first lines of the last records, for an end that no finding explains."""
    return [event.text.split("\n", 1)[0] for event in report.run.events[-most:]]
