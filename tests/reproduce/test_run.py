"""A plan is run in order, stops where its verdict stands, and goes on where it was cut."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from forensics.reproduce.model import Reproduction, ReproductionPlan, TrialPlan, TrialResult
from forensics.reproduce.notices import Notice, Settled, TrialBegan, TrialEnded
from forensics.reproduce.run import Extras, resume, run_plan
from forensics.reproduce.trial import Terms, run_trial
from tests.reproduce.conftest import (
    CAPTURE_OOM,
    FAILED,
    FIXED,
    is_alive,
    pids_in,
    plan_of,
    planned,
    stand_in,
)

ROOT = Path(__file__).parents[2]


def launch(fraction: float, *more: object) -> list[str]:
    """Fails in capture above 0.95, as its genuine logs did; else comes to ready."""
    return stand_in(FIXED, "--tight", FAILED, "--mem-fraction-static", fraction, *more)


def plan_at(control: float, fix: float, *more: object) -> ReproductionPlan:
    return plan_of(
        planned(launch(control, *more), "control"),
        planned(launch(fix, *more), "fix"),
        planned(launch(fix, *more), "confirmation-1"),
    )


class Told:
    """Everything that was told."""

    def __init__(self) -> None:
        self.notices: list[Notice] = []

    def __call__(self, notice: Notice) -> None:
        self.notices.append(notice)

    def names(self, kind: type[TrialBegan]) -> list[str]:
        return [notice.trial.name for notice in self.notices if isinstance(notice, kind)]

    def kept(self) -> list[str]:
        return [n.result.name for n in self.notices if isinstance(n, TrialEnded) and n.kept]


def quick(**more: object) -> Extras:
    return Extras(terms=Terms(grace_s=2.0), **more)  # type: ignore[arg-type]


def test_confirmed(tmp_path: Path) -> None:
    told = Told()
    done = run_plan(plan_at(0.9775, 0.9), tmp_path, told, quick())
    assert (done.verdict, done.exit_code) == ("confirmed", 0), done.because
    assert told.names(TrialBegan) == ["control", "fix", "confirmation-1"]
    assert done.command == launch(0.9)
    kept = Reproduction.model_validate_json((tmp_path / "reproduction.json").read_text())
    assert kept == done
    assert sorted(path.name for path in (tmp_path / "fix").iterdir()) == [
        *("environment.json", "events.ndjson", "log", "result.json"),
    ]
    assert [trial.measured.kv_tokens for trial in done.trials][1:] == [902631, 902631]


@pytest.mark.parametrize(
    ("control", "fix", "word", "made"),
    [
        (0.9775, 0.96, "not-confirmed", ["control", "fix"]),
        (0.9, 0.8, "not-reproduced", ["control"]),
    ],
)
def test_it_stops_where_the_verdict_stands(
    tmp_path: Path, control: float, fix: float, word: str, made: list[str]
) -> None:
    told = Told()
    done = run_plan(plan_at(control, fix), tmp_path, told, quick())
    assert done.verdict == word
    assert told.names(TrialBegan) == made
    assert [type(n) for n in told.notices].count(Settled) == 1
    assert done.command is None


def test_a_search_is_asked_until_it_is_done(tmp_path: Path) -> None:
    values = [0.94, 0.96]

    def ask(plan: ReproductionPlan, results: Sequence[TrialResult]) -> TrialPlan | None:
        tried = sum(result.role == "search" for result in results)
        if tried == len(values):
            taken = any(t.command == launch(0.94) for t in plan.trials if t.role == "confirmation")
            return None if taken else planned(launch(0.94), "confirmation-2")
        return planned(launch(values[tried]), f"search-{tried + 1}")

    best = {"name": "mem_fraction_static", "value": 0.94, "command": launch(0.94)}
    done = run_plan(
        plan_at(0.9775, 0.9), tmp_path, extras=quick(next_search=ask, best=lambda p, r: best)
    )
    assert done.verdict == "confirmed"
    assert [trial.name for trial in done.trials[3:]] == ["search-1", "search-2", "confirmation-2"]
    assert [trial.outcome for trial in done.trials[3:]] == ["passed", "failed", "passed"]
    assert done.command == launch(0.94)
    assert len(json.loads((tmp_path / "plan.json").read_text())["trials"]) == 6


def test_finished_trials_are_not_run_again(tmp_path: Path) -> None:
    run_plan(plan_at(0.9775, 0.9), tmp_path, extras=quick())
    (tmp_path / "confirmation-1" / "result.json").unlink()
    (tmp_path / "reproduction.json").unlink()
    told = Told()
    done = resume(tmp_path, told, quick())
    assert done.verdict == "confirmed"
    assert told.kept() == ["control", "fix"]
    assert told.names(TrialBegan) == ["confirmation-1"]
    assert (tmp_path / "confirmation-1.aside-1" / "log").exists()


def test_a_listener_that_is_gone_ends_nothing(tmp_path: Path) -> None:
    def tell(notice: Notice) -> None:
        raise BrokenPipeError

    assert run_plan(plan_at(0.9775, 0.9), tmp_path, tell, quick()).verdict == "confirmed"


def test_what_cannot_be_ended_stops_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stuck(trial: TrialPlan, *rest: object) -> TrialResult:
        result = run_trial(trial, *rest)  # type: ignore[arg-type]
        return result.model_copy(update={"cleaned_up": False})

    monkeypatch.setattr("forensics.reproduce.run.run_trial", stuck)
    done = run_plan(plan_at(0.9775, 0.9), tmp_path, extras=quick())
    assert (done.verdict, len(done.trials)) == ("inconclusive", 1)
    assert "control could not be ended" in done.because


TOOL = """
import sys
from pathlib import Path
from forensics.reproduce.model import ReproductionPlan
from forensics.reproduce.run import Extras, run_plan
from forensics.reproduce.trial import Terms, run_trial
plan = ReproductionPlan.model_validate_json(Path(sys.argv[1]).read_text())
extras = Extras(terms=Terms(grace_s=float(sys.argv[3])))
raise SystemExit(run_plan(plan, Path(sys.argv[2]), extras=extras).exit_code)
"""


class Tool:
    """The tool in a process of its own, at a trial that comes to no end by itself."""

    def __init__(self, tmp_path: Path, way: str, grace_s: float = 2.0) -> None:
        self.pids, self.folder = tmp_path / "pids", tmp_path / "run"
        hanging = stand_in(FIXED, "--then", way, "--pids", self.pids, until="Load weight begin")
        trials = [planned(hanging, "control"), planned(launch(0.9), "fix")]
        plan = tmp_path / "plan.json"
        plan.write_text(plan_of(*trials).model_dump_json(by_alias=True))
        self.expected = 1 + ("escape" in way)
        self.process = subprocess.Popen(
            [sys.executable, "-c", TOOL, str(plan), str(self.folder), str(grace_s)], cwd=ROOT
        )

    def wait_until_hanging(self) -> None:
        log = self.folder / "control" / "log"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            said = log.exists() and "Load weight begin" in log.read_text()
            if said and len(pids_in(self.pids)) == self.expected:
                time.sleep(1.5)  # until all was seen by those who watch
                return
            time.sleep(0.05)
        raise AssertionError("the trial did not begin")

    def left(self, patience_s: float = 30.0) -> list[int]:
        """Processes of the trial that are still there after a while."""
        deadline = time.monotonic() + patience_s
        while (left := [p for p in pids_in(self.pids) if is_alive(p)]) and (
            time.monotonic() < deadline
        ):
            time.sleep(0.1)
        return left


@pytest.mark.parametrize("way", ["hang", "hang+ignore-term", "hang+escape"])
def test_killed_in_mid_trial_it_leaves_no_server_and_can_be_resumed(
    tmp_path: Path, way: str
) -> None:
    tool = Tool(tmp_path, way)
    tool.wait_until_hanging()
    tool.process.kill()
    tool.process.wait()
    assert tool.left() == []
    plan = tool.folder / "plan.json"
    swapped = json.loads(plan.read_text())
    swapped["trials"][0]["command"] = launch(0.9775)
    plan.write_text(json.dumps(swapped))
    assert resume(tool.folder, extras=quick()).verdict == "confirmed"
    assert (tool.folder / "control.aside-1" / "log").exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_stopped_in_mid_trial(tmp_path: Path, number: signal.Signals) -> None:
    tool = Tool(tmp_path, "hang+escape")
    tool.wait_until_hanging()
    tool.process.send_signal(number)
    assert tool.process.wait(60) == 5
    assert tool.left(0.0) == []
    done = Reproduction.model_validate_json((tool.folder / "reproduction.json").read_text())
    assert done.verdict == "inconclusive"
    assert signal.Signals(number).name in done.because
    assert [trial.outcome for trial in done.trials] == ["interrupted"]
    assert done.trials[0].failure is None


def test_stopped_twice_it_ends_at_once(tmp_path: Path) -> None:
    tool = Tool(tmp_path, "hang+ignore-term", grace_s=3600.0)
    tool.wait_until_hanging()
    for _ in range(2):
        tool.process.send_signal(signal.SIGINT)
        time.sleep(0.3)
    assert tool.process.wait(60) == 5
    assert tool.left(0.0) == []


def test_a_hangup_that_is_ignored_stays_ignored(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        tool = Tool(tmp_path, "hang")
    finally:
        signal.signal(signal.SIGHUP, before)
    tool.wait_until_hanging()
    tool.process.send_signal(signal.SIGHUP)
    time.sleep(1.0)
    assert tool.process.poll() is None
    tool.process.send_signal(signal.SIGTERM)
    assert tool.process.wait(60) == 5


def test_hostile_words_reach_no_shell(tmp_path: Path) -> None:
    hostile = ["; touch pwned", "$(touch pwned)", "`touch pwned`", "a\nb", "--x=$HOME", "'", '"']
    plan = plan_of(
        planned([*launch(0.9775), *hostile], "control"),
        planned([*launch(0.9), *hostile], "fix"),
        failure=CAPTURE_OOM,
    )
    done = run_plan(plan, tmp_path / "run", extras=quick())
    assert done.verdict == "confirmed"
    assert done.command == [*launch(0.9), *hostile]
    assert not list(tmp_path.rglob("pwned"))
    assert not (Path(os.getcwd()) / "pwned").exists()
