"""The help: every key, from the same data as the bindings."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from forensics.tui.keys import GROUPS, PANE_KEYS, of_group
from forensics.views.picture.strip import SIGN_STYLE, SIGNS

_KEYS_WIDTH = 14


class HelpScreen(ModalScreen[None]):
    """All keys and signs; closes by Esc, q or the key that opened it."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen VerticalScroll { width: 76; max-width: 100%; height: auto; max-height: 100%;
        border: round ansi_blue; padding: 0 1; background: $background; }
    HelpScreen Static { width: 100%; height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1", "dismiss", "Close", show=False),
        Binding("j", "scroll('down')", show=False),
        Binding("k", "scroll('up')", show=False),
    ]

    def compose(self) -> ComposeResult:
        """One scrolling text."""
        with VerticalScroll() as scroll:
            scroll.border_title = "Keys"
            scroll.border_subtitle = "Esc closes"
            yield Static(help_text())

    def action_scroll(self, way: str) -> None:
        """One line up or down."""
        scroll = self.query_one(VerticalScroll)
        scroll.scroll_relative(y=1 if way == "down" else -1, animate=False)


def help_text() -> Text:
    """The keys by group, then what the lanes show."""
    text = Text()
    for group in GROUPS:
        text.append(f"{group}\n", style="bold")
        for key in of_group(group):
            text.append(f"  {key.label:<{_KEYS_WIDTH}}", style="cyan").append(f"{key.text}\n")
    text.append("In a pane\n", style="bold")
    for keys, words in PANE_KEYS:
        text.append(f"  {keys:<{_KEYS_WIDTH}}", style="cyan").append(f" {words}\n")
    text.append("In the lanes\n", style="bold")
    text.append(f"  {'▁▂▃▄▅▆▇█':<{_KEYS_WIDTH}}").append("free GPU memory, none to all\n")
    text.append(f"  {'·':<{_KEYS_WIDTH}}").append("free memory is not known\n")
    text.append(f"  {'│':<{_KEYS_WIDTH}}").append("another phase begins\n")
    for name, (sign, words) in SIGNS.items():
        text.append(f"  {sign:<{_KEYS_WIDTH}}", style=SIGN_STYLE[name]).append(f"{words}\n")
    text.rstrip()
    return text
