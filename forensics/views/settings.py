"""The settings in force, as TOML with the origin of each value behind it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from forensics.views.clean import one_line
from forensics.views.json import dumps

if TYPE_CHECKING:
    from forensics.rules import Threshold
    from forensics.settings import Effective, Setting

_TABLES = ("severity", "thresholds")
_WIDTH = 40


def settings_json(found: Effective) -> str:
    """Name to value and origin, as a JSON document."""
    data = {
        name: {"value": _plain(setting.value), "origin": setting.origin}
        for name, setting in found.values.items()
    }
    return dumps(data, indent=2) + "\n"


def show_settings(found: Effective, limits: dict[str, Threshold], console: Console) -> None:
    """A file that sets what is in force, each value with its origin as a comment."""
    for name, setting in found.values.items():
        if "." not in name:
            _show(console, name, setting)
    for table in _TABLES:
        entries = found.entries(table)
        if entries:
            console.print(f"\n[{table}]", style="bold")
        for name, setting in entries.items():
            limit = limits.get(name) if table == "thresholds" else None
            if limit:
                unit = f" ({limit.unit})" if limit.unit else ""
                console.print(Text(f"# {limit.meaning}{unit}", style="dim"), soft_wrap=True)
            _show(console, name, setting)


def _show(console: Console, name: str, setting: Setting) -> None:
    text = f"{name} = {_toml(setting.value)}" if setting.value is not None else f"# {name} is unset"
    line = Text(one_line(text).ljust(_WIDTH)).append(f"  # {one_line(setting.origin)}", style="dim")
    console.print(line, soft_wrap=True)


def _toml(value: Any) -> str:
    """A value as TOML writes it: for texts, numbers and lists as JSON does."""
    return json.dumps(_plain(value), ensure_ascii=False)


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value
