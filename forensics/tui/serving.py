"""The serving view: load and throughput of each rank over time, with retractions as marks."""

from __future__ import annotations

from textual import work

from forensics.tui.document import Document, DocumentPane
from forensics.tui.model import Loaded, Selection
from forensics.tui.serving_rows import Load, load_of
from forensics.tui.serving_text import columns_for, write_serving


class ServingView(DocumentPane):
    """Charts of what the log's batch lines say; Enter on one shows the line of its peak."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._loaded: Loaded | None = None
        self._run = 0
        self._rank: str | None = None
        self._load: Load | None = None
        self._load_of: tuple[Loaded, int, int] | None = None
        """What the load was summed up from: a long log's rows take a while, in a thread."""

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
        loaded = self._loaded
        if loaded is None:
            document.page.paragraph("Reading the log.")
            return
        columns = columns_for(document.width)
        if not self._is_of(loaded, self._run, columns):
            self._sum_up(loaded, self._run, columns)
            document.page.paragraph("Summing up what was served.")
            return
        write_serving(document, loaded, self._run, self._load, self._rank)

    def _is_of(self, loaded: Loaded, run_index: int, columns: int) -> bool:
        known = self._load_of
        return known is not None and known[0] is loaded and known[1:] == (run_index, columns)

    @work(thread=True, exclusive=True)
    def _sum_up(self, loaded: Loaded, run_index: int, columns: int) -> None:
        load = load_of(loaded.report(run_index).run, columns)
        self.app.call_from_thread(self._summed_up, load, (loaded, run_index, columns))

    def _summed_up(self, load: Load | None, of: tuple[Loaded, int, int]) -> None:
        self._load, self._load_of = load, of
        self.rewrite()
