"""The memory view: where the memory of each rank went, and what another fraction would leave."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from forensics.tui.document import Document, DocumentPane
from forensics.tui.memory_text import write_ledger, write_what_if
from forensics.tui.model import Loaded, Selection
from forensics.tui.what_if import WhatIf, stepped, what_if

_DEFAULT = 0.88
"""Where the slider stands if the log does not tell the fraction."""


class MemoryView(DocumentPane):
    """The ledger as bars, and a slider for `mem_fraction_static`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "slide(-0.01)", "Lower fraction", show=False),
        Binding("right,l", "slide(0.01)", "Higher fraction", show=False),
        Binding("shift+left,H", "slide(-0.001)", "A little lower", show=False),
        Binding("shift+right,L", "slide(0.001)", "A little higher", show=False),
        Binding("x", "reset", "The launch's own fraction", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.fraction = _DEFAULT
        """Where the slider stands."""
        self.known: WhatIf | None = None
        """What is known of the run that is shown; None until it is looked at."""
        self._loaded: Loaded | None = None
        self._run = 0
        self._slid = False

    def show(self, loaded: Loaded, run_index: int) -> None:
        """Show a run; of the same run, grown, the slider stays where it was put."""
        if run_index != self._run:
            self._slid = False
        self._loaded, self._run, self.known = loaded, run_index, None
        self.rewrite()

    def select(self, selection: Selection) -> None:
        """The view shows all ranks."""

    def action_slide(self, by: float) -> None:
        """Move the slider."""
        if self.known is not None and self.known.here is not None:
            self.fraction, self._slid = stepped(self.fraction, by), True
            self.rewrite()

    def action_reset(self) -> None:
        """Back to the fraction of the launch."""
        self._slid = False
        self._rest()
        self.rewrite()

    def write(self, document: Document) -> None:
        """See `DocumentPane`."""
        if self._loaded is None:
            document.page.paragraph("Reading the log.")
            return
        if self.known is None:
            run = self._loaded.report(self._run).run
            self.known = what_if(run, self._loaded.diagnosis.incident)
            if not self._slid:
                self._rest()
        write_what_if(document, self.known, self.fraction)
        write_ledger(document, self._loaded, self._run)

    def _rest(self) -> None:
        here = self.known.here if self.known else None
        self.fraction = here.fraction if here else _DEFAULT
