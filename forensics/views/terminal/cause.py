"""A finding in full: what it is, the arithmetic, and the lines that prove it."""

from __future__ import annotations

import sys

from rich.text import Text

from forensics.diagnosis import RunReport
from forensics.findings import Finding
from forensics.views.clean import window
from forensics.views.evidence import ARITHMETIC, explained, first_failure, folded
from forensics.views.terminal.page import Page
from forensics.views.words import Places

_MOST_LINES = 6
_ROWS = 2
_WRAP_LOSS = 14
_LEAST_ROOM = 60


def draw_finding(page: Page, finding: Finding, places: Places, verbose: bool) -> None:
    """The section of the cause."""
    page.heading("Cause" if finding.role == "root_cause" else "Finding", _attributes(finding))
    draw_explanation(page, finding)
    page.blank()
    draw_evidence(page, finding, places, verbose)


def draw_explanation(page: Page, finding: Finding, indent: int = 2) -> None:
    """The explanation: its lines are paragraphs, steps of arithmetic stand one below another."""
    paragraphs, steps = explained(finding)
    for paragraph in paragraphs:
        page.paragraph(paragraph, indent)
    if steps:
        page.blank()
        page.paragraph(ARITHMETIC, indent)
    for step in steps:
        page.item("-", step, indent)


def draw_failure(page: Page, report: RunReport, places: Places) -> None:
    """The first failure of a run whose cause no rule knows: where to begin reading."""
    found = first_failure(report)
    if found is None:
        return
    failure, text, frame = found
    page.heading("First failure", "the place to begin reading")
    frame = f" ({frame})" if frame else ""
    place = places.at_line(failure.event.source, failure.line)
    text = window(text, 3 * (page.width - len(place) - 4) - _WRAP_LOSS)
    page.item(place, text + frame, label_style="cyan")


def draw_evidence(
    page: Page, finding: Finding, places: Places, verbose: bool, indent: int = 2
) -> None:
    """The evidence lines of a finding; lines that differ in their rank alone are one."""
    column = max((Text(places.at(item)).cell_len for item in finding.evidence), default=0)
    room = max(_ROWS * (page.width - column - indent - 2) - _WRAP_LOSS, _LEAST_ROOM)
    lines = folded(finding, sys.maxsize if verbose else room)
    shown = lines if verbose else lines[:_MOST_LINES]
    for line in shown:
        tail = f"  (and {line.alike} alike)" if line.alike else ""
        rank = f"{line.rank}: " if line.rank and not line.alike else ""
        body = Text(rank, style="dim").append(line.text, style="not dim").append(tail, style="dim")
        page.item(places.at(line.evidence).ljust(column), body, indent, label_style="cyan")
    if len(lines) > len(shown):
        page.paragraph(f"... {len(lines) - len(shown)} more (-v)", indent, "dim")


def _attributes(finding: Finding) -> str:
    rank = f" on {finding.rank}" if finding.rank else ""
    return f"{finding.rule}{rank}; {finding.severity}, confidence {finding.confidence}"
