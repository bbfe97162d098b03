"""The command palette: every key's command, every run, and the options of the program by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from forensics.tui.keys import KEYS

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
                yield key.text, f"key {key.label}", _action(screen, key.action)
        for number in range(screen.runs):
            yield f"--run {number + 1}", "Look at this launch", _action(screen, f"to_run({number})")
        for severity in ("critical", "warning", "info"):
            words = f"Only events from {severity} on"
            yield f"--fail-on {severity}", words, _action(screen, f"only('sev:{severity}')")
        for rank in screen.ranks:
            action = f"only('rank:{rank}')"
            yield f"--rank {rank}", "Only the events of this rank", _action(screen, action)


def _action(screen: TimelineScreen, action: str) -> Callable[[], object]:
    async def run() -> None:
        await screen.run_action(action)

    return run
