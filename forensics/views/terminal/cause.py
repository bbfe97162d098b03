"""A finding in full: what it is, the arithmetic, and the lines that prove it."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass

from rich.text import Text

from forensics.diagnosis import RunReport
from forensics.findings import Evidence, Finding
from forensics.views.clean import one_line, window
from forensics.views.terminal.page import Page
from forensics.views.words import Places

_MOST_LINES = 6
_ROWS = 2
_ARITHMETIC = "Arithmetic (GiB): "
"""Begins the steps of arithmetic, parted by semicolons, at the end of an explanation."""
_WRAP_LOSS = 14
_PREFIX = re.compile(r"^\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,\d]*(?: ([^\]]*))?\]\s*")
_FIGURES = re.compile(r"\d+\.\d+|\b\d{2,}\b|'[\w./-]+'|\b\w+(?:Error|Exception)\b")
_ERROR = re.compile(r"\b[\w.]*(?:Error|Exception)\b")


@dataclass
class _Line:
    """An evidence line and how many others read the same."""

    evidence: Evidence
    text: str
    rank: str = ""
    alike: int = 0


def draw_finding(page: Page, finding: Finding, places: Places, verbose: bool) -> None:
    """The section of the cause."""
    page.heading("Cause" if finding.role == "root_cause" else "Finding", _attributes(finding))
    draw_explanation(page, finding)
    page.blank()
    draw_evidence(page, finding, places, verbose)


def draw_explanation(page: Page, finding: Finding, indent: int = 2) -> None:
    """The explanation: its lines are paragraphs, steps of arithmetic stand one below another."""
    text, _, arithmetic = finding.explanation.partition(_ARITHMETIC)
    for paragraph in text.splitlines():
        page.paragraph(paragraph, indent)
    if arithmetic:
        page.blank()
        page.paragraph(_ARITHMETIC.strip(), indent)
    for step in arithmetic.rstrip(". \n").split("; ") if arithmetic else ():
        page.item("-", step, indent)


def draw_failure(page: Page, report: RunReport, places: Places) -> None:
    """The first failure of a run whose cause no rule knows: where to begin reading."""
    if not report.run.failures:
        return
    failure = report.run.failures[0]
    page.heading("First failure", "the place to begin reading")
    text, frame = one_line(failure.event.text), ""
    if failure.traceback and failure.traceback.chain:
        raised = failure.traceback.cause
        text = one_line(f"{raised.type}: {raised.message}")
        if raised.frames:
            frame = f" ({one_line(raised.frames[-1].short)})"
    place = places.at_line(failure.event.source, failure.line)
    text = window(text, 3 * (page.width - len(place) - 4) - _WRAP_LOSS)
    page.item(place, text + frame, label_style="cyan")


def draw_evidence(
    page: Page, finding: Finding, places: Places, verbose: bool, indent: int = 2
) -> None:
    """The evidence lines of a finding; lines that differ in their rank alone are one."""
    keys = _FIGURES.findall(f"{finding.title} {finding.explanation}")
    column = max((Text(places.at(item)).cell_len for item in finding.evidence), default=0)
    room = _ROWS * (page.width - column - indent - 2) - _WRAP_LOSS
    lines = _fold(finding.evidence, keys, sys.maxsize if verbose else room)
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


def _relevant(text: str, keys: list[str]) -> list[str]:
    """What to keep in sight of a long line: figures the finding quotes, else the error's name."""
    return [key for key in keys if key in text] or _ERROR.findall(text)


def _fold(evidence: list[Evidence], keys: list[str], room: int) -> list[_Line]:
    """The lines in order, cut to the room, without their log prefix; repeats counted."""
    lines: dict[tuple[str, str], _Line] = {}
    for item in evidence:
        whole = one_line(item.text)
        prefix = _PREFIX.match(whole)
        text = whole[prefix.end() :] if prefix else whole
        text = window(text, room, _relevant(text, keys))
        rank = (prefix[1] or "") if prefix else ""
        line = lines.setdefault((item.source, text), _Line(item, text, rank, -1))
        line.alike += 1
    return list(lines.values())
