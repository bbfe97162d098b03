"""Searching: hits are collected in a thread while the user goes from one to the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from forensics.tui.store import Criteria, EventStore, LinePlace, Rows
from forensics.tui.store.criteria import check


class Search:
    """One search at a time; `jump` is called on the UI thread with the hit to go to."""

    def __init__(self, store: EventStore, jump: Callable[[LinePlace], None]) -> None:
        self.text = ""
        """What is searched for; empty for nothing."""
        self.within = Criteria()
        """The lines among which is searched."""
        self._store = store
        self._jump = jump
        self._hits: Rows | None = None
        self._for: Criteria | None = None
        self._pending: tuple[int, LinePlace] | None = None
        self._ended = ""

    def begin(self, text: str) -> None:
        """Search for another text.

        Raises:
            CriteriaError: it is no expression.
        """
        if text:
            check(Criteria(texts=(text,)))
        self.text, self._ended = text, ""
        self._collect()

    def go(self, direction: int, here: LinePlace) -> None:
        """To the next hit behind a line, or the last one before it, as soon as it is found."""
        if not self.text:
            return
        self._collect()
        self._pending = (direction, here)
        self.tick()

    def tick(self) -> None:
        """Look whether the hit that is waited for was found."""
        if self._pending is None or self._hits is None:
            return
        direction, here = self._pending
        complete = self._hits.complete
        found = self._hits.after(*here) if direction > 0 else None
        if direction < 0 and (complete or self._hits.reached(*here)):
            found = self._hits.before(*here)
            complete = True
        if found is not None:
            self._pending, self._ended = None, ""
            self._jump(found)
        elif complete:
            self._pending = None
            self._ended = "no more below" if direction > 0 else "no more above"

    def status(self) -> str:
        """The search in a few words, for a pane's head."""
        if not self.text or self._hits is None:
            return ""
        more = "" if self._hits.complete else "+"
        return f"| {len(self._hits):,}{more} hits {self._ended}".rstrip()

    def stop(self) -> None:
        """Give the search up."""
        if self._hits:
            self._hits.cancel()
        self.text, self._hits, self._for, self._pending = "", None, None, None

    def _collect(self) -> None:
        """Begin to collect the hits, unless they are being collected already."""
        if not self.text:
            self.stop()
            return
        wanted = replace(self.within, texts=(*self.within.texts, self.text))
        if wanted != self._for:
            if self._hits:
                self._hits.cancel()
            self._for, self._hits = wanted, self._store.rows(wanted)
