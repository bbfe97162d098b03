"""What a live session tells: one notice for each thing that changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from forensics.findings import Finding
from forensics.live.progress import RunState

READY, FAILED, USAGE, NOT_A_LOG, PRECURSOR, TIMED_OUT = 0, 1, 2, 3, 6, 7
"""Exit codes of the contract."""


@dataclass(frozen=True, slots=True)
class PhaseNotice:
    """A launch came to another phase."""

    run: int
    phase: str
    ranks: dict[str, str]
    """Phase of each rank."""


@dataclass(frozen=True, slots=True)
class ProgressNotice:
    """How far a launch is."""

    state: RunState


@dataclass(frozen=True, slots=True)
class FindingNotice:
    """A finding appeared or got better; its `id` stays the same."""

    run: int
    finding: Finding
    changed: tuple[str, ...] = ()
    """The fields that changed; empty when it is new."""

    @property
    def updated(self) -> bool:
        """Whether it was told before."""
        return bool(self.changed)


@dataclass(frozen=True, slots=True)
class WithdrawnNotice:
    """A finding no longer holds."""

    run: int
    finding: Finding
    because: str


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about the watching itself: a file rotated, a hook failed."""

    text: str


@dataclass(slots=True)
class Verdict:
    """How it ended, or why the waiting is over."""

    outcome: str
    phase: str
    exit_code: int
    because: str
    """Why the waiting ended, in words."""
    run: int | None = None
    root_cause: Finding | None = None
    finding: Finding | None = None
    """The finding that ended the waiting, if one did."""
    new_command: list[str] | None = None
    new_env: dict[str, str] = field(default_factory=dict)
    remove_env: list[str] = field(default_factory=list)
    command_status: int | None = None
    """Exit status of the command that was run; minus the signal's number if one ended it."""
    log: str | None = None
    """Where the log of the command is kept."""
    last_lines: list[str] = field(default_factory=list)
    """The last lines, where no finding explains the end."""


Notice: TypeAlias = (
    PhaseNotice | ProgressNotice | FindingNotice | WithdrawnNotice | Remark | Verdict
)
