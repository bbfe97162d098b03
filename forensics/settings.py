"""What a user or a site has set: files, environment, options; each value with its origin.

Later layers win: defaults, the user's `forensics.toml`, the nearest `forensics.toml` or
`pyproject.toml` (section `tool.forensics`) from the working directory upwards, variables
`FORENSICS_*`, options of the command. `severity` and `thresholds` are joined entry by entry,
the other keys are replaced.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from platformdirs import user_config_path
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from forensics import rules
from forensics.findings import Severity
from forensics.rules import Settings, declared

FILE = "forensics.toml"
PREFIX = "FORENSICS_"
DEFAULT = "default"
TABLES = ("severity", "thresholds")
"""Keys that hold entries of their own, each with an origin."""


class SettingsError(Exception):
    """A setting cannot be used; the text names where it stands and its key, on one line."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A value and where it was set."""

    value: Any
    origin: str = DEFAULT


@dataclass(slots=True)
class Effective:
    """What holds after all layers; entries of tables are named `table.entry`."""

    values: dict[str, Setting]
    notices: list[str] = field(default_factory=list)
    """What the user should know, one line each: a variable that means nothing."""

    def __getitem__(self, name: str) -> Any:
        return self.values[name].value

    def entries(self, table: str) -> dict[str, Setting]:
        """The entries of a table."""
        start = f"{table}."
        return {
            name.removeprefix(start): setting
            for name, setting in self.values.items()
            if name.startswith(start)
        }

    def for_rules(self) -> Settings:
        """What concerns the rules. Raises SettingsError for a model's configuration without use."""
        _require_json(self.values["model_config"])
        thresholds = self.entries("thresholds").items()
        return Settings(
            model_config=self["model_config"],
            select=frozenset(self["select"]),
            ignore=frozenset(self["ignore"]),
            severity={name: set_.value for name, set_ in self.entries("severity").items()},
            thresholds={name: set_.value for name, set_ in thresholds if set_.origin != DEFAULT},
        )


Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class _Keys(BaseModel):
    """The keys of one layer; what is not set is None."""

    model_config = ConfigDict(extra="forbid")

    select: list[str] | None = None
    ignore: list[str] | None = None
    severity: dict[str, Severity] | None = None
    thresholds: dict[str, Number] | None = None
    fail_on: Literal["critical", "warning", "info", "never"] | None = None
    color: Literal["auto", "always", "never"] | None = None
    config: Path | None = Field(default=None, alias="model_config")


KEYS = ("select", "ignore", "severity", "thresholds", "fail_on", "color", "model_config")


@dataclass(frozen=True, slots=True)
class _Layer:
    """Raw values from one place; `prefix` completes a key's name as it is written there."""

    origin: str
    values: Mapping[str, Any]
    folder: Path | None = None
    """What paths in it are relative to."""
    prefix: str = ""

    def error(self, key: str, problem: str) -> SettingsError:
        written = key.upper() if self.prefix == PREFIX else key
        return SettingsError(f"{self.origin}: {self.prefix}{written}: {problem}")


