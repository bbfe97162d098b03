"""What a reproduction tells while it runs: one notice for each thing that happened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from forensics.live.notices import Notice as LiveNotice
from forensics.reproduce.model import Goal, Reproduction, TrialPlan, TrialResult


@dataclass(frozen=True, slots=True)
class TrialBegan:
    """A launch is being made."""

    trial: TrialPlan
    number: int
    """1 for the first one of the plan."""
    of: int
    """Trials in the plan; a search may add to them."""
    log: str
    """Where its log is kept."""


@dataclass(frozen=True, slots=True)
class Heard:
    """Something about the launch at work: a phase, progress, a finding."""

    trial: str
    notice: LiveNotice


@dataclass(frozen=True, slots=True)
class ProbeBegan:
    """The server is ready and is being asked."""

    trial: str
    goal: Goal


@dataclass(frozen=True, slots=True)
class Decided:
    """A trial is decided; its processes are being ended."""

    trial: str
    outcome: str
    because: str


@dataclass(frozen=True, slots=True)
class TrialEnded:
    """A trial is over, with nothing of it left. `kept`: its result was there from an earlier run
    of the same plan."""

    result: TrialResult
    kept: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """The verdict stands before all trials were made: why the others are left out."""

    because: str
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Over:
    """The verdict, as written to the folder."""

    reproduction: Reproduction


Notice: TypeAlias = TrialBegan | Heard | ProbeBegan | Decided | TrialEnded | Settled | Over

Tell = Callable[[Notice], None]


def nobody(notice: Notice) -> None:
    """Tells nobody."""
