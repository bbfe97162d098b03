"""When to judge: at once where it matters, else rarely, never for more than a share of the time.

Judging looks at everything that was read, so it cannot be done for each line. It draws on a
credit that grows with time; what is urgent may overdraw it a little.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from forensics.events import OTHER, Event
from forensics.incident.outcome import CRASHES, STOPS
from forensics.timeline import ROUTINE
from forensics.timeline.runs import ENDS

STARTING_SHARE, SERVING_SHARE = 0.05, 0.004
"""Share of one core that judging may take, while a launch starts and while it serves."""

SERVING_EVERY_S = 20.0
"""Routine lines of a serving launch are judged no more often than this."""

_SAVINGS_S = 1.0
_FAILURES = CRASHES | STOPS | ENDS | {"health_check_failed"}
_VITAL_KINDS = frozenset({"ready", "capture_begin"})
_PROGRESS = ROUTINE | {OTHER}


class Urgency(IntEnum):
    """How soon a line asks to be judged."""

    routine = 0
    soon = 1
    """A step of the start: as soon as the credit allows."""
    vital = 2
    """A line that foretells how it ends: now."""
    failure = 3
    """A line that tells of a failure or an end: now."""


def urgency_of(events: Iterable[Event], *, serving: bool) -> Urgency:
    """The highest urgency of some new lines."""
    highest = Urgency.routine
    for event in events:
        if event.kind in _FAILURES or event.traceback is not None or _is_error(event):
            return Urgency.failure
        if event.kind in _VITAL_KINDS:
            highest = Urgency.vital
        elif not serving and event.kind not in _PROGRESS and not event.kind.endswith("_progress"):
            highest = max(highest, Urgency.soon)
    return highest


def _is_error(event: Event) -> bool:
    return event.level in ("ERROR", "CRITICAL", "FATAL")


class Pacer:
    """Says when judging is due; times are seconds of a steady clock."""

    def __init__(self, now: float) -> None:
        self._credit_s = _SAVINGS_S
        self._at = now
        self._judged_at = float("-inf")
        self._cost_s = 0.0
        self.waiting: Urgency | None = None
        """The highest urgency of the lines that were not judged yet."""

    def heard(self, urgency: Urgency) -> None:
        """New lines came."""
        self.waiting = urgency if self.waiting is None else max(self.waiting, urgency)

    def due(self, now: float, *, serving: bool) -> bool:
        """Whether to judge now."""
        share = SERVING_SHARE if serving else STARTING_SHARE
        self._credit_s = min(self._credit_s + (now - self._at) * share, _SAVINGS_S)
        self._at = now
        if self.waiting is None:
            return False
        if self.waiting >= Urgency.vital:
            return self._credit_s > -_SAVINGS_S
        if self.waiting is Urgency.soon:
            return self._credit_s > 0.0
        every = SERVING_EVERY_S if serving else 20 * self._cost_s
        affordable = self._credit_s >= min(self._cost_s, _SAVINGS_S)
        return affordable and now - self._judged_at >= every

    def judged(self, now: float, cost_s: float) -> None:
        """Judging ended now and took so long."""
        self._credit_s -= cost_s
        self._judged_at, self._cost_s, self.waiting = now, cost_s, None
