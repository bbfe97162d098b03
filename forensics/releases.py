"""What each SGLang release declares: ServerArgs fields, defaults and flags.

The table is data, made from the published wheels by `scripts/make_releases.py`; it is read
on first use. Versions between two known releases get the table of the older one.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from importlib.resources import files
from typing import Any, Literal

Kind = Literal["bool", "tristate", "int", "float", "str", "list", "json", "other"]

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:[.-]?(dev|rc|post)(\d+))?(?:\.dev(\d+))?")
_STAGE = {"dev": 0, "rc": 1, None: 2, "post": 3}
_MAX_NUMBER = 9


class Missing(Enum):
    """Why there is no default."""

    DEFAULT = "not a literal, or required"


NO_DEFAULT = Missing.DEFAULT
"""Default of a field that has none, or one that is computed when the server starts."""


def version_key(version: str) -> tuple[int, ...]:
    """A sort key: 0.5.9.dev12 < 0.5.9rc1 < 0.5.9 < 0.5.9.post1; unreadable text sorts first."""
    match = _VERSION.match(version)
    if match is None:
        return (0, 0, 0, 0, 0, 0)
    major, minor, patch, stage, count, dev = match.groups()
    numbers = [int(n[:_MAX_NUMBER]) for n in (major, minor, patch or "0", count or "0")]
    return (*numbers[:3], _STAGE[stage], numbers[3], 0 if dev else 1)


@dataclass(frozen=True, slots=True)
class Declared:
    """One field as a release declares it."""

    name: str
    kind: Kind
    flags: tuple[str, ...]
    """Long flags, the declared main one first; empty where the field has none."""
    default: Any = NO_DEFAULT
    """What a launch has without the flag: the parser's default, where the class has another."""
    fallback: Any = None
    """What a resolved dump shows for a default of None, from 0.5.20."""
    choices: tuple[Any, ...] = ()
    nargs: Literal["+", "*", "?"] | None = None
    """How many values the flag takes, as argparse has it; None: one, or none for a switch."""
    items: Literal["int", "float", "str"] = "str"
    """What the values of a list are."""


@dataclass(frozen=True, slots=True)
class ExtraFlag:
    """A flag that is no field's own: deprecated, or meaningful to the parser only."""

    flag: str
    field: str | None
    takes: Literal["0", "1", "*"]
    const: Any = None


@dataclass(frozen=True, slots=True)
class Release:
    """The fields and flags of one release."""

    version: str
    fields: dict[str, Declared]
    extra: dict[str, ExtraFlag] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Whether this release declares the field."""
        return name in self.fields

    def default(self, name: str) -> Any:
        """The declared default; NO_DEFAULT where it is unknown or the field is."""
        declared = self.fields.get(name)
        return NO_DEFAULT if declared is None else declared.default

    def is_default(self, name: str, value: object) -> bool:
        """Whether a dumped value is what the field has when nobody sets it."""
        declared = self.fields.get(name)
        if declared is None:
            return False
        if declared.default is None and declared.fallback is not None:
            return value is None or _same(value, declared.fallback)
        return _same(value, declared.default)

    def flag(self, name: str) -> str | None:
        """The long flag to write: the field's own spelling where accepted, else the main one."""
        declared = self.fields.get(name)
        if declared is None or not declared.flags:
            return None
        own = "--" + name.replace("_", "-")
        return own if own in declared.flags else declared.flags[0]

    def matching(self, flag: str) -> str | None:
        """The full flag that argparse would take for this text: exact, or a unique prefix."""
        known = _flag_index(self.version)
        if flag in known:
            return flag
        if len(flag) < 3:
            return None
        found = [full for full in known if full.startswith(flag)]
        return found[0] if len(found) == 1 else None

    def field_for_flag(self, flag: str) -> str | None:
        """The field set by a flag, an alias or a unique prefix; None if unknown or ambiguous."""
        full = self.matching(flag.split("=", 1)[0])
        return None if full is None else _flag_index(self.version)[full]


def _same(left: object, right: object) -> bool:
    return (type(left) is type(right) and left == right) or (
        isinstance(left, int | float)
        and isinstance(right, int | float)
        and not isinstance(left, bool)
        and not isinstance(right, bool)
        and left == right
    )


@cache
def _document() -> dict[str, Any]:
    packed = files("forensics").joinpath("releases.json.gz").read_bytes()
    document: dict[str, Any] = json.loads(gzip.decompress(packed))
    return document


@cache
def releases() -> list[str]:
    """The releases known, oldest first."""
    return sorted(_document(), key=version_key)


