"""Values to command-line tokens and back, as a release's argument parser has it.

Facts: launch arguments, sections 3 and 7.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from forensics.launch.model import Value
from forensics.launch.redact import redact_named
from forensics.releases import Declared, ExtraFlag, Release, releases, table

Takes = Literal["0", "1", "?", "*"]


@dataclass(frozen=True, slots=True)
class Group:
    """A flag with its values, as adjacent tokens; a word that belongs to no flag stands alone."""

    tokens: tuple[str, ...]
    field: str | None = None
    value: Value = None


def groups(arguments: Sequence[str], release: Release | None) -> Iterator[Group]:
    """Split arguments into flags with their values; unknown flags and words are kept.

    Without a release a flag means what the newest release that declares it says.
    """
    index = 0
    while index < len(arguments):
        token = arguments[index]
        index += 1
        if not token.startswith("--"):
            yield Group((token,))
            continue
        name, equals, inline = token.partition("=")
        declared, extra = _meaning(name, release)
        takes = _takes(declared, extra)
        values = [inline] if equals else _values(arguments, index, takes)
        if not equals:
            index += len(values)
        tokens = (token,) if equals else (token, *values)
        field = declared.name if declared else extra.field if extra else None
        yield Group(tokens, field, _value(name, values, declared, extra))


def _values(arguments: Sequence[str], start: int, takes: Takes | None) -> list[str]:
    most = {"0": 0, "1": 1, "?": 1, "*": len(arguments), None: 1}[takes]
    values: list[str] = []
    for token in arguments[start : start + most]:
        if _is_flag(token):
            break
        values.append(token)
    return values


def _is_flag(token: str) -> bool:
    return token.startswith("--") or (
        len(token) > 1 and token[0] == "-" and not token[1:].replace(".", "").isdigit()
    )


def _takes(declared: Declared | None, extra: ExtraFlag | None) -> Takes | None:
    if declared is not None:
        if declared.kind in ("bool", "tristate"):
            return "0"
        if declared.kind == "list":
            return "*"
        return "?" if declared.optional_value else "1"
    return extra.takes if extra is not None else None


def _meaning(flag: str, release: Release | None) -> tuple[Declared | None, ExtraFlag | None]:
    return _any_meaning(flag) if release is None else _known_meaning(flag, release.version)


@cache
def _known_meaning(flag: str, version: str) -> tuple[Declared | None, ExtraFlag | None]:
    release = table(version)
    full = release.matching(flag)
    if full is None:
        return None, None
    field = release.field_for_flag(full)
    declared = release.fields.get(field) if field else None
    if declared is not None and full in declared.flags:
        return declared, None
    return None, release.extra.get(full)


@cache
def _any_meaning(flag: str) -> tuple[Declared | None, ExtraFlag | None]:
    exact = [v for v in releases() if flag in _spellings(v)]
    for version in reversed(exact or releases()):
        found = _known_meaning(flag, version)
        if found != (None, None):
            return found
    return None, None


@cache
def _spellings(version: str) -> frozenset[str]:
    release = table(version)
    flags = {flag for declared in release.fields.values() for flag in declared.flags}
    return frozenset(flags | set(release.extra))


def _value(
    flag: str, values: list[str], declared: Declared | None, extra: ExtraFlag | None
) -> Value:
    if extra is not None:
        const: Value = extra.const
        if const is not None:
            return const
        return [_scalar(v) for v in values] if extra.takes == "*" else _first(values)
    if declared is None:
        return redact_named(flag, values[0]) if values else True
    if declared.kind in ("bool", "tristate"):
        return not flag.startswith("--no-")
    if declared.kind == "list":
        return [_scalar(v) for v in values]
    if declared.kind == "json" and values:
        return _json(values[0])
    if declared.kind in ("int", "float", "other"):
        return _first(values)
    return redact_named(declared.name, values[0]) if values else True


def _first(values: list[str]) -> Value:
    return _scalar(values[0]) if values else None


def _scalar(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _json(text: str) -> Value:
    try:
        value: Value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


def tokens(field: str, value: Value, release: Release) -> list[str] | None:
    """The tokens that set a field; [] where nothing has to be written, None without a flag."""
    declared = release.fields.get(field)
    flag = release.flag(field)
    if declared is None or flag is None:
        return None
    if value is None:
        return []
    if declared.kind == "tristate" and value is False:
        return [f"--no-{flag[2:]}"]
    if isinstance(value, bool):
        return [flag] if value else []
    if isinstance(value, list) and declared.kind != "json":
        return [flag, *map(_text, value)] if value else []
    text = _text(value)
    return [f"{flag}={text}"] if text.startswith("-") else [flag, text]


def _text(value: Value) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value)
    return str(value)
