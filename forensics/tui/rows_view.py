"""A scrolling list of rows of which only the visible ones are ever built.

What the event table and the raw log share: cursor, keys, mouse, and drawing from the first
visible row down. A row may be several lines high; the scroll bar counts rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from forensics.tui.spans import Span, strip_of

Spans = Sequence[Span]


@dataclass(frozen=True, slots=True)
class _Drawn:
    """What a widget shows, line by line, and what that was drawn from."""

    key: object
    head: Strip
    places: dict[int, tuple[int, Strip]]
    """Row and strip of each line below the head."""
    blank: Strip
    cursor: Style


class RowsView(ScrollView, can_focus=True):
    """Rows with a cursor. A pane says how many there are and draws each."""

    DEFAULT_CSS = """
    RowsView { overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1; }
    RowsView > .rows--cursor { background: $surface-lighten-2; }
    RowsView:focus > .rows--cursor { background: $primary; color: $text; text-style: bold; }
    RowsView > .rows--head { background: $panel; color: $text; text-style: bold; }
    RowsView > .rows--dim { color: $text-muted; }
    RowsView > .rows--rank { color: $accent; }
    RowsView > .rows--value { color: $secondary; text-style: bold; }
    RowsView > .rows--hit { background: $warning; color: black; text-style: bold; }
    RowsView > .rows--critical { color: $error; text-style: bold; }
    RowsView > .rows--warning { color: $warning; }
    RowsView > .rows--info { color: $accent; }
    RowsView > .rows--plain { color: $foreground; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"rows--{name}"
        for name in ("cursor", "head", "dim", "rank", "value", "hit", "critical", "warning")
    } | {"rows--info", "rows--plain"}

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "step(1)", "Down", show=False),
        Binding("k,up", "step(-1)", "Up", show=False),
        Binding("pagedown,ctrl+f", "page(1)", "Page down", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "Page up", show=False),
        Binding("ctrl+d", "page(0.5)", "Half a page down", show=False),
        Binding("ctrl+u", "page(-0.5)", "Half a page up", show=False),
        Binding("g,home", "ends(-1)", "First", show=False),
        Binding("G,end", "ends(1)", "Last", show=False),
    ]

    _last: _Drawn | None = None

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.cursor = 0
        """The row that is chosen."""
        self.hidden = 0
        """Lines of the first visible row that are above it: of a row higher than the widget."""

    def total(self) -> int:
        """How many rows there are."""
        raise NotImplementedError

    def draw_row(self, row: int, width: int) -> list[Spans]:
        """The lines of a row, the first part of each being its gutter."""
        raise NotImplementedError

    def draw_head(self, width: int) -> Spans | None:
        """The line above the rows, if there is one."""
        return None

    def prepare(self, first: int, count: int) -> None:
        """These rows are about to be drawn."""

    def moved(self) -> None:
        """The user moved the cursor."""

    def opened(self) -> None:
        """The user opened the row under the cursor with the mouse."""

    @property
    def head_height(self) -> int:
        """Lines above the rows."""
        return 1

    @property
    def rows_differ(self) -> bool:
        """Whether rows may be higher than one line."""
        return False

    @property
    def columns(self) -> int:
        """Cells beside the scroll bar."""
        return self.scrollable_content_region.width

    @property
    def room(self) -> int:
        """Lines for rows."""
        return max(self.size.height - self.head_height, 1)

    def style(self, name: str) -> Style:
        """The style of a part of a row: `dim`, `rank`, `value`, ..."""
        return self.get_component_rich_style(f"rows--{name}", partial=True)

    def notify_style_update(self) -> None:
        """Another theme, or the focus came or went."""
        self._last = None
        super().notify_style_update()

    def rows_changed(self) -> None:
        """There are more rows, fewer, or others: draw anew."""
        self.cursor = max(min(self.cursor, self.total() - 1), 0)
        self._measure()
        self.refresh()

    def _measure(self) -> None:
        """Tell the scroll bar how many rows there are."""
        # A row that is higher than one line may be the only one that fits: it can be on top too.
        below = self.room - 1 if self.rows_differ else 0
        size = Size(self.columns, self.total() + self.head_height + below)
        if size != self.virtual_size:
            self.virtual_size = size

    def go(self, row: int, *, center: bool = False) -> None:
        """Put the cursor on a row and bring it into view; tells nobody."""
        self.cursor = max(min(row, self.total() - 1), 0)
        self.hidden = 0
        self._measure()
        self._into_view(center)
        self.refresh()

    def ends(self, direction: int) -> None:
        """To the first row, or the last."""
        self.go(0 if direction < 0 else self.total() - 1)
        self.moved()

    def action_step(self, by: int) -> None:
        """Move the cursor by rows; within a row that is higher than the widget, by half of it."""
        if self._within(by):
            return
        self.go(self.cursor + by)
        self.moved()

    def _within(self, by: int) -> bool:
        height = self.height_of(self.cursor)
        if height <= self.room or self.cursor != self._top():
            return False
        hidden = max(min(self.hidden + by * max(self.room // 2, 1), height - self.room), 0)
        if hidden == self.hidden:
            return False
        self.hidden = hidden
        self.refresh()
        return True

    def action_page(self, pages: float) -> None:
        """Move the cursor by pages."""
        shown = max(self._rows_in_room(self._top()) - 1, 1)
        by = int(pages * shown) or (1 if pages > 0 else -1)
        self.scroll_to(y=self._top() + by, animate=False, immediate=True)
        self.go(self.cursor + by)
        self.moved()

    def action_ends(self, direction: int) -> None:
        """To the first row, or the last."""
        self.ends(direction)

    def on_resize(self, _: events.Resize) -> None:
        """Keep the cursor in sight."""
        self.rows_changed()
        self._into_view(False)

    def on_click(self, event: events.Click) -> None:
        """Choose a row; a second click opens it."""
        row = self.row_at(event.y)
        if row is None:
            return
        again = row == self.cursor and event.chain > 1
        self.go(row)
        self.moved()
        if again:
            self.opened()

    def row_at(self, y: int) -> int | None:
        """The row that is drawn at a line of the widget."""
        place = self._drawn().places.get(y - self.head_height)
        return None if place is None else place[0]

    def render_line(self, y: int) -> Strip:
        """One line of the widget."""
        drawn = self._drawn()
        if y < self.head_height:
            return drawn.head
        place = drawn.places.get(y - self.head_height)
        if place is None:
            return drawn.blank
        row, strip = place
        return strip.apply_style(drawn.cursor) if row == self.cursor else strip

    def _drawn(self) -> _Drawn:
        """Everything that is seen; made once for what is shown."""
        key = (self._top(), self.hidden, self.size, self.total(), self.cursor, self._state())
        if self._last is None or self._last.key != key:
            self._last = self._draw(key)
        return self._last

    def _state(self) -> object:
        """What else is seen that changes: the panes draw anew when it does."""
        return None

    def _draw(self, key: object) -> _Drawn:
        first, room, width, base = self._top(), self.room, self.columns, self.rich_style
        self.prepare(first, room)
        head = strip_of(self.draw_head(width) or (), self.style("head"))
        found: dict[int, tuple[int, Strip]] = {}
        row = first
        while len(found) < room and row < self.total():
            lines = self.draw_row(row, width)[self.hidden if row == first else 0 :]
            for spans in lines[: room - len(found)]:
                strip = strip_of(spans, base).adjust_cell_length(width, base)
                found[len(found)] = (row, strip)
            row += 1
        return _Drawn(
            key,
            head.adjust_cell_length(width, self.style("head")),
            found,
            Strip.blank(width, base),
            self.style("cursor"),
        )

    def refresh_rows(self) -> None:
        """Draw the visible rows anew: their text or marks have changed."""
        self._last = None
        self.refresh()

    def _top(self) -> int:
        return max(min(round(self.scroll_y), self.total() - 1), 0)

    def _rows_in_room(self, first: int) -> int:
        """How many rows fit from a row on."""
        height, row = 0, first
        while row < self.total() and height < self.room:
            height += self.height_of(row)
            row += 1
        whole = row - first - (height > self.room)
        return max(whole, 1)

    def height_of(self, row: int) -> int:
        """How many lines a row takes."""
        return 1

    def _into_view(self, center: bool) -> None:
        top = self._top()
        last = top + self._rows_in_room(top) - 1
        if top <= self.cursor <= last and not center:
            return
        target = self.cursor
        if center or self.cursor > last:
            height = self.height_of(self.cursor)
            limit = self.room // 3 + height if center else self.room
            while target > 0 and height + self.height_of(target - 1) <= limit:
                target -= 1
                height += self.height_of(target)
        self.scroll_to(y=target, animate=False, immediate=True)
