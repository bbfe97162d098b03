"""The lanes: every rank on one axis, with phases, free memory and marks."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.reactive import reactive
from textual.widget import Widget

from forensics.tui.lane_lines import heads, label_width, marks_line, row_line, times
from forensics.tui.lane_rows import LaneRow, folded_at_first, rows_of
from forensics.tui.model import LineChosen, Loaded, RankChosen, Selection
from forensics.tui.stops import RunStops
from forensics.tui.window import Window
from forensics.views.picture import Picture
from forensics.views.picture.scale import Scale, scale_of

_AROUND = 3
"""Lines that are no lanes: names of phases, marks, times."""


class LanesPane(Widget, can_focus=True):
    """Draws one run; keys move a cursor over the ranks and the window over the axis."""

    DEFAULT_CSS = "LanesPane { height: auto; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "cursor(-1)", show=False),
        Binding("down,j", "cursor(1)", show=False),
        Binding("pageup", "cursor(-8)", show=False),
        Binding("pagedown", "cursor(8)", show=False),
        Binding("enter", "choose", show=False),
    ]

    most_rows = reactive(8, layout=True)
    """Lanes that are shown at once; more scroll."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._picture: Picture | None = None
        self._stops: RunStops | None = None
        self._window: Window | None = None
        self._run = -1
        self._by_looks = False
        self._folded: set[str] = set()
        self._rows: list[LaneRow] = []
        self._cursor = self._top = 0
        self._selection = Selection()
        self._at: datetime | None = None

    # What the app asks for

    def show(self, loaded: Loaded, run_index: int) -> None:
        """Draw a run, or the same one after it has grown."""
        picture = loaded.pictures[run_index]
        self._stops = RunStops(loaded.report(run_index), loaded.paths)
        if self._run != run_index or self._window is None:
            self._by_looks = False
            self._folded = folded_at_first(picture, False)
            self._window = Window.over(picture.begin, picture.end)
            self._cursor = self._top = 0
            self._at = None
        else:
            self._window = self._window.grown(picture.begin, picture.end)
        self._run, self._picture = run_index, picture
        self._draw_rows()

    def select(self, selection: Selection) -> None:
        """Mark the place of the selected line, and the rank."""
        self._selection = selection
        if selection.line is not None and self._stops and self._window:
            self._at = self._stops.places.at(selection.source, selection.line)
            self._window = self._window.showing(self._at)
        if selection.rank is not None:
            self._move_to(selection.rank, selection.source)
        self.refresh()

    def zoom(self, factor: float) -> None:
        """Closer (above 1) or farther, about the selected place."""
        if self._window:
            self._window = self._window.zoomed(factor, self._at)
            self.refresh()

    def pan(self, step: int) -> None:
        """Earlier or later by a quarter of what is seen."""
        if self._window:
            self._window = self._window.panned(step / 4)
            self.refresh()

    def whole(self) -> None:
        """The whole run."""
        if self._window:
            self._window = Window.over(self._window.first, self._window.last)
            self.refresh()

    def fold_all(self) -> None:
        """Fold ranks that look alike, or draw every rank by itself again."""
        if self._picture:
            self._by_looks = not self._by_looks
            self._folded = folded_at_first(self._picture, self._by_looks)
            self._draw_rows()

    @property
    def window(self) -> Window | None:
        """The part of the axis that is shown."""
        return self._window

    @property
    def rows(self) -> list[LaneRow]:
        """The rows, seen or not."""
        return self._rows

    @property
    def row(self) -> LaneRow | None:
        """The row under the cursor."""
        return self._rows[self._cursor] if self._cursor < len(self._rows) else None

    # Drawing

    def get_content_height(self, container: object, viewport: object, width: int) -> int:
        """As many lines as there are rows, up to `most_rows`, and those around them."""
        return min(len(self._rows), self.most_rows) + _AROUND

    def render(self) -> Text:
        """All lines."""
        if self._picture is None or self._window is None:
            return Text()
        margin = label_width(self._rows)
        scale = self._scale(margin)
        picture, at = self._picture, self._at
        lines = [heads(picture, scale, margin)]
        shown = self._rows[self._top : self._top + self.most_rows]
        for number, row in enumerate(shown, start=self._top):
            here = number == self._cursor and self.has_focus
            chosen = self._is_chosen(row)
            lines.append(row_line(row, scale, margin, cursor=here, chosen=chosen, at=at))
        lines.append(marks_line(picture, scale, margin, at))
        bottom = times(picture, scale, margin, at)
        more = len(self._rows) - self._top - len(shown)
        if more or self._top:
            hint = f" {self._top + 1}-{self._top + len(shown)} of {len(self._rows)}"
            bottom = Text(f"{hint:<{margin}}")[:margin] + bottom[margin:]
        lines.append(bottom)
        return Text("\n", no_wrap=True, end="").join(lines)

    def _scale(self, margin: int) -> Scale:
        assert self._picture is not None
        assert self._window is not None
        width = max(self.size.width - margin - 1, 10)
        return scale_of(self._picture, width, (self._window.begin, self._window.end))

    def _is_chosen(self, row: LaneRow) -> bool:
        rank = self._selection.rank
        return rank is not None and any(lane.rank == rank for lane in row.lanes)

    def _draw_rows(self) -> None:
        if self._picture is None:
            return
        self._rows = rows_of(self._picture, self._folded, self._by_looks)
        self._cursor = min(self._cursor, max(len(self._rows) - 1, 0))
        self._keep_in_sight()
        self.refresh(layout=True)

    def _move_to(self, rank: str, source: int) -> None:
        """Put the cursor on the row of a rank."""
        fitting = [
            number
            for number, row in enumerate(self._rows)
            if any(lane.rank == rank for lane in row.lanes) and (row.folded or not row.folds)
        ]
        own = [n for n in fitting if any(la.source == source for la in self._rows[n].lanes)]
        for number in (own or fitting)[:1]:
            self._cursor = number
            self._keep_in_sight()

    def _keep_in_sight(self) -> None:
        last = max(len(self._rows) - self.most_rows, 0)
        self._top = min(max(self._top, self._cursor - self.most_rows + 1), self._cursor, last)

    def watch_most_rows(self) -> None:
        """Another height: the cursor stays in sight."""
        self._keep_in_sight()

    # Keys and mouse

    def action_cursor(self, step: int) -> None:
        """Move over the rows."""
        self._cursor = min(max(self._cursor + step, 0), max(len(self._rows) - 1, 0))
        self._keep_in_sight()
        self.refresh()

    def action_choose(self) -> None:
        """Fold or unfold a group; choose a rank, or all ranks again."""
        row = self.row
        if row is None:
            return
        if row.folds and row.key:
            self._folded ^= {row.key}
            self._draw_rows()
            return
        lane = row.lanes[0]
        chosen = self._selection.rank == lane.rank
        self.post_message(RankChosen(None if chosen else lane.rank, lane.source))

    def on_click(self, event: events.Click) -> None:
        """A click chooses the place: the mark there, else the line nearest in time."""
        if self._picture is None or self._stops is None:
            return
        number = self._top + event.y - 1
        on_row = 1 <= event.y <= self.most_rows and number < len(self._rows)
        if on_row:
            self._cursor = number
            self.refresh()
        margin = label_width(self._rows)
        if event.x < margin:
            if on_row:
                self.action_choose()
            return
        scale = self._scale(margin)
        column = event.x - margin
        lane = self._rows[number].drawn if on_row else None
        marks = lane.marks if lane else self._picture.marks
        for mark in marks:
            if scale.shows(mark.at) and scale.column(mark.at) == column:
                self.post_message(LineChosen(mark.source, mark.line))
                return
        source = lane.source if lane else 0
        line = self._stops.places.line_at(source, scale.at(column))
        self.post_message(LineChosen(source, line))
