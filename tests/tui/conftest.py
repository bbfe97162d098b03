"""What the tests of the panes share: a program with one pane in it, and logs to show."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.message import Message
from textual.pilot import Pilot
from textual.widget import Widget

from forensics import pipeline
from forensics.reading import find_sources
from forensics.tui.model import Copied, FindingChosen, LineChosen, Loaded, loaded_from
from forensics.tui.store import EventStore

Script = Callable[[Pilot[None], Any], Awaitable[None]]


class Harness(App[None]):
    """Shows one pane and keeps what it tells."""

    ENABLE_COMMAND_PALETTE = False

    def __init__(self, make: Callable[[], Widget]) -> None:
        super().__init__()
        self.make = make
        self.told: list[Message] = []

    def compose(self) -> ComposeResult:
        yield self.make()

    def on_mount(self) -> None:
        self.theme = "ansi-dark"

    def on_line_chosen(self, message: LineChosen) -> None:
        self.told.append(message)

    def on_finding_chosen(self, message: FindingChosen) -> None:
        self.told.append(message)

    def on_copied(self, message: Copied) -> None:
        self.told.append(message)


@pytest.fixture
def drive() -> Callable[..., Harness]:
    """Runs a script on a pane; gives the program with what the pane told."""

    def run(
        make: Callable[[], Widget], script: Script, size: tuple[int, int] = (80, 24)
    ) -> Harness:
        app = Harness(make)

        async def main() -> None:
            async with app.run_test(size=size) as pilot:
                pane = app.screen.children[0]
                pane.focus()
                await pilot.pause()
                await script(pilot, pane)

        asyncio.run(main())
        return app

    return run


def text_of(widget: Widget) -> list[str]:
    """The lines of a widget as they stand on the screen."""
    return ["".join(part.text for part in widget.render_line(y)) for y in range(widget.size.height)]


@pytest.fixture
def lines_of() -> Callable[[Widget], list[str]]:
    return text_of


@pytest.fixture
def load() -> Callable[[Path], Loaded]:
    return lambda path: loaded_from(pipeline.analyze([str(path)]))


@pytest.fixture
def store_of() -> Iterator[Callable[..., EventStore]]:
    stores: list[EventStore] = []

    def make(*paths: Path) -> EventStore:
        store = EventStore(find_sources([str(path) for path in paths])[0])
        stores.append(store)
        store.start()
        assert store.wait(60)
        return store

    yield make
    for store in stores:
        store.close()
