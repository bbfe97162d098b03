"""The result of the whole line: an incident, what the rules say of each run, and what was read.

Every view draws a `Diagnosis` and computes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forensics.findings import SEVERITIES, Finding, Severity, SkippedRule

if TYPE_CHECKING:
    from forensics.incident import Incident, Run
    from forensics.launch import DiffLine


@dataclass(slots=True)
class RunReport:
    """One run and what is said about it."""

    run: Run
    findings: list[Finding] = field(default_factory=list)
    """Most important first."""
    root_cause: Finding | None = None
    skipped: list[SkippedRule] = field(default_factory=list)
    new_command: list[str] | None = None
    """The launch with the first remedy applied, as an argument list; never for a shell."""
    new_env: dict[str, str] = field(default_factory=dict)
    """The variables of that launch."""
    remove_env: list[str] = field(default_factory=list)
    """Variables that the new launch must not have."""
    diff: list[DiffLine] = field(default_factory=list)
    """From the old launch to the new one."""
    not_repeated: list[str] = field(default_factory=list)
    """Flags of the old launch that the new command leaves to SGLang, which may have set them."""
    reproduce: list[str] | None = None
    """The command line of this program that tries the fix, where one can be tried."""

    def with_role(self, role: str) -> list[Finding]:
        """The findings of a role, most important first."""
        return [finding for finding in self.findings if finding.role == role]


@dataclass(slots=True)
class Coverage:
    """How much of the input was understood."""

    lines: int = 0
    recognised: int = 0
    ranks: list[str] = field(default_factory=list)
    phases: list[str] = field(default_factory=list)
    release: str | None = None
    skipped: list[str] = field(default_factory=list)
    """Inputs that were not read or not read whole, each with the reason."""
    unknown_shapes: list[tuple[str, int]] = field(default_factory=list)
    """Lines that no rule knows, numbers masked, and how often each came; most frequent first."""

    @property
    def share(self) -> float:
        """Recognised share of the lines, 0 to 1."""
        return self.recognised / self.lines if self.lines else 0.0


@dataclass(slots=True)
class Diagnosis:
    """What was read and what is said about it."""

    incident: Incident
    reports: list[RunReport] = field(default_factory=list)
    coverage: Coverage = field(default_factory=Coverage)

    def worst(self) -> Severity | None:
        """The highest severity of any finding, None where there is none."""
        found = {finding.severity for report in self.reports for finding in report.findings}
        return next((severity for severity in reversed(SEVERITIES) if severity in found), None)
