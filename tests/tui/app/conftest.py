"""What the tests of the whole timeline share: a program that runs a script of keys."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from timeline_player import Play, Player, Script

from forensics.rules import Settings
from forensics.tui.app import TimelineApp
from forensics.tui.engine import Engine, Reader


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    """Runs a script on the timeline of some logs; gives the program when it has ended."""
    for name in ("TMUX", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def run(
        logs: list[Path] | Callable[[], Engine],
        script: Script,
        size: tuple[int, int] = (80, 24),
        *,
        wait: bool = True,
    ) -> TimelineApp:
        def make() -> Engine:
            return logs() if callable(logs) else Reader([str(path) for path in logs], Settings())

        app = TimelineApp(make, "forensics: reading")

        async def main() -> None:
            async with app.run_test(size=size, notifications=True) as pilot:
                player = Player(pilot)
                await player.until(lambda: len(app.screen_stack) > 1, "the timeline is there")
                if wait:
                    await player.ready()
                await script(player)

        asyncio.run(main())
        return app

    return run
