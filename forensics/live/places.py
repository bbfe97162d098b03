"""Line numbers of files that were rotated or truncated while they were followed.

A session counts the lines of a source on and on. People look them up in the file that is there
now, whose lines begin anew; what stood before is in another file, or gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from forensics.diagnosis import Diagnosis
from forensics.findings import Finding, Place


class Places:
    """Turns the line numbers of a session into those of the files that are there now."""

    def __init__(self, paths: Sequence[str]) -> None:
        self._began: dict[str, list[int]] = {path: [] for path in paths}

    def rotated(self, path: str, lines: int) -> None:
        """The file of a source begins anew after so many lines."""
        self._began[path].append(lines)

    def relocate(self, diagnosis: Diagnosis) -> None:
        """Set the places of all findings."""
        if any(self._began.values()):
            for report in diagnosis.reports:
                for finding in report.findings:
                    self.move(finding)

    def move(self, finding: Finding) -> None:
        """Set the places of one finding."""
        for place in _places(finding):
            before = [lines for lines in self._began.get(place.source, ()) if lines < place.line]
            behind = len(self._began.get(place.source, ())) - len(before)
            place.line -= before[-1] if before else 0
            if behind:
                place.source = f"{place.source} (rotated away {behind} time{'s' * (behind > 1)})"


def _places(finding: Finding) -> Iterable[Place]:
    # A finding may use one place twice; it is to be moved once.
    places = [finding.first, finding.known_at, *finding.evidence]
    return {id(place): place for place in places}.values()
