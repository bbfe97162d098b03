"""A change in the user's words: `flag=value`, a field, a VARIABLE, or something to unset."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence

from forensics.launch import Launch, Value
from forensics.launch.arguments import groups, tokens
from forensics.releases import Release, rename
from forensics.reproduce.choosing import Choice, PlanError, typed_value

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_FIELD = re.compile(r"[a-z_][a-z0-9_]*")
_TRUE, _FALSE = ("true", "on", "yes", "1"), ("false", "off", "no", "0")


def of_words(settings: Sequence[str], unset: Sequence[str], launch: Launch) -> Choice:
    """The choice that the user names; what is unset may be a flag that the release lacks.

    Raises PlanError for a flag that the release lacks, or a value of another type.
    """
    choice, release = Choice(), launch.table()
    for text in settings:
        name, equals, value = text.partition("=")
        if _VARIABLE.fullmatch(name) and equals:
            choice.env[name] = value
            continue
        field_name = field_of(name, release)
        choice.flags[field_name] = value_of(field_name, value if equals else None, release)
    for name in unset:
        if _VARIABLE.fullmatch(name):
            _not_set(name, choice.env)
            choice.env[name] = None
        elif release.matching(name) is None and typed_value(launch, name) is not None:
            choice.drop += (name,)
        else:
            field_name = field_of(name, release)
            _not_set(field_name, choice.flags)
            choice.flags[field_name] = None
    return choice


def _not_set(name: str, named: Collection[str]) -> None:
    if name in named:
        raise PlanError(f"{name} is both set and unset")


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


def value_of(name: str, text: str | None, release: Release) -> Value:
    """A value as the release's parser would have it. Raises PlanError."""
    declared, flag = release.fields[name], release.flag(name)
    assert flag is not None
    if declared.kind in ("bool", "tristate"):
        word = (text if text is not None else "true").lower()
        if word not in _TRUE + _FALSE:
            raise PlanError(f"{name} is a switch: true or false, not {text!r}")
        return word in _TRUE
    if text is None:
        raise PlanError(f"{name} needs a value: {name}=...")
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
