"""A session: sources that grow, and the diagnosis of what was read so far, at any moment."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence

from forensics.diagnosis import Diagnosis
from forensics.events import Event
from forensics.incident import Incident, IncidentBuilder
from forensics.incident.rows import RowStore
from forensics.live.source import LiveSource
from forensics.pipeline import diagnose
from forensics.rules import Settings, registry

_ROWS = 15_000
"""Rows of routine lines that are kept: an hour by the second, a day by the minute. Few, so that
judging stays cheap and memory flat."""

Enrich = Callable[[Incident], None]
"""Adds to an incident what is known from elsewhere, before it is judged."""


class Session:
    """The line of `analyze`, fed in small pieces.

    A snapshot equals what `analyze` gives for the whole lines fed so far; parts of a line of a
    container runtime count once they are joined. A snapshot shares its events with the session:
    it is for use before the next `feed`.
    """

    def __init__(
        self, paths: Sequence[str], settings: Settings | None = None, enrich: Enrich | None = None
    ) -> None:
        self.sources = [LiveSource(index, path) for index, path in enumerate(paths)]
        self._settings = settings or Settings()
        self._enrich = enrich
        facts = [source.facts for source in self.sources]
        self._builder = IncidentBuilder(facts, [], {}, RowStore(limit=_ROWS))
        registry()  # loads the rules now, not when the first line is to be judged

    def feed(self, source: int, data: bytes) -> list[Event]:
        """Take bytes of a source; returns the events that begin in them."""
        return self.sources[source].feed(data, self._builder)

    def end(self, source: int) -> None:
        """A source is over."""
        self.sources[source].end(self._builder)

    def snapshot(self) -> Diagnosis:
        """The diagnosis of everything read so far."""
        fork = self._builder.fork()
        unknown: Counter[str] = Counter()
        for source in self.sources:
            unknown.update(source.look_ahead(fork))
        incident = fork.build()
        if self._enrich:
            self._enrich(incident)
        return diagnose(incident, unknown, self._settings)

    def lines(self, source: int) -> int:
        """The whole lines of a source so far."""
        return self.sources[source].lines

    def nothing_read(self) -> str:
        """Why nothing at all was read, as the end of a sentence; empty if something was."""
        if any(source.facts.bytes for source in self.sources):
            return ""
        missing = [source.facts.path for source in self.sources]
        missing = [path for path in missing if path != "-" and not os.path.exists(path)]
        why = f"there is no {missing[0]} yet" if missing else "nothing was written"
        return f": {why}"

    @property
    def is_log(self) -> bool:
        """Whether the last snapshot recognised anything."""
        return any(source.facts.is_log for source in self.sources)
