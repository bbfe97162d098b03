"""A stand-in server, and trials of it."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forensics.reproduce.model import Failure, ReproductionPlan, TrialPlan, TrialResult
from forensics.reproduce.trial import Terms, run_trial

STAND_IN = Path(__file__).parent / "stand_in.py"
GENUINE = Path(__file__).parents[2] / "fixtures" / "genuine"
FAILED, FIXED = GENUINE / "h200-capture-failed.log", GENUINE / "h200-capture-fixed.log"
READY = "ready to roll"

CAPTURE_OOM = Failure(
    rule="graph-capture-oom",
    class_="graph_capture_oom",
    phase="graph_capture",
    title="Graph capture ran out of memory",
    rank="TP4",
)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def stand_in(log: Path = FIXED, *flags: object, until: str | None = READY) -> list[str]:
    """A command that says what a genuine log says, up to a word."""
    upto = ["--until", until] if until else []
    return [sys.executable, str(STAND_IN), str(log), *upto, *map(str, flags)]


def planned(command: list[str], name: str = "control", **more: Any) -> TrialPlan:
    role = name.split("-")[0]
    expects = "fails" if role == "control" else "passes"
    given = {"name": name, "role": role, "command": command, "expects": expects, "timeout_s": 60.0}
    return TrialPlan(**{**given, **more})


def plan_of(*trials: TrialPlan, failure: Failure | None = CAPTURE_OOM) -> ReproductionPlan:
    return ReproductionPlan(logs=["server.log"], run=1, failure=failure, trials=list(trials))


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def pids_in(path: Path) -> list[int]:
    return [int(line) for line in path.read_text().split()] if path.exists() else []


Try = Callable[..., TrialResult]


@pytest.fixture
def attempt(tmp_path: Path) -> Try:
    """Runs one trial of a command."""

    def run(
        command: list[str], expected: Failure | None = None, terms: Terms | None = None, **more: Any
    ) -> TrialResult:
        trial = planned(command, **more)
        folder = tmp_path / trial.name
        folder.mkdir()
        return run_trial(trial, folder, expected, terms or Terms(grace_s=2.0, env=dict(os.environ)))

    return run
