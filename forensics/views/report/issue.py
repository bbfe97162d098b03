"""A report as the body of a bug report: SGLang's own headings, within GitHub's size."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

from forensics.views.report.content import Quote, Report
from forensics.views.report.render_markdown import render

MOST_CHARACTERS = 60_000
"""GitHub takes 65,536 characters; the rest is for what people add."""

TRIMMED = "*Evidence was left out to fit into one issue; the log has the rest.*"


def render_issue(report: Report, most: int = MOST_CHARACTERS) -> str:
    """The body; evidence is left out, the least important first, until it fits."""
    text = _drawn(report, "")
    for cut in _CUTS:
        if len(text) <= most:
            return text
        report = copy.deepcopy(report)
        cut(report)
        text = _drawn(report, TRIMMED)
    return text if len(text) <= most else _ended(text, most)


def _drawn(report: Report, trimmed: str) -> str:
    return render(report, "issue.md.jinja", None, trimmed=trimmed)


def _short(lines: Sequence[Quote], most: int, room: int) -> list[Quote]:
    return [Quote(line.place, line.text[:room]) for line in lines[:most]]


def _shorten_exhibits(report: Report) -> None:
    for exhibit in report.appendix:
        exhibit.lines = _short(exhibit.lines, 3, 240)


def _drop_lesser(report: Report) -> None:
    report.appendix = report.appendix[:4]


def _drop_appendix(report: Report) -> None:
    report.appendix = []


def _shorten_rest(report: Report) -> None:
    report.ruled_out = report.ruled_out[:6]
    report.earlier, report.risks = report.earlier[:4], report.risks[:4]
    report.vain, report.coverage = report.vain[:6], report.coverage[:4]
    report.impact, report.environment = report.impact[:8], report.environment[:12]
    if report.memory:
        report.memory.rows = report.memory.rows[:8]
    if report.timeline:
        report.timeline.rows = report.timeline.rows[:20]


def _shorten_cause(report: Report) -> None:
    if report.cause:
        report.cause.lines = _short(report.cause.lines, 4, 240)
        report.cause.paragraphs = [text[:2_000] for text in report.cause.paragraphs[:4]]
    report.failed_command = [line[:200] for line in report.failed_command[:60]]
    report.changes = report.changes[:3]


_CUTS: tuple[Callable[[Report], None], ...] = (
    _shorten_exhibits,
    _drop_lesser,
    _drop_appendix,
    _shorten_rest,
    _shorten_cause,
)
"""Each leaves out more than the one before."""


def _ended(text: str, most: int) -> str:
    """The last resort: whole lines from the start, no block of code left open."""
    kept = text[: most - 200].rpartition("\n")[0]
    marks = [line for line in kept.split("\n") if line.startswith("```")]
    fence = f"\n{'`' * (len(marks[-1]) - len(marks[-1].lstrip('`')))}" if len(marks) % 2 else ""
    return f"{kept}{fence}\n\n{TRIMMED}\n"
