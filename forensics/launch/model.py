"""The launch as typed data: what was started, as far as a log tells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | None"
"""A ServerArgs value; text that is no literal is kept as a string."""

SERVER = ("python3", "-m", "sglang.launch_server")
"""How a server is started in every release read."""


@dataclass(slots=True)
class Launch:
    """One launch: flags by ServerArgs field, environment, versions and the command if shown."""

    flags: dict[str, Value] = field(default_factory=dict)
    """By ServerArgs field, as resolved (dump) or as typed (command); secrets read "***"."""
    env: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    """Package to version: sglang, torch, transformers, ..."""
    command: list[str] | None = None
    """The arguments as typed, program included, if the log shows them."""
    release: str | None = None
    """SGLang version, if the log states it."""
    release_range: tuple[str, str] | None = None
    """Oldest and newest release whose fields fit the dump."""
    truncated: bool = False
    """The dump was cut: absent fields are unknown, not defaults."""
    program: list[str] = field(default_factory=lambda: list(SERVER))
    typed: set[str] = field(default_factory=set)
    """Fields that the command line named."""
