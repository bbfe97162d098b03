"""What became of a launch's flags between the release of the log and the one at hand.

Facts: launch arguments, sections 3 and 7, and the table of each release.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from forensics.launch import Launch, Value
from forensics.launch.arguments import groups, tokens
from forensics.launch.naming import translate
from forensics.releases import NO_DEFAULT, Release

_MEMORY = (
    "mem_fraction_static",
    "chunked_prefill_size",
    "max_prefill_tokens",
    "max_running_requests",
    "page_size",
    "kv_cache_dtype",
    "schedule_conservativeness",
    "trust_remote_code",
)
"""Fields whose default decides what a launch takes or may do, though nobody typed them."""


@dataclass(frozen=True, slots=True)
class Moved:
    """A flag that is not what it was."""

    what: str
    """As it is in the log."""
    now: str | None
    """As it is here; None where there is nothing like it."""
    how: Literal["renamed", "deprecated", "gone", "default"]


def moved(command: Sequence[str], launch: Launch, here: Release) -> list[Moved]:
    """What of a command reads otherwise in the release here, and which defaults it would meet."""
    there = launch.table()
    typed: set[str] = set()
    found: list[Moved] = []
    for flag, field, value in _flags(command, launch, there):
        typed.add(field or flag)
        if (change := _changed(flag, field, value, there, here)) is not None:
            found.append(change)
    return [*found, *_defaults(typed, there, here)]


def rewritten(command: Sequence[str], launch: Launch, here: Release) -> list[str]:
    """The command in the words of the release here; what it has no word for stays as it is."""
    there, length = launch.table(), len(launch.program)
    words: list[str] = list(command[:length])
    for group in groups(list(command[length:]), there):
        change = None
        if group.field is not None:
            flag = group.tokens[0].split("=", 1)[0]
            change = _changed(flag, group.field, group.value, there, here)
        new = None
        if change is not None and change.how != "gone" and group.field is not None:
            new = _words(group.field, group.value, here)
        words += new if new is not None else group.tokens
    return words


def _flags(
    command: Sequence[str], launch: Launch, there: Release
) -> Iterator[tuple[str, str | None, Value]]:
    for group in groups(list(command[len(launch.program) :]), there):
        if group.tokens[0].startswith("--"):
            yield group.tokens[0].split("=", 1)[0], group.field, group.value


def _changed(
    flag: str, field: str | None, value: Value, there: Release, here: Release
) -> Moved | None:
    """What became of one flag; None where it means here what it meant there."""
    full = here.matching(flag)
    if full is not None and (field is None or here.field_for_flag(flag) == field):
        own = here.fields.get(field) if field else None
        if own is None or full in own.flags or there.matching(flag) in there.extra:
            return None
        words = _words(field or "", value, here)
        return Moved(flag, " ".join(words) if words else None, "deprecated") if words else None
    if field is None:
        return Moved(flag, None, "gone") if there.matching(flag) else None
    words = _words(field, value, here)
    if not words:
        return Moved(flag, None, "gone")
    if here.matching(flag) is not None and words[0].split("=", 1)[0] == flag:
        return None
    return Moved(flag, " ".join(words), "deprecated" if full is not None else "renamed")


def _words(field: str, value: Value, here: Release) -> list[str] | None:
    """The words that set a field in the release here; None if it has none."""
    found = translate(field, value, here)
    if not found:
        return None
    words: list[str] = []
    for name, said in found.items():
        part = tokens(name, said, here)
        if part is None:
            return None
        words += part
    return words


def _defaults(typed: set[str], there: Release, here: Release) -> Iterator[Moved]:
    for name in _MEMORY:
        old, new = there.default(name), here.default(name)
        if name in typed or NO_DEFAULT in (old, new) or old == new:
            continue
        yield Moved(f"{name} (default {old})", f"{new}", "default")
