"""Which lines a run's findings rest on, and how the panes sign them: never by colour alone."""

from __future__ import annotations

from dataclasses import dataclass

from forensics.findings import Finding
from forensics.tui.model import Loaded

SIGNS = {"cause": "X", "critical": "x", "warning": "!", "info": "i", "evidence": "*"}
"""The sign of each mark; its meaning stands in the help."""

MEANING = {
    "cause": "first line of the cause",
    "critical": "an error, or a critical finding",
    "warning": "a warning",
    "info": "a note",
    "evidence": "evidence of the finding shown",
}

_RANK = ("info", "warning", "critical", "evidence", "cause")


@dataclass(frozen=True, slots=True)
class Marks:
    """The mark of each line that has one, by source and line."""

    of_line: dict[tuple[int, int], str]

    def get(self, source: int, line: int, severity: str | None = None) -> str | None:
        """The mark of a line, or what the line itself says of its severity."""
        mark = self.of_line.get((source, line))
        known = [one for one in (mark, severity) if one is not None]
        return max(known, key=_RANK.index, default=None)


NONE = Marks({})


def marks_of(loaded: Loaded, run_index: int, chosen: str | None = None) -> Marks:
    """The marks of a run; `chosen` is the finding whose evidence is signed."""
    found: dict[tuple[int, int], str] = {}

    def put(source: int, line: int, mark: str) -> None:
        known = found.get((source, line))
        if known is None or _RANK.index(mark) > _RANK.index(known):
            found[source, line] = mark

    report = loaded.report(run_index)
    for finding in report.findings:
        cause = finding is report.root_cause
        mark = "cause" if cause else finding.severity
        put(loaded.source_of(finding.first.source), finding.first.line, mark)
        if finding.id == chosen or (chosen is None and cause):
            for place in finding.evidence:
                put(loaded.source_of(place.source), place.line, "evidence")
    return Marks(found)


def places_of(loaded: Loaded, finding: Finding) -> list[tuple[int, int]]:
    """Source and line of the evidence of a finding, in its order."""
    return [(loaded.source_of(place.source), place.line) for place in finding.evidence]
