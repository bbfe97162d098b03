"""How the screen is divided, by its size alone."""

from __future__ import annotations

from dataclasses import dataclass

PAGES = ("detail", "events", "raw", "memory", "serving")
"""The pages below the lanes, in the order of their keys."""

TITLES = {
    "detail": "Finding",
    "events": "Events",
    "raw": "Log",
    "memory": "Memory",
    "serving": "Serving",
}

_WIDE, _TALL = 120, 32
_AROUND_LANES = 3
_LEAST_PANE = 9
_OTHER_LINES = 4
"""Trail, runs, tabs, footer."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What fits on a screen."""

    together: bool
    """Finding, events and log are seen side by side; else one at a time."""
    lanes: int
    """Lanes that are seen at once."""


def layout_of(width: int, height: int) -> Layout:
    """The layout of a screen of so many cells."""
    together = width >= _WIDE and height >= _TALL
    left = height - _OTHER_LINES - _AROUND_LANES
    pane = max(_LEAST_PANE, (left * 3) // 5) if together else _LEAST_PANE
    return Layout(together, max(min(left - pane, 24), 1))


def shown(page: str, together: bool) -> set[str]:
    """The panes that are seen when a page is chosen."""
    side_by_side = {"detail", "events", "raw"}
    return side_by_side if together and page in side_by_side else {page}
