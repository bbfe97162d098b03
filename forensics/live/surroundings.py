"""What a launch that we start ourselves runs in: its environment, and the packages it can import.

Nothing is executed to find out: package versions are read from the names of `dist-info` folders.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from forensics.incident import Incident
from forensics.redact import is_secret_name

_ENV = re.compile(
    r"(?:SGL|SGLANG|NCCL|CUDA|PYTORCH|TORCH|GLOO|HF|TRITON|FLASHINFER|DG|MC|UCX|NVSHMEM|OMP|HIP"
    r"|SAFETENSORS|TRANSFORMERS)_"
)
_PACKAGES = re.compile(
    r"(?i)(?:sglang|sgl[_-]kernel|sglang[_-]kernel|torch|torchvision|transformers|triton|xgrammar"
    r"|flashinfer[_-]\w+|nvidia[_-]nccl[_-]cu\d+|deep[_-]?gemm|compressed[_-]tensors)"
)
_FOLDER = re.compile(r"(?P<name>[\w.]+)-(?P<version>\d[\w.+!]*)\.dist-info")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Command, environment (without secrets) and package versions of a launch."""

    command: list[str]
    env: dict[str, str]
    versions: dict[str, str]

    def add_to(self, incident: Incident) -> None:
        """Add to the launches of an incident what their log does not tell."""
        for run in incident.runs:
            for launch in {id(one): one for one in (run.launch, *run.launches.values())}.values():
                launch.env = {**self.env, **launch.env}
                launch.versions = {**self.versions, **launch.versions}
                launch.release = launch.release or launch.versions.get("sglang")
                launch.command = launch.command or list(self.command)


def surroundings_of(command: Sequence[str], env: Mapping[str, str]) -> Surroundings:
    """What a command would run in."""
    return Surroundings(
        list(command),
        {
            name: value
            for name, value in env.items()
            if _ENV.match(name) and not is_secret_name(name)
        },
        versions_of(command[0], env.get("PATH"), env.get("PYTHONPATH")),
    )


def versions_of(
    program: str, path: str | None = None, python_path: str | None = None
) -> dict[str, str]:
    """Package versions that a program's Python can import, as far as its folders tell.

    Folders of `PYTHONPATH` come first, as they do for Python itself.
    """
    found: dict[str, str] = {}
    interpreter = interpreter_of(program, path)
    if interpreter is None:
        return found
    own = sorted(interpreter.parent.parent.glob("lib/python3*/*-packages"))
    added = [Path(folder) for folder in (python_path or "").split(os.pathsep) if folder]
    for folder in (*added, *own):
        for entry in _names(folder):
            match = _FOLDER.fullmatch(entry)
            if match and _PACKAGES.fullmatch(match["name"]):
                found.setdefault(match["name"].lower().replace("_", "-"), match["version"])
    return found


def interpreter_of(program: str, path: str | None) -> Path | None:
    """The Python behind a program: itself, or that of its first line. Links stay unresolved,
    since a virtual environment's Python is a link out of it."""
    where = shutil.which(program, path=path)
    if where is None:
        return None
    place = Path(os.path.abspath(where))
    if place.name.startswith("python"):
        return place
    try:
        with place.open("rb") as file:
            first = file.readline(300).decode("utf-8", "replace")
    except OSError:
        return None
    words = first.removeprefix("#!").split()
    if not first.startswith("#!") or not words:
        return None
    named = words[1] if words[0].endswith("/env") and len(words) > 1 else words[0]
    if "python" not in named:
        return None
    found = shutil.which(named, path=path)
    return Path(os.path.abspath(found)) if found else None


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []
