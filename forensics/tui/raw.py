"""The raw log: the lines as they stand in the file, around what is selected."""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from textual.binding import Binding, BindingType

from forensics.tui.line_text import shown_line
from forensics.tui.marking import NONE, SIGNS, marks_of
from forensics.tui.model import LineChosen, Loaded, Selection
from forensics.tui.rows_view import RowsView, Spans
from forensics.tui.search import Search
from forensics.tui.spans import Span, window, wrapped
from forensics.tui.store import Criteria, EventStore, Line, LinePlace
from forensics.tui.store.criteria import hits
from forensics.views.words import Places

_TICK_S = 0.1
_SIDEWAYS = 20
_LONGEST = 16 << 10
"""Characters of a line that are shown at most."""
_MARGIN = 1 << 10
"""Characters behind what is seen that are looked at too, so that no secret is cut in two."""


class RawPane(RowsView):
    """Every line of one source, wrapped or not, with the values that the grammar reads from it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("z", "wrap", "Wrap long lines", show=False),
        Binding("h,left", "sideways(-1)", "Left", show=False),
        Binding("l,right", "sideways(1)", "Right", show=False),
    ]

    def __init__(self, store: EventStore, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.wraps = True
        """Long lines are continued below instead of being cut."""
        self.source = 0
        """The source that is shown."""
        self.search = Search(store, self._jump)
        self._store = store
        self._places = Places([source.path for source in store.sources])
        self._left = 0
        self._marks = NONE
        self._loaded: Loaded | None = None
        self._run = 0
        self._finding: str | None = None
        self._wanted: int | None = None
        self._window: dict[int, Line] = {}
        self._known = -1

    def on_mount(self) -> None:
        """Look for lines that were read in the meantime."""
        self._aim()
        self.set_interval(_TICK_S, self._tick)

    def on_unmount(self) -> None:
        """Stop what still works for it."""
        self.search.stop()

    def show(self, loaded: Loaded, run_index: int) -> None:
        """Mark what a run's findings rest on."""
        self._loaded, self._run, self._finding = loaded, run_index, None
        self._mark()

    def select(self, selection: Selection) -> None:
        """Show a line in its surroundings, and sign the evidence of the finding."""
        if selection.finding_id != self._finding:
            self._finding = selection.finding_id
            self._mark()
        if selection.line is None:
            return
        if selection.source != self.source:
            self.source = selection.source
            self._aim()
        elif selection.line == self.cursor + 1 and self._wanted is None:
            return
        self._wanted = selection.line
        self._seek()

    def place(self) -> LinePlace:
        """The line under the cursor."""
        return LinePlace(self.source, self.cursor + 1)

    def line_text(self) -> str:
        """The clean text of the line under the cursor, to be copied."""
        lines = self._store.read(*self.place(), 1)
        return shown_line(lines[0].text, None, "").text if lines else ""

    def total(self) -> int:
        """See `RowsView`."""
        return self._store.lines(self.source) if self.source < len(self._store.sources) else 0

    def prepare(self, first: int, count: int) -> None:
        """Read the lines that are about to be drawn, all at once."""
        lines = self._store.read(self.source, first + 1, count + 1)
        self._window = {line.number - 1: line for line in lines}

    def draw_head(self, width: int) -> Spans:
        """Which file, which line of how many, and how it is shown."""
        path = self._store.sources[self.source].path if self._store.sources else ""
        where = f"  {self._places.name(path)}:{self.cursor + 1:,} of {self.total():,}"
        how = "wrapped" if self.wraps else f"from column {self._left + 1}" if self._left else ""
        notes = [note for note in (how, self.search.status()) if note]
        return [(where, Style()), (f"  {'  '.join(notes)}", Style())]

    @property
    def rows_differ(self) -> bool:
        """Wrapped lines take as many lines as they need."""
        return self.wraps

    def _state(self) -> object:
        return self.search.status()

    def height_of(self, row: int) -> int:
        """Lines that a row takes."""
        if not self.wraps:
            return 1
        line = self._window.get(row)
        if line is None:
            read = self._store.read(self.source, row + 1, 1)
            if not read:
                return 1
            line = read[0]
        return len(wrapped(self._spans(line), self._text_width(self.columns)))

    def draw_row(self, row: int, width: int) -> list[Spans]:
        """A line of the log; several lines where it is wrapped."""
        line = self._window.get(row)
        if line is None:
            return [[("", Style())]]
        mark = self._marks.get(line.source, line.number, line.severity)
        tone = self.style({"cause": "critical", "evidence": "value"}.get(mark or "", mark or "dim"))
        chosen = ">" if row == self.cursor else " "
        digits = self._gutter_width() - 4
        gutter = (f"{chosen}{SIGNS.get(mark or '', ' ')} {line.number:>{digits}} ", tone)
        spans = self._spans(line)
        room = self._text_width(width)
        if not self.wraps:
            return [[gutter, *window(spans, self._left, room)]]
        first, *rest = wrapped(spans, room)
        blank = (" " * self._gutter_width(), Style())
        return [[gutter, *first], *([blank, *more] for more in rest)]

    def moved(self) -> None:
        """Tell the others which line is looked at."""
        self._wanted = None
        self.post_message(LineChosen(*self.place()))

    def found(self, direction: int) -> None:
        """To the next hit of the search, or the one before."""
        self.search.go(direction, self.place())

    def action_wrap(self) -> None:
        """Continue long lines below, or cut them."""
        self.wraps = not self.wraps
        self._left = 0
        self.refresh_rows()
        self.rows_changed()
        self.go(self.cursor)

    def action_sideways(self, by: int) -> None:
        """Move the text to the side, where it is not wrapped."""
        if not self.wraps:
            self._left = min(max(self._left + by * _SIDEWAYS, 0), _LONGEST)
            self.refresh_rows()

    def _spans(self, line: Line) -> list[Span]:
        """The line in parts: what stands in front of the message, its text, its values."""
        longest = self._longest()
        shown = shown_line(line.text, self._store.prefix(line.source), line.kind, longest)
        mark = self._marks.get(line.source, line.number)
        plain = self.style("critical" if mark == "cause" else "plain")
        styles = [(0, shown.message, self.style("dim"))]
        styles += [(begin, end, self.style("value")) for begin, end in shown.values]
        if self.search.text:
            found = hits(shown.text, self.search.text)
            styles = _over(styles, [(begin, end, self.style("hit")) for begin, end in found])
        spans, at = [], 0
        for begin, end, style in styles:
            spans += [(shown.text[at:begin], plain), (shown.text[begin:end], style)]
            at = max(at, end)
        cut = line.cut or len(line.text) > longest
        rest = shown.text[at:] + (" [the log has more of this line]" if cut else "")
        return [*spans, (rest, plain)]

    def _longest(self) -> int:
        """Characters of a line that are looked at: cut lines cost what is seen of them."""
        if self.wraps:
            return _LONGEST
        seen = self._left + self.columns + _MARGIN
        return min(-(-seen // _MARGIN) * _MARGIN, _LONGEST)

    def _text_width(self, width: int) -> int:
        return max(width - self._gutter_width(), 10)

    def _gutter_width(self) -> int:
        return len(str(max(self.total(), 1))) + 4

    def _mark(self) -> None:
        if self._loaded is not None:
            self._marks = marks_of(self._loaded, self._run, self._finding)
            self.refresh_rows()

    def _aim(self) -> None:
        """Search in the source that is shown."""
        self.search.within = Criteria(sources=(self.source,), parts=True)
        self._known = -1

    def _jump(self, place: LinePlace) -> None:
        self.go(place.line - 1, center=True)
        self.moved()

    def _seek(self) -> None:
        wanted = self._wanted
        if wanted is not None and wanted <= self.total():
            self.rows_changed()
            self._wanted = None
            self.refresh_rows()
            self.go(wanted - 1, center=True)

    def _tick(self) -> None:
        self.search.tick()
        total = self.total()
        if total != self._known or not self._store.complete:
            self._known = total
            self.refresh_rows()
            self.rows_changed()
            self._seek()


def _over(
    below: list[tuple[int, int, Style]], above: list[tuple[int, int, Style]]
) -> list[tuple[int, int, Style]]:
    """Styled stretches in order; where two meet, the upper one is seen."""
    left: list[tuple[int, int, Style]] = []
    for begin, end, style in below:
        for high_begin, high_end, _ in above:
            if high_begin < end and begin < high_end:
                left.append((begin, max(begin, high_begin), style))
                begin = min(high_end, end)
        left.append((begin, end, style))
    kept = [stretch for stretch in [*left, *above] if stretch[0] < stretch[1]]
    return sorted(kept, key=lambda stretch: stretch[0])
