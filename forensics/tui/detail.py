"""The finding: what it is, the arithmetic, its evidence, what to change, and the playbook."""

from __future__ import annotations

from forensics.findings import Finding
from forensics.tui.detail_text import write_detail
from forensics.tui.document import Document, DocumentPane, Target
from forensics.tui.marking import places_of
from forensics.tui.model import Loaded, Selection
from forensics.tui.store import LinePlace
from forensics.views.verdict import main_finding


class DetailPane(DocumentPane):
    """One finding of a run, the cause at first; Enter on its evidence shows it in the log."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.finding: Finding | None = None
        """What is shown."""
        self._loaded: Loaded | None = None
        self._run = 0

    def show(self, loaded: Loaded, run_index: int) -> None:
        """Show the main finding of a run; of the same run, grown, what was shown before."""
        same = self._loaded is not None and run_index == self._run
        before = self.finding.id if self.finding is not None and same else None
        self._loaded, self._run = loaded, run_index
        kept = loaded.finding(run_index, before) if before else None
        report = loaded.report(run_index)
        self.finding = kept or main_finding(report) or next(iter(report.findings), None)
        self.rewrite(keep_place=kept is not None)

    def select(self, selection: Selection) -> None:
        """Show another finding."""
        if self._loaded is None or selection.finding_id is None:
            return
        found = self._loaded.finding(self._run, selection.finding_id)
        if found is not None and (self.finding is None or found.id != self.finding.id):
            self.finding = found
            self.rewrite(keep_place=False)

    def write(self, document: Document) -> None:
        """See `DocumentPane`."""
        if self._loaded is None:
            document.page.paragraph("Reading the log.")
            return
        write_detail(document, self._loaded, self._run, self.finding)

    def action_open(self) -> None:
        """Go where the line leads; from any other line to the line at which it began."""
        target = self.target() or self._first()
        if target is not None:
            self.follow(target)

    def _first(self) -> Target | None:
        if self._loaded is None or self.finding is None:
            return None
        first = self.finding.first
        source = self._loaded.source_of(first.source)
        evidence = places_of(self._loaded, self.finding)
        line = first.line or (evidence[0][1] if evidence else 0)
        return Target(LinePlace(source, line)) if line else None
