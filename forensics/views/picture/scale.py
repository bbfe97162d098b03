"""From places on the axis of a picture to columns of text, and back.

A launch of six minutes fails within seconds of its last step: drawn true to time those seconds
would be less than a column. So every phase gets at least a few columns and the longer ones share
the rest; within a phase time runs evenly.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

from forensics.views.picture.model import Picture

LEAST = 8
"""Columns that a phase gets where there is room."""

_SECOND = timedelta(seconds=1)

Window = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True)
class Scale:
    """Columns 0 to `width` over the axis."""

    width: int
    times: tuple[datetime, ...]
    """Where the parts begin, and where the last one ends."""
    edges: tuple[float, ...]
    """The column at which each of them stands."""
    even: bool
    """Time runs evenly over all columns."""

    @property
    def begin(self) -> datetime:
        """What the first column begins with."""
        return self.times[0]

    @property
    def end(self) -> datetime:
        """What the last column ends with."""
        return self.times[-1]

    def at(self, column: float) -> datetime:
        """The place where a column begins."""
        part = min(max(bisect_right(self.edges, column) - 1, 0), len(self.times) - 2)
        left, right = self.edges[part], self.edges[part + 1]
        share = (column - left) / (right - left) if right > left else 0.0
        return self.times[part] + (self.times[part + 1] - self.times[part]) * share

    def column(self, at: datetime) -> int:
        """The column that holds a place; the first or last one for what lies outside."""
        part = min(max(bisect_right(self.times, at) - 1, 0), len(self.times) - 2)
        span = self.times[part + 1] - self.times[part]
        share = (at - self.times[part]) / span if span else 0.0
        place = self.edges[part] + share * (self.edges[part + 1] - self.edges[part])
        return min(max(int(place + 1e-6), 0), self.width - 1)

    def shows(self, at: datetime) -> bool:
        """Whether a place lies in the window."""
        return self.begin <= at <= self.end


def scale_of(picture: Picture, width: int, window: Window | None = None) -> Scale:
    """The scale of a picture, or of a part of it, over so many columns (at least one)."""
    begin, end = window or (picture.begin, picture.end)
    end = max(end, begin + _SECOND)
    inner = sorted({b.begin for b in picture.phases if begin < b.begin < end})
    times = [begin, *inner, end]
    spans = [(two - one).total_seconds() for one, two in pairwise(times)]
    widths = _widths(spans, max(width, 1))
    edges = [0.0]
    for columns in widths:
        edges.append(edges[-1] + columns)
    edges[-1] = float(max(width, 1))
    even = _is_even(spans, widths)
    return Scale(max(width, 1), tuple(times), tuple(edges), even)


def _widths(spans: list[float], width: int) -> list[float]:
    """Columns of each part: at least a few, the long ones in proportion."""
    least = min(float(LEAST), width / len(spans))
    short: set[int] = set()
    while True:
        room = width - least * len(short)
        left = sum(span for index, span in enumerate(spans) if index not in short) or 1.0
        grown = {i for i, span in enumerate(spans) if span / left * room < least} | short
        if grown == short or len(grown) == len(spans):
            break
        short = grown
    widths = [least if i in short else span / left * room for i, span in enumerate(spans)]
    # Whole columns: a phase begins with a column of its own.
    edges = [round(sum(widths[:number])) for number in range(len(widths) + 1)]
    return [float(two - one) for one, two in pairwise(edges)]


def _is_even(spans: list[float], widths: list[float]) -> bool:
    total, width = sum(spans), sum(widths)
    return all(abs(s / total * width - w) < 1.5 for s, w in zip(spans, widths, strict=True))
