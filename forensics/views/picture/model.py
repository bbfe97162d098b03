"""The small picture of a run as data: lanes of ranks on one axis, free memory, marks.

Places on the axis are datetimes. A log without times is drawn by its lines: line `n` stands at
`LINE_ZERO + n seconds`, and `Picture.axis` says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from forensics.findings import Role, Severity

Axis = Literal["time", "undated", "line"]
"""`time`: the log's clock; `undated`: a clock without a date; `line`: lines, for want of times."""

LINE_ZERO = datetime(1, 1, 1)


@dataclass(frozen=True, slots=True)
class Block:
    """A phase of a rank (`forensics.events.PHASES`), from its begin to that of the next."""

    phase: str
    begin: datetime
    end: datetime


@dataclass(frozen=True, slots=True)
class FreePoint:
    """Free memory of the rank's GPU, GiB, as a line of the log says it."""

    at: datetime
    free_gib: float
    line: int


@dataclass(frozen=True, slots=True)
class Mark:
    """Something found. `finding`: where its cause stands; `known`: the line at which it could be
    known; `crash`: a process failed."""

    at: datetime
    kind: Literal["finding", "known", "crash"]
    severity: Severity
    role: Role
    finding_id: str | None
    line: int
    source: int = 0


@dataclass(frozen=True, slots=True)
class Lane:
    """One rank; `rank` is None where a launch on one GPU prints no tags."""

    rank: str | None
    group: str
    """What it folds into: the source, the `DP`/`PP` part of its tag; empty if all are one group."""
    blocks: tuple[Block, ...]
    free: tuple[FreePoint, ...]
    total_gib: float | None
    """Memory of the GPU; what was free at first where the log does not tell the total."""
    marks: tuple[Mark, ...]
    source: int = 0

    def phase_at(self, at: datetime) -> str | None:
        """The phase at a place of the axis, None outside the lane."""
        for block in reversed(self.blocks):
            if block.begin <= at:
                return block.phase if at <= block.end else None
        return None


@dataclass(frozen=True, slots=True)
class Picture:
    """One run."""

    run: int
    begin: datetime
    end: datetime
    lanes: tuple[Lane, ...]
    crash_at: datetime | None
    """The first failure of a run that failed or hangs."""
    axis: Axis = "time"
    phases: tuple[Block, ...] = ()
    """The launch as a whole: each phase from where the first rank came to it."""
    marks: tuple[Mark, ...] = ()
    """Findings and precursors that concern no single rank."""

    def label(self, at: datetime) -> str:
        """A place of the axis in words: `23:47:17`, with the date in runs of days; `line 120`."""
        if self.axis == "line":
            return f"line {line_of(at)}"
        long = self.axis == "time" and self.end - self.begin > timedelta(hours=24)
        return f"{at:%m-%d %H:%M}" if long else f"{at:%H:%M:%S}"


def line_of(at: datetime) -> int:
    """The line that stands at a place of an axis of lines."""
    return round((at - LINE_ZERO).total_seconds())
