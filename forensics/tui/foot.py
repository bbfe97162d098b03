"""The two lines around the panes: the tabs of the pages, and the footer with the keys."""

from __future__ import annotations

from rich.text import Text
from textual import events
from textual.message import Message
from textual.widget import Widget

from forensics.tui.keys import footer
from forensics.tui.layout import PAGES, TITLES


class PageChosen(Message):
    """The user clicked a tab."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.page = page


class Tabs(Widget):
    """The pages with their keys; the one that is seen is reversed."""

    DEFAULT_CSS = "Tabs { height: 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._page = PAGES[0]

    def choose(self, page: str) -> None:
        """Mark a page."""
        self._page = page
        self.refresh()

    def render(self) -> Text:
        """`1 Finding  2 Events  3 Log ...`."""
        line = Text(no_wrap=True, end="")
        for page, label in self._labels():
            line.append(label, style="bold reverse" if page == self._page else "dim")
            line.append(" ")
        return line

    def on_click(self, event: events.Click) -> None:
        """Choose the page under the mouse."""
        x = 0
        for page, label in self._labels():
            x += len(label) + 1
            if event.x < x:
                self.post_message(PageChosen(page))
                return

    @staticmethod
    def _labels() -> list[tuple[str, str]]:
        return [(page, f" {number} {TITLES[page]} ") for number, page in enumerate(PAGES, 1)]


class Foot(Widget):
    """The most useful keys, as many as fit."""

    DEFAULT_CSS = "Foot { height: 1; }"

    def render(self) -> Text:
        """Keys in bold, words behind them; never half of one."""
        line = Text(no_wrap=True, end="")
        for key, words in footer():
            part = Text(key, style="bold").append(f" {words}", style="not bold dim")
            if line.cell_len + part.cell_len + 2 > self.size.width:
                break
            line.append_text(part).append("  ")
        return line
