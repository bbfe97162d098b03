"""What the panes share: what was loaded, what is selected, what they tell the app.

A pane is a widget with two methods, both called on the UI thread:

- `show(loaded, run_index)`: draw another run, or the same one after it has grown;
- `select(selection)`: put the cursor on, or near, what is selected; tells no message back.

A pane tells the app what the user chose by the messages below. The app turns each into a
`Selection` and hands it to every pane, the one that told it included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Protocol

from textual.message import Message

from forensics.diagnosis import Diagnosis, RunReport
from forensics.findings import Finding
from forensics.views.picture import Picture, picture


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was read, and the picture of each run."""

    diagnosis: Diagnosis
    pictures: list[Picture]
    """One a run, in the order of `diagnosis.reports`."""
    paths: list[str]
    """The path of each source, as given; sources are numbered in this order."""
    live: bool = False
    """It may still grow."""

    def report(self, run_index: int) -> RunReport:
        """The report of a run."""
        return self.diagnosis.reports[run_index]

    def finding(self, run_index: int, finding_id: str | None) -> Finding | None:
        """A finding of a run by its id."""
        found = (f for f in self.report(run_index).findings if f.id == finding_id)
        return next(found, None)

    def source_of(self, path: str) -> int:
        """The number of a source by its path."""
        return self.paths.index(path) if path in self.paths else 0


def loaded_from(
    diagnosis: Diagnosis, *, live: bool = False, until: datetime | None = None
) -> Loaded:
    """A diagnosis with the pictures of its runs; the last one goes on `until` this moment."""
    last = len(diagnosis.reports) - 1
    pictures = [
        picture(report, diagnosis.incident, until if number == last else None)
        for number, report in enumerate(diagnosis.reports)
    ]
    paths = [source.path for source in diagnosis.incident.sources]
    return Loaded(diagnosis, pictures, paths, live)


@dataclass(frozen=True, slots=True)
class Selection:
    """What the panes look at. Lines count from 1, `run` is an index into the reports."""

    run: int = 0
    rank: str | None = None
    """None: all ranks."""
    source: int = 0
    line: int | None = None
    event_index: int | None = None
    """The row of the event table, where the event was chosen there."""
    finding_id: str | None = None

    def but(self, **changes: Any) -> Selection:
        """The same with some fields changed."""
        return replace(self, **changes)


class Pane(Protocol):
    """What the app asks of every pane."""

    def show(self, loaded: Loaded, run_index: int) -> None:
        """Draw a run."""

    def select(self, selection: Selection) -> None:
        """Follow the selection."""


class LineChosen(Message):
    """The user chose a line of a source; with `opened` to see it in the log itself."""

    def __init__(
        self, source: int, line: int, event_index: int | None = None, *, opened: bool = False
    ) -> None:
        super().__init__()
        self.source = source
        self.line = line
        self.event_index = event_index
        self.opened = opened


class FindingChosen(Message):
    """The user chose a finding."""

    def __init__(self, finding_id: str) -> None:
        super().__init__()
        self.finding_id = finding_id


class RankChosen(Message):
    """The user chose a rank; None: all."""

    def __init__(self, rank: str | None, source: int = 0) -> None:
        super().__init__()
        self.rank = rank
        self.source = source


class Copied(Message):
    """A pane asks to copy a text; `what` names it in the notice ("line 214", "new launch")."""

    def __init__(self, text: str, what: str) -> None:
        super().__init__()
        self.text = text
        self.what = what
