"""A timeline that is running, for tests: press keys, look at the screen."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import cast

from textual.pilot import Pilot

from forensics.tui.app import TimelineApp
from forensics.tui.desk import Desk
from forensics.tui.raw import RawPane
from forensics.tui.screen import TimelineScreen
from forensics.tui.table import EventTable

PATIENCE_S = 30.0


class Player:
    """One running timeline: press keys, look at the screen."""

    def __init__(self, pilot: Pilot[int]) -> None:
        self.pilot = pilot
        self.app = cast(TimelineApp, pilot.app)

    @property
    def screen(self) -> TimelineScreen:
        """The timeline, whatever lies on top of it."""
        found = [one for one in self.app.screen_stack if isinstance(one, TimelineScreen)]
        return found[-1]

    @property
    def desk(self) -> Desk:
        """Where one looks."""
        assert self.screen.desk is not None
        return self.screen.desk

    async def press(self, *keys: str) -> None:
        """Press keys one after the other, each once the last one's work is done."""
        for key in keys:
            await self.pilot.press(key)
            await self.pilot.pause()

    async def until(self, true: Callable[[], object], what: str = "") -> None:
        """Wait until something holds."""
        for _ in range(int(PATIENCE_S / 0.02)):
            if true():
                return
            await self.pilot.pause(0.02)
        raise AssertionError(f"still not: {what or true}")

    async def ready(self) -> None:
        """Wait until everything is read and drawn."""
        await self.until(lambda: len(self.app.screen_stack) > 1, "the timeline is there")
        await self.until(lambda: self.screen.desk is not None, "the log is diagnosed")
        await self.until(lambda: self.screen.engine.store.complete, "the log is indexed")
        table = self.screen.pages.table
        await self.until(lambda: table._rows and table._rows.complete, "the events are found")
        await self.pilot.pause(0.25)

    async def settle(self) -> None:
        """Wait until nothing moves, and put the cursors where they stand at leisure.

        How far a table was indexed when the cursor came decides where in it the row stands.
        """
        await self.pilot.pause(0.4)
        pages = self.screen.pages
        for pane in (pages.table, pages.raw):
            pane.go(0)
            pane.go(pane.cursor if self.screen.desk is None else _row(pane, self.desk), center=True)
        await self.pilot.pause(0.2)

    def lines(self) -> list[str]:
        """The screen as text."""
        compositor = self.app.screen._compositor
        strips = compositor.render_strips(self.app.size)
        lines = ["".join(part.text for part in strip).rstrip() for strip in strips]
        return lines or [""]

    def text(self) -> str:
        """The screen as one text."""
        return "\n".join(self.lines())


def _row(pane: EventTable | RawPane, desk: Desk) -> int:
    """The row of the selected line."""
    source, line = desk.selection.source, desk.selection.line or 1
    if isinstance(pane, RawPane):
        return line - 1
    return pane._rows.row_of(source, line) if pane._rows else 0


Script = Callable[[Player], Awaitable[None]]
Play = Callable[..., TimelineApp]
