"""What the machine has on which the trials would run, as the launch's own Python sees it.

That Python is asked in a short process of its own (`look.py`), through the transport where there
is one, so that versions and GPUs are those that the launch would get.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import PurePath
from typing import Any

from forensics.live.surroundings import interpreter_of
from forensics.redact import redact
from forensics.reproduce import look as looking
from forensics.reproduce.model import Gpu, Machine

PACKAGES = ("sglang", "torch", "transformers", "sgl-kernel", "flashinfer-python", "triton")
PATIENCE_S = 60.0
"""Importing torch from a slow disk takes half a minute."""

Wrap = Callable[[list[str], Mapping[str, str], Sequence[str]], list[str]]
"""Argument list, variables and variables to take away, to the words to run here for it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What to look at."""

    paths: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    near: int | None = None
    """A port beside which a free one is wanted."""
    folder: str | None = None
    gpus: bool = True


@dataclass(slots=True)
class Found:
    """What was found: the machine as published, and what only the preflight needs."""

    machine: Machine
    paths: dict[str, bool] = field(default_factory=dict)
    """Whether each exists."""
    ports: dict[int, bool] = field(default_factory=dict)
    """Whether each is free."""
    free_port: int | None = None
    """One beside that of the launch."""
    disk_gib: float | None = None
    asked: bool = False
    """The launch's Python has answered."""
    gpus_known: bool = False
    """How many GPUs there are is known, be it none."""


def look(
    command: Sequence[str],
    env: Mapping[str, str],
    unset: Sequence[str],
    what: Asked,
    wrap: Wrap | None = None,
    patience_s: float = PATIENCE_S,
) -> Found:
    """Look at the machine through the Python of a command.

    Never raises for what cannot be looked at: that is said in the machine's notes.
    """
    python = _python(command, env, here=wrap is None)
    asked = {
        "packages": PACKAGES,
        "paths": what.paths,
        "ports": what.ports,
        "near": what.near,
        "folder": what.folder,
        "gpus": what.gpus,
    }
    words = [python, "-c", _source(), json.dumps(asked)]
    answer, problem = _answer(words, env, unset, wrap, patience_s)
    if answer is None:
        found = Found(Machine(notes=[f"{python} could not be asked: {problem}"]))
    else:
        found = _found(answer)
    if wrap is None and what.gpus and not found.machine.gpus:
        _ask_here(found)
    return found


def _python(command: Sequence[str], env: Mapping[str, str], *, here: bool) -> str:
    """The interpreter of a command, as it can be started."""
    program = command[0] if command else "python3"
    if PurePath(program).name.startswith("python"):
        return program
    behind = interpreter_of(program, env.get("PATH") or os.environ.get("PATH")) if here else None
    return str(behind) if behind else "python3"


def _source() -> str:
    return files("forensics.reproduce").joinpath("look.py").read_text(encoding="utf-8")


def _answer(
    words: list[str],
    env: Mapping[str, str],
    unset: Sequence[str],
    wrap: Wrap | None,
    patience_s: float,
) -> tuple[dict[str, Any] | None, str]:
    """What `look.py` printed, or why there is nothing."""
    full = {name: value for name, value in {**os.environ, **env}.items() if name not in unset}
    run = words if wrap is None else wrap(words, env, unset)
    try:
        done = subprocess.run(
            run,
            env=full if wrap is None else None,
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=patience_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, f"no answer within {patience_s:g} s"
    except (OSError, ValueError) as error:
        return None, str(getattr(error, "strerror", None) or error)
    lines = done.stdout.strip().splitlines()
    try:
        answer = json.loads(lines[-1])
    except (IndexError, ValueError):
        said = done.stderr.strip().splitlines()
        return None, redact(said[-1]) if said else f"it ended with {done.returncode}"
    return (answer, "") if isinstance(answer, dict) else (None, "its answer makes no sense")


def _found(answer: dict[str, Any]) -> Found:
    host = answer.get("host") or {}
    machine = Machine(
        gpus=[_gpu(one) for one in answer.get("gpus") or ()],
        host_total_gib=host.get("total_gib"),
        host_free_gib=host.get("free_gib"),
        versions=answer.get("versions", {}),
        python=answer.get("python"),
        notes=answer.get("notes", []),
    )
    ports = {int(port): bool(free) for port, free in answer.get("ports", {}).items()}
    return Found(
        machine,
        answer.get("paths", {}),
        ports,
        answer.get("free_port"),
        answer.get("disk_gib"),
        asked=True,
        gpus_known=answer.get("gpus") is not None,
    )


def _ask_here(found: Found) -> None:
    """The GPUs by our own NVML bindings, where the launch's Python has no means to tell."""
    try:
        gpus = looking.by_nvml(os.environ.get("CUDA_VISIBLE_DEVICES"))
    except ImportError:
        return
    except Exception as error:  # of NVML, whose errors are classes of a package we may not have
        found.machine.notes.append(f"NVML cannot be asked: {error}")
        return
    found.machine.gpus, found.gpus_known = [_gpu(one) for one in gpus], True


def _gpu(one: dict[str, Any]) -> Gpu:
    return Gpu(**{name: one[name] for name in Gpu.model_fields if name in one})
