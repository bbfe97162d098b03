"""A pane that shows a text of lines, some of which lead somewhere: findings, memory, serving."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar

from rich.console import Console
from rich.markdown import Markdown
from rich.style import Style
from rich.text import Text
from textual import events
from textual.binding import Binding, BindingType
from textual.widget import Widget

from forensics.tui.model import FindingChosen, LineChosen
from forensics.tui.rows_view import RowsView, Spans
from forensics.tui.store import LinePlace
from forensics.views.clean import clean
from forensics.views.terminal.page import Page

_LEAST_WIDTH = 24


@dataclass(frozen=True, slots=True)
class Target:
    """Where a line of a document leads: to a line of a log, or to a finding."""

    place: LinePlace | None = None
    finding_id: str | None = None


class Document:
    """Lines of text for a width, laid out as the terminal view does it, and where they lead."""

    def __init__(self, width: int) -> None:
        self.width = max(width, _LEAST_WIDTH)
        self._console = Console(file=io.StringIO(), width=self.width, color_system=None)
        self.page = Page(self._console, self.width)
        """What the lines are written on."""
        self.targets: dict[int, Target] = {}
        """By line, from 0."""

    @property
    def lines(self) -> list[Text]:
        """The lines so far."""
        return self.page.lines

    @contextmanager
    def leading_to(self, target: Target) -> Iterator[None]:
        """The lines that are written within lead to a target."""
        first = len(self.lines)
        yield
        self.targets |= dict.fromkeys(range(first, len(self.lines)), target)

    def markdown(self, text: str) -> None:
        """A playbook, rendered; links are text, not links."""
        rendered = Markdown(clean(text), code_theme="bw", hyperlinks=False)
        for segments in self._console.render_lines(rendered, pad=False):
            line = Text(no_wrap=True, end="")
            for segment in segments:
                line.append(segment.text.rstrip("\n"), segment.style)
            self.page.raw(line)


class DocumentPane(RowsView):
    """Shows a document, written anew for every width; Enter goes where a line leads."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "open", "Open", show=False)]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.document = Document(_LEAST_WIDTH)
        self._stale = False
        """The text has changed while nobody saw it."""

    def write(self, document: Document) -> None:
        """Write the text of the pane."""
        raise NotImplementedError

    def rewrite(self, *, keep_place: bool = True) -> None:
        """The text has changed; while the pane is hidden it is only noted."""
        if not keep_place:
            self.cursor = 0
            self.scroll_to(y=0, animate=False, immediate=True)
        self._stale = self._hidden()
        if self._stale:
            return
        self.document = Document(max(self.columns - 2, _LEAST_WIDTH))
        self.write(self.document)
        self._last = None
        self.rows_changed()

    def on_resize(self, event: events.Resize) -> None:
        """Write it for the new width."""
        self.rewrite()
        super().on_resize(event)

    def on_show(self) -> None:
        """Write what has changed while it was hidden."""
        if self._stale:
            self.rewrite()

    def _hidden(self) -> bool:
        return any(isinstance(one, Widget) and not one.display for one in self.ancestors_with_self)

    @property
    def head_height(self) -> int:
        """A document has its heading in itself."""
        return 0

    def total(self) -> int:
        """See `RowsView`."""
        return len(self.document.lines)

    def target(self) -> Target | None:
        """Where the line under the cursor leads."""
        return self.document.targets.get(self.cursor)

    def action_open(self) -> None:
        """Go where the line under the cursor leads."""
        if target := self.target():
            self.follow(target)

    def opened(self) -> None:
        """See `RowsView`."""
        self.action_open()

    def follow(self, target: Target) -> None:
        """Tell the app to go to a target."""
        if target.place is not None:
            self.post_message(LineChosen(*target.place, opened=True))
        elif target.finding_id is not None:
            self.post_message(FindingChosen(target.finding_id))

    def moved(self) -> None:
        """Draw the sign of the cursor anew."""
        self.refresh_rows()

    def draw_row(self, row: int, width: int) -> list[Spans]:
        """One line, with a sign at the cursor and at what leads somewhere."""
        if row >= len(self.document.lines):
            return [[("", Style())]]
        chosen = ">" if row == self.cursor else " "
        spans = [(f"{chosen} ", self.style("dim"))]
        line = self.document.lines[row]
        for segment in line.render(self.document.page.console, end=""):
            style = segment.style if isinstance(segment.style, Style) else Style()
            spans.append((segment.text, style))
        return [spans]
