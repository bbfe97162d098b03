"""The program around the timeline. It paints at once and loads everything else behind that.

This module imports nothing of the diagnosis: what takes a third of a second to import comes in a
thread, after the first paint.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import App, ComposeResult
from textual.message import Message
from textual.widgets import Static

from forensics.tui.collector import calm

if TYPE_CHECKING:
    from forensics.tui.engine import Engine

Make = Callable[[], "Engine"]
"""Makes the engine; called in a thread, since it imports and opens what it needs."""


class _Ready(Message):
    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self.engine = engine


class _Failed(Message):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class TimelineApp(App[int]):
    """Runs the timeline over one engine; its result is the exit code of the program."""

    TITLE = "forensics"
    ENABLE_COMMAND_PALETTE = True
    CSS = "Screen { overflow: hidden; }"

    def __init__(self, make: Make, greeting: str) -> None:
        super().__init__(ansi_color=True)  # from the start, or NO_COLOR paints black on black
        self._make = make
        self._greeting = greeting
        self.engine: Engine | None = None
        self.error: Exception | None = None
        """Why it ended, if it could not go on; for the caller to tell in one line."""

    def compose(self) -> ComposeResult:
        """The first paint."""
        yield Static(self._greeting, markup=False)

    def on_mount(self) -> None:
        """Colours of the terminal's own palette, so that sixteen are enough."""
        self.theme = "ansi-dark"
        self.call_after_refresh(self._begin)

    def _begin(self) -> None:
        calm()
        threading.Thread(target=self._load, name="load", daemon=True).start()

    def _load(self) -> None:
        try:
            engine = self._make()
            import forensics.tui.screen  # noqa: F401 - loaded here, not on the UI thread
        except Exception as error:
            self.post_message(_Failed(error))
        else:
            self.post_message(_Ready(engine))

    def on__ready(self, message: _Ready) -> None:
        """Everything is imported: show the timeline and let the engine run."""
        from forensics.tui.screen import TimelineScreen

        self.engine = message.engine
        self.push_screen(TimelineScreen(message.engine))

    def on__failed(self, message: _Failed) -> None:
        """It could not begin."""
        self.fail(message.error)

    def fail(self, error: Exception) -> None:
        """End with an error for the caller to tell."""
        self.error = error
        self.exit(None)

    def on_unmount(self) -> None:
        """Nothing goes on behind the user's back."""
        if self.engine is not None:
            self.engine.stop()
