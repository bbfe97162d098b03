"""What the fix changes: the best remedy that can be typed, or what the user names.

One variable at a time: a remedy that a release spells as several flags says so.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from forensics.findings import Finding, Remedy
from forensics.launch import Launch, Value
from forensics.launch.arguments import groups, tokens
from forensics.launch.naming import translate
from forensics.releases import Release, rename
from forensics.remedies import FREE_PORTS, is_runnable
from forensics.reproduce.model import Change

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_FIELD = re.compile(r"[a-z_][a-z0-9_]*")
_TRUE, _FALSE = ("true", "on", "yes", "1"), ("false", "off", "no", "0")


class PlanError(Exception):
    """No plan can be made; the text is one line for the user."""


@dataclass(slots=True)
class Choice:
    """What the fix has different from the control."""

    flags: dict[str, Value] = field(default_factory=dict)
    """By field of the release that runs; None: back to its default."""
    env: dict[str, str | None] = field(default_factory=dict)
    remedy: Remedy | None = None
    """Where it comes from the diagnosis."""
    merged: str | None = None
    """The one name of a change that the release spells as several flags."""
    is_start: bool = False
    """Where a search begins: it may be as the launch was."""

    def changes(self, launch: Launch) -> list[Change]:
        """The changes against a launch, as published."""
        flags = [
            Change(kind="flag", name=name, from_=launch.get(name), to=value)
            for name, value in self.flags.items()
            if not self.is_start or launch.get(name) != value
        ]
        env = [
            Change(kind="env", name=name, from_=launch.env.get(name), to=value)
            for name, value in self.env.items()
        ]
        return flags + env


def of_remedies(
    finding: Finding, release: Release, number: int | None = None, free_port: int | None = None
) -> Choice:
    """The best remedy that is typed on the command line, or the numbered one.

    Where a free port is advised, `free_port` is taken.

    Raises PlanError where there is none, or where it is left to the user.
    """
    remedies = [_filled(remedy, free_port) for remedy in finding.remedies]
    if number is not None:
        if number > len(remedies):
            has = f"{len(remedies)} remed{'y' if len(remedies) == 1 else 'ies'}"
            raise PlanError(f"--remedy {number}: {finding.rule} has {has}")
        return _of_remedy(remedies[number - 1], release)
    for remedy in remedies:
        if is_runnable(remedy) and _translated(remedy, release) is not None:
            return _of_remedy(remedy, release)
    if not remedies:
        raise PlanError(f"nothing is advised for {finding.rule}: --set names a change to try")
    _of_remedy(remedies[0], release)
    raise PlanError(f"no remedy for {finding.rule} can be typed: --set names a change to try")


def _filled(remedy: Remedy, free_port: int | None) -> Remedy:
    if free_port is None or remedy.kind != "flag" or remedy.to not in FREE_PORTS:
        return remedy
    return remedy.model_copy(update={"to": free_port})


def _of_remedy(remedy: Remedy, release: Release) -> Choice:
    if remedy.kind == "package":
        to = f" {remedy.to}" if remedy.to else ""
        raise PlanError(
            f"`{remedy.direction} {remedy.name}{to}` is yours to make: make it, and run the launch "
            "again with `forensics run`; or name the Python that has it with --python, and another "
            "change with --set"
        )
    if remedy.kind == "action":
        words = remedy.name.replace("_", " ")
        raise PlanError(f"`{words}` is yours to do: --set names a change that can be tried here")
    if not is_runnable(remedy):
        name = f"{remedy.name}=..."
        raise PlanError(f"`{remedy.name}` needs a value of yours: --set {name}")
    if remedy.kind == "env":
        gone = remedy.to is None or remedy.direction == "remove"
        return Choice(env={remedy.name: None if gone else str(remedy.to)}, remedy=remedy)
    flags = _translated(remedy, release)
    if not flags:
        raise PlanError(f"sglang {release.version} has no flag for {remedy.name}")
    return Choice(flags, remedy=remedy, merged=remedy.name if len(flags) > 1 else None)


def _translated(remedy: Remedy, release: Release) -> dict[str, Value] | None:
    if remedy.kind != "flag":
        return {}
    value = False if remedy.direction == "disable" and remedy.to is None else remedy.to
    return translate(remedy.name, value, release) or None


def of_words(settings: Sequence[str], unset: Sequence[str], release: Release) -> Choice:
    """What the user names: `flag=value`, `--flag=value`, a field or a VARIABLE; and what to unset.

    Raises PlanError for a flag that the release lacks, or a value of another type.
    """
    choice = Choice()
    for text in settings:
        name, equals, value = text.partition("=")
        if _VARIABLE.fullmatch(name) and equals:
            choice.env[name] = value
            continue
        field_name = field_of(name, release)
        choice.flags[field_name] = _value(field_name, value if equals else None, release)
    for name in unset:
        if _VARIABLE.fullmatch(name):
            choice.env[name] = None
        else:
            choice.flags[field_of(name, release)] = None
    return choice


def field_of(name: str, release: Release) -> str:
    """The field that a flag, a field, or one of another release, means. Raises PlanError."""
    flag = "--" + name.removeprefix("--").replace("_", "-")
    plain = flag[2:].replace("-", "_")
    if (known := rename(plain, release.version)) and release.flag(known):
        return known
    if found := release.field_for_flag(flag):
        return found
    from difflib import get_close_matches

    close = get_close_matches(plain, [n for n in release.fields if release.flag(n)], n=2)
    hint = f"; did you mean {' or '.join(close)}?" if close else ""
    shown = name if _FIELD.fullmatch(plain) else repr(name)
    raise PlanError(f"sglang {release.version} has no flag {shown}{hint}")


def _value(name: str, text: str | None, release: Release) -> Value:
    """A value as the release's parser would have it. Raises PlanError."""
    declared, flag = release.fields[name], release.flag(name)
    assert flag is not None
    if declared.kind in ("bool", "tristate"):
        word = (text if text is not None else "true").lower()
        if word not in _TRUE + _FALSE:
            raise PlanError(f"{name} is a switch: true or false, not {text!r}")
        return word in _TRUE
    if text is None:
        raise PlanError(f"{name} needs a value: --set {name}=...")
    if declared.kind == "str":
        return text
    words = _words_of(text) if declared.kind == "list" else [text]
    told = [f"{flag}={words[0]}"] if len(words) == 1 else [flag, *words]
    value = next(groups(told, release)).value
    numbers = {"int": (int,), "float": (int, float)}.get(declared.kind)
    if numbers is not None and (isinstance(value, bool) or not isinstance(value, numbers)):
        raise PlanError(f"{name} is a number, not {text!r}")
    if tokens(name, value, release) is None:
        raise PlanError(f"{name} cannot be typed for sglang {release.version}")
    return value


def _words_of(text: str) -> list[str]:
    """The values of a list, parted by blanks or commas."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return words[0].split(",") if len(words) == 1 else words
