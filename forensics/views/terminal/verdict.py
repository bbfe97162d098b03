"""The verdict: how the run ended and what to do, in a sentence each."""

from __future__ import annotations

from rich.text import Text

from forensics.diagnosis import RunReport
from forensics.findings import Finding
from forensics.views.changes import to_do
from forensics.views.clean import clean
from forensics.views.terminal.page import Page
from forensics.views.words import DOING, count, duration, ended

_BAD = {"failed": "FAILED", "hung": "HUNG", "degraded": "DEGRADED"}
_GOOD = {
    "ready": "READY",
    "serving": "SERVING",
    "stopped": "STOPPED in good order",
    "unknown": "UNFINISHED",
}


def draw_verdict(page: Page, report: RunReport, label: str = "") -> None:
    """What happened, and the fix."""
    word, style, rest = verdict_words(report)
    sentence = Text().append(word, style=style).append(clean(rest))
    if label:
        page.item(label, sentence, indent=0, label_style="bold")
    else:
        page.paragraph(sentence, indent=0)
    finding = main_finding(report)
    if finding and finding.remedies:
        fix = Text("Fix: ", style="bold green")
        fix.append(ended(to_do(finding.remedies[0])), style="not green")
        page.paragraph(fix, indent=len(label) + 2 if label else 0)


def main_finding(report: RunReport) -> Finding | None:
    """The root cause, else the first critical finding that is no echo."""
    critical = (
        finding
        for finding in report.findings
        if finding.severity == "critical" and finding.role != "consequence"
    )
    return report.root_cause or next(critical, None)


def verdict_words(report: RunReport) -> tuple[str, str, str]:
    """The word, its style and the rest of the sentence."""
    run, cause = report.run, report.root_cause
    doing = DOING.get(run.phase, run.phase)
    if run.outcome in _BAD:
        if cause is None:
            return _BAD[run.outcome], "bold red", f" while {doing}; no rule knows the cause."
        return _BAD[run.outcome], "bold red", f" while {doing}: {ended(cause.title)}"
    main = main_finding(report)
    if main:
        first = ended(main.title)
        if run.outcome == "unknown":
            return "ABOUT TO FAIL", "bold red", f" while {doing}: {first}"
        if run.outcome == "stopped" and run.ready is None:
            return "STOPPED", "bold yellow", f" while {doing}: {first}"
        return _GOOD.get(run.outcome, "DONE"), "bold yellow", f", but: {first}"
    if run.outcome == "unknown":
        ends = f": the log ends{_after(report)} while {doing}; {_summary(report, ' so far')}"
        return (
            "UNFINISHED",
            "bold yellow",
            f"{ends} If it still runs, `forensics watch` follows it.",
        )
    if run.outcome == "stopped" and run.ready is None:
        word = "STOPPED on request"
        return word, "bold yellow", f" while {doing}, before it was ready. {_summary(report)}"
    took = ""
    if run.ready and run.ready.time and run.started_at and run.outcome != "stopped":
        took = f" after {duration((run.ready.time - run.started_at).total_seconds())}"
        took = took if run.outcome == "ready" else f", ready{took}"
    return _GOOD.get(run.outcome, "DONE"), "bold green", f"{took}. {_summary(report)}"


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
