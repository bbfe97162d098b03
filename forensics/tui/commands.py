"""The command palette: every key's command, every run, and the options of the program by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from forensics.tui.keys import KEYS
from forensics.views.clean import one_line

if TYPE_CHECKING:
    from forensics.tui.screen import TimelineScreen

_NOT_HERE = frozenset({"app.command_palette"})


class ToolCommands(Provider):
    """Commands have the words of the help; options the names of the command line."""

    async def discover(self) -> Hits:
        """All commands, before anything is typed."""
        for name, words, run in self._commands():
            yield DiscoveryHit(name, run, help=words)

    async def search(self, query: str) -> Hits:
        """The commands that fit what is typed."""
        matcher = self.matcher(query)
        for name, words, run in self._commands():
            if (score := matcher.match(f"{name} {words}")) > 0:
                yield Hit(score, matcher.highlight(name), run, help=words)

    def _commands(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        screen = cast("TimelineScreen", self.screen)
        for key in KEYS:
            if key.action not in _NOT_HERE:
                yield key.text, f"key {key.label}", partial(screen.run_action, key.action)
        desk = screen.desk
        runs = len(desk.loaded.diagnosis.reports) if desk else 0
        for number in range(runs):
            yield (
                f"--run {number + 1}",
                "Look at this launch",
                partial(screen.action_to_run, number),
            )
        for severity in ("critical", "warning", "info"):
            words = f"Only events from {severity} on"
            yield f"--fail-on {severity}", words, partial(screen.only, f"sev:{severity}")
        for rank in desk.report.run.tags if desk else []:
            words = "Only the events of this rank"
            yield f"--rank {one_line(rank)}", words, partial(screen.only, f'rank:"{rank}"')
