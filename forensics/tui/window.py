"""The part of the axis that the lanes show: zoom, pan, follow."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

LEAST = timedelta(seconds=2)
"""The closest zoom: two seconds, or two lines."""


@dataclass(frozen=True, slots=True)
class Window:
    """From `begin` to `end`, within a run that goes from `first` to `last`."""

    first: datetime
    last: datetime
    begin: datetime
    end: datetime

    @classmethod
    def over(cls, first: datetime, last: datetime) -> Window:
        """The whole run."""
        return cls(first, last, first, last)

    @property
    def whole(self) -> bool:
        """Whether nothing is cut off."""
        return self.begin <= self.first and self.end >= self.last

    def zoomed(self, factor: float, about: datetime | None = None) -> Window:
        """Closer by a factor (below 1: farther), keeping a place where it is."""
        span = self.end - self.begin
        whole = self.last - self.first
        wanted = min(max(span / factor, min(LEAST, whole)), whole)
        about = about if about is not None and self.begin <= about <= self.end else None
        about = about or self.begin + span / 2
        share = (about - self.begin) / span if span else 0.5
        return self._from(about - wanted * share, wanted)

    def panned(self, share: float) -> Window:
        """Moved by a share of its own width."""
        span = self.end - self.begin
        return self._from(self.begin + span * share, span)

    def showing(self, at: datetime) -> Window:
        """The same width, with a place in it."""
        if self.begin <= at <= self.end:
            return self
        span = self.end - self.begin
        return self._from(at - span / 2, span)

    def grown(self, first: datetime, last: datetime) -> Window:
        """The window after the run has grown: the whole stays the whole, an end follows."""
        if self.whole:
            return Window.over(first, last)
        span = self.end - self.begin
        moved = replace(self, first=first, last=last)
        return moved._from(last - span, span) if self.end >= self.last else moved

    def _from(self, begin: datetime, span: timedelta) -> Window:
        latest = self.last - span
        begin = max(min(begin, latest), self.first)
        return replace(self, begin=begin, end=begin + span)
