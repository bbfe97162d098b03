"""The panes below the lanes: which of them is seen, and what all of them are told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widget import Widget

from forensics.tui.detail import DetailPane
from forensics.tui.layout import PAGES, shown
from forensics.tui.memory import MemoryView
from forensics.tui.model import Loaded, Pane, Selection
from forensics.tui.raw import RawPane
from forensics.tui.serving import ServingView
from forensics.tui.store import EventStore
from forensics.tui.table import EventTable


class Pages(Horizontal):
    """Five panes; on a large screen finding, events and log are seen together."""

    DEFAULT_CSS = """
    Pages { height: 1fr; }
    Pages #left { width: 3fr; }
    Pages #detail { width: 2fr; }
    Pages.apart #left, Pages.apart #detail { width: 1fr; }
    Pages #events, Pages #raw { height: 1fr; }
    Pages.together #detail { border-left: solid ansi_bright_black; }
    """

    def __init__(self, store: EventStore, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.page = PAGES[0]
        """The page that was chosen."""
        self.together = False
        self._left = Vertical(id="left")
        self.table = EventTable(store, id="events")
        self.raw = RawPane(store, id="raw")
        self.detail = DetailPane(id="detail")
        self._memory = MemoryView(id="memory")
        self._serving = ServingView(id="serving")

    def compose(self) -> ComposeResult:
        """Events above the log at the left, the finding at the right, the others alone."""
        with self._left:
            yield self.table
            yield self.raw
        yield self.detail
        yield self._memory
        yield self._serving

    def divide(self, together: bool) -> None:
        """Side by side, or one at a time."""
        self.together = together
        self.set_class(together, "together")
        self.set_class(not together, "apart")
        self.see(self.page)

    def see(self, page: str) -> None:
        """Bring a page to the front."""
        self.page = page
        seen = shown(page, self.together)
        for name, pane in self._panes().items():
            pane.display = name in seen
        self._left.display = bool(seen & {"events", "raw"})

    def focus_page(self) -> None:
        """Keys go to the page that was chosen."""
        self._panes()[self.page].focus()

    def show(self, loaded: Loaded, run_index: int) -> None:
        """Draw a run in every pane."""
        for pane in self._all():
            pane.show(loaded, run_index)

    def select(self, selection: Selection) -> None:
        """Every pane follows the selection."""
        for pane in self._all():
            pane.select(selection)

    @property
    def searched(self) -> EventTable | RawPane:
        """The pane that a search goes through: the events where those are looked at."""
        return self.table if self.page == "events" else self.raw

    def _panes(self) -> dict[str, Widget]:
        panes = (self.detail, self.table, self.raw, self._memory, self._serving)
        return dict(zip(PAGES, panes, strict=True))

    def _all(self) -> Iterator[Pane]:
        return (cast(Pane, pane) for pane in self._panes().values())
