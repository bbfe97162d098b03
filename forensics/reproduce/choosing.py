"""What a fix has different from its control: flags, variables, words to leave out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from forensics.findings import Remedy
from forensics.launch import Launch, Value, with_changes
from forensics.launch.arguments import groups
from forensics.reproduce.model import Change


class PlanError(Exception):
    """No plan can be made; the text is one line for the user."""


@dataclass(slots=True)
class Choice:
    """What the fix has different from the control."""

    flags: dict[str, Value] = field(default_factory=dict)
    """By field of the release that runs; None: back to its default."""
    env: dict[str, str | None] = field(default_factory=dict)
    """None: taken away."""
    drop: tuple[str, ...] = ()
    """Flags to leave out, as they stand in the command: the release does not know them."""
    remedy: Remedy | None = None
    """Where it comes from the diagnosis."""
    merged: str | None = None
    """The one name of a change that the release spells as several flags."""
    is_start: bool = False
    """Where a search begins: it may be as the launch was."""

    def changes(self, launch: Launch) -> list[Change]:
        """The changes against a launch, as published."""
        flags = [
            Change(kind="flag", name=name, from_=None if self.drop else launch.get(name), to=value)
            for name, value in self.flags.items()
            if not self.is_start or launch.get(name) != value
        ]
        env = [
            Change(kind="env", name=name, from_=launch.env.get(name), to=value)
            for name, value in self.env.items()
        ]
        gone = [
            Change(kind="flag", name=flag[2:].replace("-", "_"), from_=typed_value(launch, flag))
            for flag in self.drop
        ]
        return flags + env + gone

    def applied(self, launch: Launch) -> Launch:
        """A launch, whose command is known, with the choice."""
        kept = replace(launch, command=_without(launch, self.drop))
        return with_changes(kept, self.flags, self.env)


def typed_value(launch: Launch, flag: str) -> str | None:
    """The value that a flag has in the command, as it was typed; "" for one that has none.

    None where the flag does not stand there.
    """
    for tokens in _groups(launch):
        name, _, value = tokens[0].partition("=")
        if name == flag:
            return value or " ".join(tokens[1:])
    return None


def _groups(launch: Launch) -> Iterator[tuple[str, ...]]:
    """The program, then flags with their values."""
    words, length = launch.command or [], len(launch.program)
    yield tuple(words[:length])
    yield from (group.tokens for group in groups(words[length:], launch.table()))


def _without(launch: Launch, flags: Sequence[str]) -> list[str]:
    parts = (part for part in _groups(launch) if part)
    return [word for part in parts if part[0].split("=", 1)[0] not in flags for word in part]
