"""The lines that prove a finding, and its explanation taken apart."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from forensics.diagnosis import RunReport
from forensics.findings import Evidence, Finding
from forensics.views.clean import one_line, window
from forensics.views.words import sentence

if TYPE_CHECKING:
    from forensics.incident import Failure

ARITHMETIC = "Arithmetic (GiB):"
"""Begins the steps of arithmetic, parted by semicolons, at the end of an explanation."""

_PREFIX = re.compile(r"^\[\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d[.,\d]*(?: ([^\]]*))?\]\s*")
_FIGURES = re.compile(r"\d+\.\d+|\b\d{2,}\b|'[\w./-]+'|\b\w+(?:Error|Exception)\b")
_ERROR = re.compile(r"\b[\w.]*(?:Error|Exception)\b")


@dataclass(slots=True)
class Line:
    """An evidence line and how many others read the same."""

    evidence: Evidence
    text: str
    rank: str = ""
    alike: int = 0


def explained(finding: Finding) -> tuple[list[str], list[str]]:
    """The paragraphs of an explanation and the steps of its arithmetic."""
    text, _, arithmetic = finding.explanation.partition(ARITHMETIC)
    steps = arithmetic.strip().rstrip(". \n").split("; ") if arithmetic.strip() else []
    return [sentence(line) for line in text.strip().splitlines() if line.strip()], steps


def folded(finding: Finding, room: int) -> list[Line]:
    """The evidence in order, each cut to the room and without its log prefix; lines that differ
    in their rank alone are one.
    """
    keys = _FIGURES.findall(f"{finding.title} {finding.explanation}")
    lines: dict[tuple[str, str], Line] = {}
    for item in finding.evidence:
        whole = one_line(item.text)
        prefix = _PREFIX.match(whole)
        text = whole[prefix.end() :] if prefix else whole
        text = window(text, room, _relevant(text, keys))
        rank = (prefix[1] or "") if prefix else ""
        line = lines.setdefault((item.source, text), Line(item, text, rank, -1))
        line.alike += 1
    return list(lines.values())


def first_failure(report: RunReport) -> tuple[Failure, str, str] | None:
    """The first failure of a run, its exception or record, and its innermost frame if known."""
    if not report.run.failures:
        return None
    failure = report.run.failures[0]
    if failure.traceback and failure.traceback.chain:
        raised = failure.traceback.cause
        frame = one_line(raised.frames[-1].short) if raised.frames else ""
        return failure, one_line(f"{raised.type}: {raised.message}"), frame
    return failure, one_line(failure.event.text), ""


def _relevant(text: str, keys: list[str]) -> list[str]:
    """What to keep in sight of a long line: figures the finding quotes, else the error's name."""
    return [key for key in keys if key in text] or _ERROR.findall(text)
