"""The serving view: load and throughput of each rank over time, with retractions as marks."""

from __future__ import annotations

from forensics.tui.document import Document, DocumentPane
from forensics.tui.model import Loaded, Selection
from forensics.tui.serving_text import write_serving


class ServingView(DocumentPane):
    """Charts of what the log's batch lines say; Enter on one shows the line of its peak."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._loaded: Loaded | None = None
        self._run = 0
        self._rank: str | None = None

    def show(self, loaded: Loaded, run_index: int) -> None:
        """Show a run."""
        self._loaded, self._run = loaded, run_index
        self.rewrite()

    def select(self, selection: Selection) -> None:
        """Show the rank that is chosen, or all."""
        if selection.rank != self._rank:
            self._rank = selection.rank
            self.rewrite(keep_place=False)

    def write(self, document: Document) -> None:
        """See `DocumentPane`."""
        if self._loaded is None:
            document.page.paragraph("Reading the log.")
            return
        write_serving(document, self._loaded, self._run, self._rank)
