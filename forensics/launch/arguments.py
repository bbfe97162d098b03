"""Values to command-line tokens and back, as a release's argument parser has it.

Facts: launch arguments, sections 3 and 7.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from typing import Literal

from forensics.launch.model import Value
from forensics.launch.redact import redact_named
from forensics.releases import Declared, ExtraFlag, Release, releases, table

Takes = Literal["0", "1", "?", "*"]

_NEGATIVE = re.compile(r"-\d+|-\d*\.\d+")
"""What argparse takes for a number and not for a flag."""
_COUNT = re.compile(r"(\d+(?:\.\d+)?)(k|M|G|T|Ki|Mi|Gi|Ti)")
_POWER = {"k": 1, "M": 2, "G": 3, "T": 4}


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
    """Whether argparse takes a word for a flag, given that no flag holds a blank."""
    if len(token) < 2 or token[0] != "-" or _NEGATIVE.fullmatch(token):
        return False
    return " " not in token.partition("=")[0]


def _takes(declared: Declared | None, extra: ExtraFlag | None) -> Takes | None:
    if declared is not None:
        if declared.kind in ("bool", "tristate"):
            return "0"
        if declared.kind == "list":
            return "*"
        return "?" if declared.nargs == "?" else "1"
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
        return [_item(v, declared) for v in values]
    if declared.kind == "json" and values:
        return _json(values[0])
    if declared.kind in ("int", "float", "other"):
        if declared.kind == "other" and isinstance(declared.default, bool):
            return bool(values and values[0])  # declared with type=bool: any text is true
        return _number(values[0], declared.kind) if values else None
    return redact_named(declared.name, values[0]) if values else True


def _item(text: str, declared: Declared) -> Value:
    if declared.items != "str":
        return _number(text, declared.items)
    is_object = declared.name == "lora_paths" and text.strip().startswith("{")
    return _json(text) if is_object else redact_named(declared.name, text)


def _first(values: list[str]) -> Value:
    return _scalar(values[0]) if values else None


def _number(text: str, kind: str) -> Value:
    value = _scalar(text)
    return float(value) if kind == "float" and isinstance(value, int) else value


def _scalar(text: str) -> Value:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    if found := _COUNT.fullmatch(text):
        unit = found[2].removesuffix("i")
        return int(float(found[1]) * (1024 if unit != found[2] else 1000) ** _POWER[unit])
    return text


def _json(text: str) -> Value:
    try:
        value: Value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


def tokens(field: str, value: Value, release: Release) -> list[str] | None:
    """The tokens that set a field; [] where nothing can or need be written, None without a flag.

    A value that begins with a dash is joined to its flag by `=`: else it would be taken for one.
    """
    declared = release.fields.get(field)
    flag = release.flag(field)
    if declared is None or flag is None:
        return None
    if value is None or untypable(field, value, release) is not None:
        return []
    if declared.kind == "tristate" and value is False:
        return [f"--no-{flag[2:]}"]
    if isinstance(value, bool) and declared.kind not in ("other", "json"):
        return [flag] if value else []
    if declared.kind == "list":
        words = [_text(item) for item in (value if isinstance(value, list) else [value])]
        return [flag, *words] if len(words) != 1 else _joined(flag, words[0])
    return _joined(flag, _json_text(value) if declared.kind == "json" else _text(value))


def untypable(field: str, value: Value, release: Release) -> str | None:
    """Why no command line of a release gives a field this value; None where one does.

    Such a value was made by resolution, or by a program that started the server.
    """
    declared = release.fields.get(field)
    if declared is None or not declared.flags:
        return "has no flag"
    if value is False and declared.kind == "bool" and declared.default is True:
        return "can be switched on by its flag, not off"
    items = value if isinstance(value, list) else [value]
    words = [_text(item) for item in items if isinstance(item, str)]
    if any("\0" in word for word in words):
        return "holds a NUL byte"
    if declared.kind == "json":
        return None
    if "--" in words:
        return "is `--`, which ends the flags"
    if declared.kind == "list" and isinstance(value, list):
        if not value and declared.nargs != "*":
            return "is an empty list, where the flag wants a value"
        if len(value) > 1 and any(w.startswith("-") and not _NEGATIVE.fullmatch(w) for w in words):
            return "is a list with an item that reads as a flag"
    return None


def _joined(flag: str, text: str) -> list[str]:
    return [f"{flag}={text}"] if text.startswith("-") else [flag, text]


def _json_text(value: Value) -> str:
    """JSON that the parser loads; text that is JSON of an object already is meant as such."""
    is_json = isinstance(value, str) and isinstance(_json(value), dict | list)
    return str(value) if is_json else json.dumps(value)


def _text(value: Value) -> str:
    if isinstance(value, dict | list):
        return json.dumps(value)
    if isinstance(value, float) and math.isfinite(value) and value < 0:
        return f"{Decimal(repr(value)):f}"  # argparse takes -1e-05 for a flag
    return str(value)