@cache
def _tables() -> dict[str, Release]:
    tables: dict[str, Release] = {}
    fields: dict[str, Declared] = {}
    extra: dict[str, ExtraFlag] = {}
    for version in releases():
        delta = _document()[version]
        fields = _without(fields, delta["fields"]["drop"])
        fields |= {name: _declared(name, raw) for name, raw in delta["fields"]["set"].items()}
        if "order" in delta:
            fields = {name: fields[name] for name in delta["order"]}
        extra = _without(extra, delta["flags"]["drop"])
        extra |= {flag: _extra(flag, raw) for flag, raw in delta["flags"]["set"].items()}
        tables[version] = Release(version, dict(fields), dict(extra))
    return tables


def _without(table: dict[str, Any], gone: list[str]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if name not in gone}


def _declared(name: str, raw: dict[str, Any]) -> Declared:
    return Declared(
        name=name,
        kind=raw["kind"],
        flags=tuple(raw["flags"]),
        default=raw.get("default", NO_DEFAULT),
        fallback=raw.get("fallback"),
        choices=tuple(raw.get("choices", ())),
        nargs=raw.get("nargs"),
        items=raw.get("items", "str"),
    )


def _extra(flag: str, raw: dict[str, Any]) -> ExtraFlag:
    return ExtraFlag(flag, raw.get("field"), raw["takes"], raw.get("const"))


@cache
def _flag_index(version: str) -> dict[str, str | None]:
    release = _tables()[version]
    index: dict[str, str | None] = {flag: e.field for flag, e in release.extra.items()}
    for declared in release.fields.values():
        index |= dict.fromkeys(declared.flags, declared.name)
    return index


def table(version: str) -> Release:
    """The table of the nearest known release at or below a version.

    A development version belongs below its release: what a flag was called in the release
    before is accepted there, what it is called in the one to come may not be. Older than all
    known, or unreadable: the oldest.
    """
    key = version_key(version)
    below = [known for known in releases() if version_key(known) <= key]
    return _tables()[below[-1] if below else releases()[0]]


_NAMES = (
    ("cuda_graph_max_bs", "cuda_graph_max_bs_decode"),
    ("cuda_graph_bs", "cuda_graph_bs_decode"),
    ("piecewise_cuda_graph_max_tokens", "cuda_graph_max_bs_prefill"),
    ("piecewise_cuda_graph_tokens", "cuda_graph_bs_prefill"),
    ("piecewise_cuda_graph_compiler", "cuda_graph_tc_compiler"),
    ("nsa_prefill", "nsa_prefill_backend", "dsa_prefill_backend"),
    ("nsa_decode", "nsa_decode_backend", "dsa_decode_backend"),
    (
        "enable_nsa_prefill_context_parallel",
        "enable_dsa_prefill_context_parallel",
        "enable_prefill_cp",
    ),
    ("mamba_scheduler_strategy", "mamba_radix_cache_strategy"),
    ("max_micro_batch_size", "pp_max_micro_batch_size"),
    ("hybrid_kvcache_ratio", "swa_full_tokens_ratio"),
)
"""Concepts that changed their field's name, oldest name first (launch arguments, section 7)."""


def names_of(name: str) -> tuple[str, ...]:
    """All names that a field's concept has had, oldest first; the name alone if it never moved."""
    return next((group for group in _NAMES if name in group), (name,))


def rename(name: str, version: str) -> str | None:
    """The name that a field's concept has in a release; None if the release has none."""
    release = table(version)
    if release.has(name):
        return name
    return next((other for other in names_of(name) if release.has(other)), None)


def guess_release(
    field_names: Collection[str], within: tuple[str, str] | None = None
) -> tuple[str, str] | None:
    """Oldest and newest release whose fields fit a dump best; None if none shares a field.

    A field that a release does not declare counts against it. A field that it declares, ahead
    of the last one dumped, and that the dump lacks counts too, unless the dump was clearly
    abridged by hand. `within` bounds the candidates, as the form of the dump does.
    """
    names = frozenset(field_names)
    candidates = [v for v in releases() if within is None or _between(v, within)]
    scores = {v: _misfit(names, _tables()[v]) for v in candidates}
    fitting = {v: score for v, score in scores.items() if score is not None}
    if not fitting:
        return None
    best = min(fitting.values())
    found = [v for v, score in fitting.items() if score == best]
    return found[0], found[-1]


def _between(version: str, within: tuple[str, str]) -> bool:
    return version_key(within[0]) <= version_key(version) <= version_key(within[1])


_ABRIDGED = 0.7
"""A dump with less than this share of the fields ahead of its last one was cut by hand."""


def _misfit(names: frozenset[str], release: Release) -> int | None:
    positions = [i for i, name in enumerate(release.fields) if name in names]
    if not positions:
        return None
    unknown = len(names) - len(positions)
    ahead = positions[-1] + 1
    complete = len(positions) >= _ABRIDGED * ahead
    return unknown + (ahead - len(positions) if complete else 0)
