"""The prompt at the foot: what to search for, or what to filter by."""

from __future__ import annotations

from typing import ClassVar, Literal

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import Input, Static

Purpose = Literal["search", "filter"]

_LABELS: dict[Purpose, str] = {"search": "Search", "filter": "Filter"}
_HINTS: dict[Purpose, str] = {
    "search": "text, or re:EXPRESSION; n N for the next and the one before",
    "filter": "rank:TP4 kind:capture* sev:warning text; -rank:TP0 leaves out; empty shows all",
}


class Asked(Message):
    """The user typed something and pressed Enter."""

    def __init__(self, purpose: Purpose, text: str) -> None:
        super().__init__()
        self.purpose = purpose
        self.text = text


class PromptClosed(Message):
    """The prompt is gone; the focus goes back to where it was."""


class Prompt(Horizontal):
    """One line to type into; hidden until it is asked for."""

    DEFAULT_CSS = """
    Prompt { height: 1; display: none; }
    Prompt Static { width: auto; }
    Prompt Input { width: 1fr; height: 1; border: none; padding: 0; background: $background; }
    Prompt Input:focus { border: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", show=False, priority=True)]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._purpose: Purpose = "search"
        self._typed: dict[Purpose, str] = {"search": "", "filter": ""}

    def compose(self) -> ComposeResult:
        """A label and an input."""
        yield Static("", markup=False)
        yield Input(compact=True)

    def ask(self, purpose: Purpose, text: str | None = None) -> None:
        """Open it with what was typed last, which typing replaces."""
        self._purpose = purpose
        self.query_one(Static).update(f"{_LABELS[purpose]}: ")
        field = self.query_one(Input)
        field.placeholder = _HINTS[purpose]
        field.value = self._typed[purpose] if text is None else text
        self.display = True
        field.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter: tell what was typed."""
        event.stop()
        self._typed[self._purpose] = event.value
        self.action_close()
        self.post_message(Asked(self._purpose, event.value.strip()))

    def on_descendant_blur(self, event: events.DescendantBlur) -> None:
        """The focus went elsewhere, by the mouse."""
        if self.display:
            self.action_close()

    def action_close(self) -> None:
        """Close without asking."""
        if self.display:
            self.display = False
            self.post_message(PromptClosed())
