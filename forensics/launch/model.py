"""The launch as typed data: what was started, as far as a log tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from forensics.releases import Release, names_of, releases, table

Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | None"
"""A ServerArgs value; text that is no literal is kept as a string."""

SERVER = ("python3", "-m", "sglang.launch_server")
"""How a server is started in every release read."""


@dataclass(slots=True)
class Launch:
    """One launch: flags by ServerArgs field, environment, versions and the command if shown."""

    flags: dict[str, Value] = field(default_factory=dict)
    """By ServerArgs field, as resolved (dump) or as typed (command); secrets read "[redacted]"."""
    env: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    """Package to version: sglang, torch, transformers, ..."""
    command: list[str] | None = None
    """The words as typed, program included, if the log shows them."""
    release: str | None = None
    """SGLang version, if the log states it."""
    release_range: tuple[str, str] | None = None
    """Oldest and newest release whose fields fit the dump."""
    truncated: bool = False
    """The dump was cut: absent fields are unknown, not defaults."""
    program: list[str] = field(default_factory=lambda: list(SERVER))
    typed: set[str] = field(default_factory=set)
    """Fields that the command line named, or that a change set since."""
    removed: set[str] = field(default_factory=set)
    """Fields that a change took back to their default."""

    def get(self, name: str, default: Value = None) -> Value:
        """A flag's value under any name that its concept has had; `default` if not known."""
        return next((self.flags[n] for n in names_of(name) if n in self.flags), default)

    def table(self) -> Release:
        """What the release at hand declares, as well as it is known.

        The stated release where its table is known, else the newest whose fields fit the dump
        (so for development builds), else the nearest below the stated one, else the newest.
        """
        stated = self.release or self.versions.get("sglang")
        if stated in releases():
            return table(stated)
        if self.release_range is not None:
            return table(self.release_range[1])
        return table(stated or releases()[-1])

    def number(self, name: str) -> float | None:
        """A flag's value if it is a number."""
        value = self.get(name)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) if is_number and isinstance(value, int | float) else None

    # What is built on the table lives beside this class; these forward to it.

    def minimal_flags(self, gpu_total_mib: float | None = None) -> list[Argument]:
        """The flags that explain this launch, each marked by how sure it is that it was typed."""
        from forensics.launch.minimal import minimal_flags

        return minimal_flags(self, gpu_total_mib)

    def argv(self, gpu_total_mib: float | None = None) -> list[str]:
        """The command as typed, else the minimal command that comes to the same launch."""
        from forensics.launch.minimal import argv

        return argv(self, gpu_total_mib)

    def with_changes(
        self, changes: Mapping[str, Value], env: Mapping[str, str | None] | None = None
    ) -> Launch:
        """This launch with flags set (None: back to the default), in its release's own words."""
        from forensics.launch.changes import with_changes

        return with_changes(self, changes, env or {})


@dataclass(frozen=True, slots=True)
class Argument:
    """A flag of the minimal command."""

    field: str
    value: Value
    tokens: tuple[str, ...]
    mark: str
    """`typed`, `likely typed`, or `resolved`: could as well be SGLang's own choice."""
