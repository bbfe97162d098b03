"""The launch of a run: what was started, as far as the log tells."""

from __future__ import annotations

import re
from collections.abc import Iterable

from forensics.events import Event
from forensics.launch import Launch, parse_command, parse_dump

_VERSIONS = {"transformers_rope_notice": "transformers", "nccl_version": "nccl"}
"""Kinds whose field `version` is the version of a package."""

_ENV_LINE = re.compile(r"^(?:\+ )?(?:export )?([A-Z][A-Z0-9_]{2,})=(\S*)$")
_ENV_NAMES = re.compile(
    r"^(?:SGL|SGLANG|NCCL|CUDA|PYTORCH|TORCH|GLOO|HF|TRITON|FLASHINFER|DG|MC|UCX)_"
)
_VERSION_LINE = re.compile(
    r"^\W*(sglang|torch|transformers|flashinfer[-_]python|sgl[-_]kernel)"
    r"(?:==| version:? |: )\s*v?(\d[\w.+]*)$",
    re.I,
)


def launch_of(events: Iterable[Event]) -> Launch:
    """The launch: the last dump is the server's own, a command line says what was typed."""
    launch, typed = Launch(), None
    for event in events:
        if event.kind == "server_args_dump":
            if found := parse_dump(event.text):
                launch.flags = found.flags
                launch.release_range, launch.truncated = found.release_range, found.truncated
        elif event.kind in ("launch_command", "shell_killed") and (
            found := parse_command(event.text)
        ):
            typed = found
        elif package := _VERSIONS.get(event.kind):
            if version := event.string("version"):
                launch.versions[package] = version
        elif event.kind == "other" or event.rank is None:
            _read_line(event, launch)
    if typed is not None:
        launch.command, launch.program, launch.typed = typed.command, typed.program, typed.typed
        launch.env.update(typed.env)
        for name, value in typed.flags.items():
            launch.flags.setdefault(name, value)
    launch.release = launch.versions.get("sglang") or launch.release
    return launch


def _read_line(event: Event, launch: Launch) -> None:
    if (found := _ENV_LINE.match(event.text)) and _ENV_NAMES.match(found[1]):
        launch.env.setdefault(found[1], found[2])
    elif found := _VERSION_LINE.match(event.text):
        launch.versions.setdefault(found[1].lower().replace("_", "-"), found[2])