def effective(
    options: Mapping[str, Any] | None = None,
    *,
    start: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Effective:
    """The settings that hold in a folder (default: the working directory).

    Raises:
        SettingsError: a file cannot be read, a key, rule or threshold does not exist, or a value
            does not fit.
    """
    result = Effective(_defaults())
    environment = os.environ if environ is None else environ
    layers = [*_files(start or Path.cwd()), _of_environment(environment, result.notices)]
    for layer in [*layers, _Layer("option", dict(options or {}), prefix="--")]:
        _apply(result.values, layer)
    return result


def _defaults() -> dict[str, Setting]:
    return {
        "select": Setting([]),
        "ignore": Setting([]),
        "fail_on": Setting("critical"),
        "color": Setting("auto"),
        "model_config": Setting(None),
    }


def with_thresholds(found: Effective) -> Effective:
    """The same with every threshold that the rules declare, for showing."""
    rules.registry()
    values = dict(found.values)
    for name, threshold in sorted(declared().items()):
        values.setdefault(f"thresholds.{name}", Setting(threshold.default))
    return Effective(values, found.notices)


def _files(start: Path) -> Iterator[_Layer]:
    own = user_config_path("sglang-forensics", appauthor=False) / FILE
    if (table := _read(own)) is not None:
        yield _Layer(str(own), table, own.parent)
    for folder in [start, *start.parents]:
        for path, section in ((folder / FILE, False), (folder / "pyproject.toml", True)):
            if (table := _read(path, section=section)) is not None:
                prefix = "tool.forensics." if section else ""
                yield _Layer(_short(path, start), table, folder, prefix)
                return


def _read(path: Path, *, section: bool = False) -> dict[str, Any] | None:
    """The settings of a file; None where there is no such file or no such section."""
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        if section:
            return None
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise SettingsError(f"{path}: cannot be read: {reason}") from error
    if section and "tool.forensics" not in text:
        return None  # somebody else's file, whatever its state
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{path}: not TOML: {error}") from error
    if not section:
        return data
    tool = data.get("tool")
    table = tool.get("forensics") if isinstance(tool, dict) else None
    return table if isinstance(table, dict) else None


def _short(path: Path, start: Path) -> str:
    """A path as it is best named from the working directory."""
    return path.name if path.parent == start else str(path)


def _of_environment(environ: Mapping[str, str], notices: list[str]) -> _Layer:
    """`FORENSICS_SELECT=a,b`, `FORENSICS_SEVERITY=rule=level,...`; an empty one sets nothing."""
    values: dict[str, Any] = {}
    layer = _Layer("environment", values, Path.cwd(), PREFIX)
    for name, text in environ.items():
        key = name.removeprefix(PREFIX).lower()
        if not name.startswith(PREFIX) or not text:
            continue
        if key not in KEYS:
            known = [f"{PREFIX}{key.upper()}" for key in KEYS]
            notices.append(f"{name} is no setting{_hint(name, known)}")
        elif key in TABLES:
            values[key] = dict(_entry(layer, key, part) for part in _parts(text))
        else:
            values[key] = _parts(text) if key in ("select", "ignore") else text
    return layer


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _entry(layer: _Layer, key: str, part: str) -> tuple[str, Any]:
    name, equals, text = (word.strip() for word in part.partition("="))
    if not equals:
        raise layer.error(key, f"{part!r} is not of the form name=value")
    if key == "severity":
        return name, text
    try:
        return name, float(text)
    except ValueError:
        raise layer.error(key, f"{name}: {text!r} is no number") from None


def _apply(values: dict[str, Setting], layer: _Layer) -> None:
    given = _checked(layer)
    origin = layer.origin
    for key in ("select", "ignore", "fail_on", "color"):
        if (value := getattr(given, key)) is not None:
            values[key] = Setting(value, origin)
    if given.config is not None:
        folder = layer.folder or Path()
        values["model_config"] = Setting(folder / given.config.expanduser(), origin)
    for table in TABLES:
        for name, value in (getattr(given, table) or {}).items():
            values[f"{table}.{name}"] = Setting(value, origin)


def _checked(layer: _Layer) -> _Keys:
    """The values of a layer, each of its type and about something that exists."""
    try:
        given = _Keys.model_validate(layer.values)
    except ValidationError as error:
        raise _complaint(layer, error) from None
    for key in ("select", "ignore", "severity"):
        for name in getattr(given, key) or ():
            known = [rule.id for rule in rules.registry()]
            if name not in known:
                raise layer.error(key, f"no rule {name!r}{_hint(name, known, '`forensics rules`')}")
    for name, value in (given.thresholds or {}).items():
        rules.registry()
        if (limit := declared().get(name)) is None:
            hint = _hint(name, list(declared()), "`forensics config`")
            raise layer.error("thresholds", f"no threshold {name!r}{hint}")
        if not limit.least <= value <= limit.most:
            bounds = f"{limit.least:g} to {limit.most:g}"
            raise layer.error(f"thresholds.{name}", f"{value:g} is not within {bounds}")
    return given


def _require_json(setting: Setting) -> None:
    """Refuses a model's configuration that would say nothing."""
    path: Path | None = setting.value
    if path is None:
        return
    problem = None
    try:
        if not path.is_file():
            problem = "not a file" if path.exists() else "no such file"
        elif not isinstance(json.loads(path.read_text(encoding="utf-8")), dict):
            problem = "no JSON object"
    except OSError as error:
        problem = error.strerror or "cannot be read"
    except (ValueError, RecursionError):
        problem = "not JSON"
    if problem:
        raise SettingsError(f"{setting.origin}: model_config: {path}: {problem}")


def _complaint(layer: _Layer, error: ValidationError) -> SettingsError:
    first = error.errors(include_url=False)[0]
    place = [str(part) for part in first["loc"]]
    if first["type"] == "extra_forbidden":
        return layer.error(place[0], f"no such key{_hint(place[0], KEYS)}")
    shown = repr(first["input"])
    said = first["msg"].removeprefix("Input should be ").replace("a valid ", "a ")
    return layer.error(".".join(place), f"{shown[:60]} should be {said}")


def _hint(word: str, known: list[str] | tuple[str, ...], listing: str = "") -> str:
    """`; did you mean ...?`, or where to look."""
    if close := get_close_matches(word, known, n=1, cutoff=0.5):
        return f"; did you mean {close[0]}?"
    return f"; {listing} lists them" if listing else f"; there are {', '.join(known)}"
