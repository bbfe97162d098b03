"""Times of records: from the head, else from the wrapper, else the neighbour's.

SGLang prints local time without a zone. A wrapper (docker, kubernetes) may print another zone;
the shift between the two is learnt from lines that carry both, so that lines with a wrapper time
only can be placed on the log's own clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache

from forensics.events import Value

NO_DATE = 1900
"""Year of times whose log prints no date: durations are right, the date is unknown."""

_QUARTER_S = 900.0


@lru_cache(maxsize=4096)
def _full(date: str, clock: str) -> datetime | None:
    try:
        return datetime.fromisoformat(f"{date} {clock}")
    except ValueError:
        return None


class Clock:
    """The clock of one source: turns the texts of heads into times."""

    def __init__(self) -> None:
        self.now: datetime | None = None
        self._shift: timedelta | None = None

    def read(self, head: Mapping[str, Value] | None, wrapper: datetime | None) -> datetime | None:
        """The time of a record; without one of its own it takes the neighbour's."""
        own = self._own(head) if head else None
        outer = wrapper.replace(tzinfo=None) if wrapper else None
        if own and outer and own.year != NO_DATE:
            quarters = round((own - outer).total_seconds() / _QUARTER_S)
            self._shift = timedelta(seconds=quarters * _QUARTER_S)
        if own is None and outer is not None and (self._shift is not None or self.now is None):
            own = outer + (self._shift or timedelta())
        if own is not None:
            self.now = own
        return self.now

    def _own(self, head: Mapping[str, Value]) -> datetime | None:
        clock = head.get("clock")
        if not isinstance(clock, str):
            return None
        if isinstance(date := head.get("date"), str):
            return _full(date, clock)
        if isinstance(day := head.get("month_day") or head.get("month_and_day"), str):
            return self._on_day(day.replace("-", "").zfill(4), clock)
        return self._undated(clock)

    def _on_day(self, month_day: str, clock: str) -> datetime | None:
        year = self.now.year if self.now else NO_DATE
        return _full(f"{year:04d}-{month_day[:2]}-{month_day[2:]}", clock)

    def _undated(self, clock: str) -> datetime | None:
        day = self.now.date().isoformat() if self.now else f"{NO_DATE}-01-01"
        time = _full(day, clock)
        if time and self.now and self.now - time > timedelta(hours=12):
            time += timedelta(days=1)
        return time
