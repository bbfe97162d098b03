"""Whether enough of a log was understood for the silence of the other rules to mean anything."""

from __future__ import annotations

import os
from collections.abc import Iterator

from forensics.events import OTHER, Event
from forensics.findings import Finding
from forensics.incident import SourceFacts
from forensics.rules.base import Skip, rule
from forensics.rules.case import Case
from forensics.rules.thresholds import threshold

SHARE = threshold(
    "low_coverage_share",
    0.8,
    "of the lines",
    "A log of which less was understood gets the finding low-coverage",
    most=1.0,
)
LINES = threshold(
    "low_coverage_lines", 50, "lines", "So many unknown lines it takes for that, however short"
)
_SHAPES = 3
_SHAPE_CHARS = 90


@rule(
    "low-coverage",
    class_="none",
    severity="warning",
    role="context",
    summary="Too little of a log was understood for silence to be an all-clear",
    needs="a log with many lines that no rule of the grammar knows",
)
def low_coverage(case: Case) -> Iterator[Finding | Skip]:
    """Hold the recognised share of each log against the least; said once, of its last run."""
    for index in case.run.sources:
        source = case.incident.sources[index]
        later = any(
            index in run.sources and run.number > case.run.number for run in case.incident.runs
        )
        written = source.lines - source.blank_lines
        unknown = written - source.recognised_lines
        if later or not source.is_log or unknown < case.threshold(LINES):
            continue
        if source.recognised_lines < case.threshold(SHARE) * written:
            events = [event for event in case.run.events if event.source == index]
            others = [event for event in events if event.kind == OTHER]
            if events:
                yield _finding(case, source, others or events[:1], unknown / written)


def _finding(case: Case, source: SourceFacts, events: list[Event], share: float) -> Finding:
    name = os.path.basename(source.path) or source.path
    shapes = [
        f"{text[:_SHAPE_CHARS]!r} ({count})" for text, count in source.unknown_shapes[:_SHAPES]
    ]
    frequent = f" Most frequent, numbers masked: {'; '.join(shapes)}." if shapes else ""
    return case.finding(
        "low-coverage",
        "none",
        events[0],
        severity="warning",
        role="context",
        title=f"Only {1 - share:.0%} of {name} was understood",
        explanation=f"{share:.0%} of its lines have a form that the tool does not know, so what "
        f"they say was not judged: no finding about them is no all-clear.{frequent} "
        "`forensics coverage` lists them.",
        evidence=case.evidence(*events[:3]),
        known_at=case.known(events[0]),
        rank=None,
        facts={
            "recognised_share": round(1 - share, 4),
            "unknown_shapes": [
                {"shape": text, "count": count} for text, count in source.unknown_shapes
            ],
        },
    )
