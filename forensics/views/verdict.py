"""The verdict on a run: how it ended, in a word and a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from forensics.diagnosis import RunReport
from forensics.findings import Finding
from forensics.views.words import DOING, count, duration, ended

Tone = Literal["bad", "warn", "good"]

_BAD = {"failed": "FAILED", "hung": "HUNG", "degraded": "DEGRADED"}
_GOOD = {
    "ready": "READY",
    "serving": "SERVING",
    "stopped": "STOPPED in good order",
    "unknown": "UNFINISHED",
}


def in_full(reports: Sequence[RunReport]) -> RunReport | None:
    """The run that matters most: the last that failed, else the last."""
    bad = [report for report in reports if report.run.outcome in _BAD]
    return bad[-1] if bad else reports[-1] if reports else None


def main_finding(report: RunReport) -> Finding | None:
    """The root cause, else the first critical finding that is no echo."""
    critical = (
        finding
        for finding in report.findings
        if finding.severity == "critical" and finding.role != "consequence"
    )
    return report.root_cause or next(critical, None)


def verdict_words(report: RunReport) -> tuple[str, Tone, str]:
    """How a run ended: a word, whether that is good, and the rest of the sentence."""
    run, cause = report.run, report.root_cause
    doing = DOING.get(run.phase, run.phase)
    if run.outcome in _BAD:
        if cause is None:
            return _BAD[run.outcome], "bad", f" while {doing}; no rule knows the cause."
        return _BAD[run.outcome], "bad", f" while {doing}: {ended(cause.title)}"
    main = main_finding(report)
    if main:
        first = ended(main.title)
        if run.outcome == "unknown":
            return "ABOUT TO FAIL", "bad", f" while {doing}: {first}"
        if run.outcome == "stopped" and run.ready is None:
            return "STOPPED", "warn", f" while {doing}: {first}"
        return _GOOD.get(run.outcome, "DONE"), "warn", f", but: {first}"
    if run.outcome == "unknown":
        ends = f": the log ends{_after(report)} while {doing}; {_summary(report, ' so far')}"
        return (
            "UNFINISHED",
            "warn",
            f"{ends} If it still runs, `forensics watch` follows it.",
        )
    if run.outcome == "stopped" and run.ready is None:
        word = "STOPPED on request"
        return word, "warn", f" while {doing}, before it was ready. {_summary(report)}"
    took = ""
    if run.ready and run.ready.time and run.started_at and run.outcome != "stopped":
        seconds = (run.ready.time - run.started_at).total_seconds()
        after = f" after {duration(seconds)}" if seconds >= 0 else ""
        took = after if run.outcome == "ready" or not after else f", ready{after}"
    return _GOOD.get(run.outcome, "DONE"), "good", f"{took}. {_summary(report)}"


def _summary(report: RunReport, so_far: str = "") -> str:
    warnings = [finding for finding in report.findings if finding.severity == "warning"]
    if not warnings:
        return f"nothing is wrong{so_far}." if so_far else "No problem found."
    first = ", first" if len(warnings) > 1 else ""
    return f"{count(len(warnings), 'warning')}{so_far}{first}: {ended(warnings[0].title)}"


def _after(report: RunReport) -> str:
    """How long the launch had run when its log ended, where that is known."""
    begin, end = report.run.started_at, report.run.ended_at
    seconds = (end - begin).total_seconds() if begin and end else 0.0
    return f" after {duration(seconds)}" if seconds >= 1 else ""
