"""A launch with something changed, written as a command, and the difference of two launches."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from forensics.launch.arguments import groups, tokens
from forensics.launch.command import read_flags
from forensics.launch.minimal import grouped
from forensics.launch.model import Launch, Value
from forensics.launch.naming import translate
from forensics.launch.redact import redact_named
from forensics.releases import names_of


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a difference: kept (" "), taken away ("-") or added ("+")."""

    sign: Literal[" ", "-", "+"]
    text: str


def with_changes(
    launch: Launch, changes: Mapping[str, Value], env: Mapping[str, str | None]
) -> Launch:
    """A launch with flags and variables set; None takes one back to its default.

    Fields may be named as in any release and are written as in the launch's own. A change that
    its release cannot express is left out: see `unsupported`.
    """
    release = launch.table()
    after = dataclasses.replace(
        launch,
        flags=dict(launch.flags),
        env=dict(launch.env),
        command=None if launch.command is None else list(launch.command),
        typed=set(launch.typed),
        removed=set(launch.removed),
    )
    for wanted, wanted_value in changes.items():
        for field, value in (translate(wanted, wanted_value, release) or {}).items():
            _set(after, field, value)
    for name, text in env.items():
        if text is None:
            after.env.pop(name, None)
        else:
            after.env[name] = redact_named(name, text)
    return after


def unsupported(launch: Launch, changes: Mapping[str, Value]) -> list[str]:
    """The changes that the launch's release has no flag for."""
    release = launch.table()
    return [name for name, value in changes.items() if translate(name, value, release) is None]


def _set(launch: Launch, field: str, value: Value) -> None:
    names = names_of(field)
    if not any(name in launch.flags for name in names):
        launch.flags[field] = value
    launch.flags = {
        field if name in names else name: value if name in names else kept
        for name, kept in launch.flags.items()
    }
    if value is None or value is False:
        launch.removed.add(field)
        launch.typed.discard(field)
    else:
        launch.removed.discard(field)
        launch.typed.add(field)
    if launch.command is not None:
        launch.command = _edited(launch, field, value)


def _edited(launch: Launch, field: str, value: Value) -> list[str]:
    """The typed command with one field set where it stood, or at the end."""
    assert launch.command is not None
    release = launch.table()
    new = tokens(field, value, release) or []
    length = len(launch.program)
    words: list[str] = list(launch.command[:length])
    names = names_of(field)
    for group in groups(launch.command[length:], release):
        if group.field in names:
            words += new
            new = []
        else:
            words += group.tokens
    return words + new


def with_command(launch: Launch, command: Launch) -> Launch:
    """A dumped launch joined with the command that was seen: what was typed, and the rest.

    The dump's values win, since they are what ran; the command fills what the dump lacks.
    """
    words = command.command or []
    release = launch.table() if launch.flags or launch.release else None
    flags = read_flags(words[len(command.program) :], release)
    merged: dict[str, Value] = {**command.flags, **flags, **launch.flags}
    return dataclasses.replace(
        launch,
        flags=merged,
        env={**command.env, **launch.env},
        command=list(words),
        program=list(command.program),
        typed=set(command.flags) | set(flags),
    )


def render(words: Sequence[str], env: Mapping[str, str] | None = None) -> str:
    """A command to copy: variables first, then one flag with its values a line."""
    first: list[str] = []
    rest = list(words)
    while rest and not rest[0].startswith("--"):
        first.append(rest.pop(0))
    lines = [f"{name}={shlex.quote(value)}" for name, value in (env or {}).items()]
    if first:
        lines.append(shlex.join(first))
    lines += [f"  {shlex.join(group.tokens)}" for group in groups(rest, None)]
    return " \\\n".join(lines)


def diff(before: Launch, after: Launch) -> list[DiffLine]:
    """What changed from one launch to another: variables, program, then flag by flag."""
    old, new = _lines(before), _lines(after)
    lines: list[DiffLine] = []
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            lines += [DiffLine(" ", text) for text in old[i1:i2]]
            continue
        lines += [DiffLine("-", text) for text in old[i1:i2]]
        lines += [DiffLine("+", text) for text in new[j1:j2]]
    return lines


def _lines(launch: Launch) -> list[str]:
    lines = [f"{name}={shlex.quote(value)}" for name, value in launch.env.items()]
    return lines + [shlex.join(group) for group in grouped(launch.argv(), launch)]
