"""The event table: every record of the logs that the filter lets through, one row each."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from textual.binding import Binding, BindingType
from textual.timer import Timer

from forensics.tui.line_text import shown_line
from forensics.tui.marking import NONE, SIGNS, marks_of
from forensics.tui.model import LineChosen, Loaded, Selection
from forensics.tui.rows_view import RowsView, Spans
from forensics.tui.search import Search
from forensics.tui.spans import Span
from forensics.tui.store import EventStore, Line, LinePlace, Rows, parse_criteria
from forensics.tui.store.criteria import hits
from forensics.views.clean import one_line

_TICK_S = 0.1
_TELL_AFTER_S = 0.06
"""The other panes follow the cursor when it has rested so long."""

_SHOWN = 2_000
"""Characters of a record that are looked at: no row is wider."""

_KIND_WIDTH = 18
_LEAST_RANK, _MOST_RANK = 4, 12
_NARROW = 100


class EventTable(RowsView):
    """Time, rank, sign, kind and text of each record; millions of rows cost what is visible."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open", "Open", show=False),
        Binding("b", "mark", "Mark", show=False),
        Binding("u", "marked(1)", "Next mark", show=False),
        Binding("U", "marked(-1)", "Mark before", show=False),
    ]

    def __init__(self, store: EventStore, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.filter_text = ""
        """The filter as it was typed."""
        self.search = Search(store, self._jump)
        """What is searched for, within the filter."""
        self._store = store
        self._rows: Rows | None = None
        self._wanted: LinePlace | None = None
        self._follows = False
        self._user_marks: set[LinePlace] = set()
        self._marks = NONE
        self._window: dict[int, Line] = {}
        self._stale = True
        self._drawn_rows = 0
        self._several = len(store.sources) > 1
        self._widest, self._seen_classes = _LEAST_RANK, 0
        self._teller: Timer | None = None

    def on_mount(self) -> None:
        """Begin with every record."""
        self.set_filter(self.filter_text)
        self.set_interval(_TICK_S, self._tick)

    def on_unmount(self) -> None:
        """Stop what still works for it."""
        self.search.stop()
        if self._rows:
            self._rows.cancel()

    def set_filter(self, typed: str) -> None:
        """Show the records that pass a filter; the cursor stays on its record where it passes.

        Raises:
            CriteriaError: what was typed is no filter; the table stays as it was.
        """
        criteria = parse_criteria(typed)
        self._wanted = self._wanted or self.place()
        if self._rows:
            self._rows.cancel()
        self.filter_text = typed
        self.search.within = criteria
        self._rows = self._store.rows(criteria, self._told)
        self._stale = True

    def show(self, loaded: Loaded, run_index: int) -> None:
        """Mark what a run's findings rest on."""
        self.follow(loaded.live)
        self._marks = marks_of(loaded, run_index)
        self.refresh_rows()

    def follow(self, follows: bool) -> None:
        """Whether the cursor stays at the end while it stands there."""
        self._follows = follows

    def select(self, selection: Selection) -> None:
        """Put the cursor on the record of a line, or on the last one before it."""
        if selection.line is None or (selection.source, selection.line) == self.place():
            return
        self._wanted = LinePlace(selection.source, selection.line)
        self._seek()

    @property
    def all_found(self) -> bool:
        """Whether everything that there is was held against the filter."""
        return self._rows is not None and self._rows.complete

    def place(self) -> LinePlace | None:
        """The line of the record under the cursor."""
        at = self._rows.slice(self.cursor, 1) if self._rows else []
        return at[0] if at else None

    def line_text(self) -> str:
        """The clean text of the record's first line, to be copied."""
        place = self.place()
        lines = self._store.pick([place]) if place else []
        return shown_line(lines[0].text, None, "").text if lines else ""

    def total(self) -> int:
        """See `RowsView`."""
        return len(self._rows) if self._rows else 0

    def prepare(self, first: int, count: int) -> None:
        """Read the rows that are about to be drawn, all at once."""
        places = self._rows.slice(first, count) if self._rows else []
        lines = self._store.pick(places)
        self._window = dict(zip(range(first, first + len(lines)), lines, strict=False))

    def draw_head(self, width: int) -> Spans:
        """Names of the columns, and how far the work is."""
        kind = self._kind_width(width)
        where = "  " if self._several else ""
        names = f"  {where}{'Time':8} {'Rank':{self._rank_width()}}   {'Kind':{kind}} "
        status = self.status()
        room = max(width - len(names) - len(status) - 1, 0)
        return [(names, Style()), (f"{'Text':{room}.{room}} ", Style()), (status, Style())]

    def status(self) -> str:
        """How many records there are, of how many the filter passed, and what is under way."""
        count = f"{self.total():,} records" if not self.filter_text else f"{self.total():,} pass"
        share = self._store.share()
        if self._rows and not self._rows.complete and not self._follows:
            count += f", {share:.0%} read" if share is not None and share < 1 else " so far"
        return f"{count} {self.search.status()}".strip()

    def _state(self) -> object:
        return self.status()

    def draw_row(self, row: int, width: int) -> list[Spans]:
        """One record."""
        line = self._window.get(row)
        if line is None:
            return [[("", Style())]]
        mark = self._marks.get(line.source, line.number, line.severity)
        dim, tone = self.style("dim"), self.style(_tone(mark))
        kind = self._kind_width(width)
        chosen = ">" if row == self.cursor else " "
        own = "b" if (line.source, line.number) in self._user_marks else " "
        time = f"{line.time:%H:%M:%S}" if line.time else ""
        where = f"{line.source + 1:<2}" if self._several else ""
        rank = _fit(one_line(line.rank or ""), self._rank_width())
        left: list[Span] = [
            (f"{chosen}{own}{where}{time:8} ", dim),
            (f"{rank} ", self.style("rank")),
            (f"{SIGNS.get(mark or '', ' ')} {_fit(line.kind, kind)} ", tone),
        ]
        return [[*left, *self._message(line, tone, width)]]

    def _message(self, line: Line, tone: Style, width: int) -> list[Span]:
        shown = shown_line(line.text, self._store.prefix(line.source), line.kind, _SHOWN)
        text = shown.text[shown.message :][:width]
        if not self.search.text:
            return [(text, tone)]
        spans, at = [], 0
        for begin, end in hits(text, self.search.text):
            spans += [(text[at:begin], tone), (text[begin:end], self.style("hit"))]
            at = end
        return [*spans, (text[at:], tone)]

    def moved(self) -> None:
        """Tell the others where the cursor is, once it rests."""
        self._wanted = None
        self.refresh_rows()
        if self._teller:
            self._teller.stop()
        self._teller = self.set_timer(_TELL_AFTER_S, self._tell)

    def action_open(self) -> None:
        """Show the record in the log."""
        if place := self.place():
            self.post_message(LineChosen(*place, self.cursor, opened=True))

    def opened(self) -> None:
        """See `RowsView`."""
        self.action_open()

    def found(self, direction: int) -> None:
        """To the next hit of the search, or the one before."""
        self.search.go(direction, self.place() or LinePlace(0, 0))

    def action_mark(self) -> None:
        """Set a mark on a record, or take it away."""
        if place := self.place():
            self._user_marks ^= {place}
            self.refresh_rows()

    def action_marked(self, direction: int) -> None:
        """To the next marked record, or the one before."""
        here = self.place() or LinePlace(0, 0)
        beyond = [m for m in self._user_marks if (m > here if direction > 0 else m < here)]
        if beyond:
            self._jump(min(beyond) if direction > 0 else max(beyond))

    def _jump(self, place: LinePlace) -> None:
        if self._rows:
            self.go(self._rows.row_of(*place), center=True)
            self.moved()

    def _told(self) -> None:
        self._stale = True  # from another thread: the next tick draws it

    def _tick(self) -> None:
        self.search.tick()
        if not self._stale or self._rows is None:
            return
        self._stale = False
        at_end = self._follows and self.cursor >= self._drawn_rows - 1
        self._last = None
        self._drawn_rows = self.total()
        self.rows_changed()
        if self._wanted is not None:
            self._seek()
        elif at_end:
            self.go(self.total() - 1)

    def _seek(self) -> None:
        """Go to the place that is wanted, as near as the rows found so far allow."""
        rows, wanted = self._rows, self._wanted
        if rows is None or wanted is None or not len(rows):
            return
        self.go(rows.row_of(*wanted), center=True)
        if rows.complete or rows.holds(*wanted):
            self._wanted = None
        self.refresh_rows()

    def _tell(self) -> None:
        if place := self.place():
            self.post_message(LineChosen(*place, self.cursor))

    def _rank_width(self) -> int:
        """As wide as the widest rank so far."""
        classes = self._store.classes()
        if len(classes) > self._seen_classes:
            widest = max(len(found.rank or "") for found in classes[self._seen_classes :])
            self._widest = min(max(self._widest, widest), _MOST_RANK)
            self._seen_classes = len(classes)
        return self._widest

    @staticmethod
    def _kind_width(width: int) -> int:
        return _KIND_WIDTH if width < _NARROW else _KIND_WIDTH + 6


def _tone(mark: str | None) -> str:
    if mark in ("cause", "critical"):
        return "critical"
    return {"warning": "warning", "info": "info", "evidence": "value"}.get(mark or "", "plain")


def _fit(text: str, width: int) -> str:
    return f"{text:{width}}" if len(text) <= width else f"{text[: width - 1]}…"
