"""A watch with a clock that stands until it is moved."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from forensics.findings import Severity
from forensics.live.ending import Until
from forensics.live.notices import Notice
from forensics.live.session import Session
from forensics.live.watch import Goal, Watch

FIXTURES = Path(__file__).parents[2] / "fixtures"


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Watched:
    """A watch with a clock of its own and everything it told."""

    def __init__(self, goal: Goal, paths: tuple[str, ...] = ("log",)) -> None:
        self.clock = Clock()
        self.told: list[Notice] = []
        self.session = Session(paths)
        self.watch = Watch(self.session, goal, self.told.append, clock=self.clock)

    def of(self, kind: type) -> list[Notice]:
        return [notice for notice in self.told if isinstance(notice, kind)]


Make = Callable[..., Watched]


@pytest.fixture
def watched() -> Make:
    """Makes a watch with a goal."""

    def make(
        until: Until = "ready", fail_on: Severity | None = "critical", **more: object
    ) -> Watched:
        return Watched(Goal(until, fail_on, **more))  # type: ignore[arg-type]

    return make
