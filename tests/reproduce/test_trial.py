"""A trial ends at the line that decides, is called by its right name, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from threading import Thread, Timer

import pytest

from forensics.reproduce.stopping import Stop
from forensics.reproduce.trial import Terms
from tests.reproduce.conftest import (
    FAILED,
    FIXED,
    READY,
    Try,
    free_port,
    is_alive,
    pids_in,
    stand_in,
)


def test_a_crash_is_the_failure_of_its_root_cause(attempt: Try) -> None:
    result = attempt(stand_in(FAILED, "--then", "exit-1", until=None))
    assert (result.outcome, result.phase, result.status) == ("failed", "graph_capture", 1)
    assert result.failure is not None
    assert result.failure.class_ == "graph_capture_oom"
    assert result.measured.free_gib_at_capture == 1.05
    assert result.decided_line is not None


def test_a_crash_that_hangs_is_decided_when_it_falls_silent(attempt: Try) -> None:
    result = attempt(stand_in(FAILED, "--then", "hang", until=None))
    assert (result.outcome, result.failure and result.failure.class_) == (
        "failed",
        "graph_capture_oom",
    )
    assert result.cleaned_up


def test_ready_passes_at_its_line(attempt: Try, tmp_path: Path) -> None:
    result = attempt(stand_in())
    assert (result.outcome, result.phase) == ("passed", "serving")
    lines = (tmp_path / "control" / "log").read_text().splitlines()
    assert result.decided_line is not None
    assert READY in lines[result.decided_line - 1]
    assert result.measured.kv_tokens == 902631


def test_capture_passes_before_ready(attempt: Try, tmp_path: Path) -> None:
    end = "Capture target decode CUDA graph end"
    result = attempt(stand_in(FIXED, "--then", "hang", until=end), goal="capture")
    assert result.outcome == "passed"
    assert end in (tmp_path / "control" / "log").read_text().splitlines()[-1]
    assert result.measured.free_gib_after_capture == 9.47


def test_half_of_the_captures_is_no_capture(attempt: Try) -> None:
    half = "Capture target prefill CUDA graph end"
    result = attempt(stand_in(FIXED, "--then", "hang", until=half), goal="capture", timeout_s=6.0)
    assert result.outcome == "timed-out"


def test_out_of_time_is_no_failure(attempt: Try) -> None:
    result = attempt(stand_in(FIXED, "--then", "hang", until="Load weight begin"), timeout_s=2.0)
    assert (result.outcome, result.failure) == ("timed-out", None)


def test_what_cannot_be_started(attempt: Try) -> None:
    result = attempt(["/no/such/program", "--port", "1"])
    assert (result.outcome, result.failure) == ("not-started", None)
    assert "No such file" in result.because


def test_a_command_that_is_no_server_says_nothing_of_the_launch(attempt: Try) -> None:
    command = [sys.executable, "-c", "print('ssh: connection refused'); raise SystemExit(255)"]
    result = attempt(command)
    assert result.outcome == "not-started"
    assert "connection refused" in result.because


def test_an_end_without_a_word_is_a_failure(attempt: Try) -> None:
    result = attempt(stand_in(FIXED, "--then", "exit-3", until="Load weight end"))
    assert result.outcome == "failed"
    assert result.failure is not None
    assert "exit status 3" in result.because


@pytest.mark.parametrize("way", ["hang+escape", "hang+ignore-term", "hang+ignore-term+escape"])
def test_no_process_stays(attempt: Try, tmp_path: Path, way: str) -> None:
    pids = tmp_path / "pids"
    result = attempt(stand_in(FIXED, "--then", way, "--pids", pids))
    assert result.outcome == "passed"
    assert result.cleaned_up
    assert len(pids_in(pids)) == 1 + ("escape" in way)
    assert not [pid for pid in pids_in(pids) if is_alive(pid)]


@pytest.mark.parametrize("goal", ["health", "generate", "load"])
def test_a_probe_asks_the_server(attempt: Try, goal: str) -> None:
    command = stand_in(FIXED, "--port", free_port(), "--api-key", "s3cret-key-1")
    result = attempt(command, goal=goal, load=5)
    assert result.outcome == "passed", result.because
    assert "s3cret-key-1" not in result.model_dump_json()


@pytest.mark.parametrize(("goal", "way"), [("generate", "refuse"), ("load", "refuse-long")])
def test_a_wrong_answer_is_a_failure(attempt: Try, goal: str, way: str) -> None:
    command = stand_in(FIXED, "--port", free_port(), "--then", way)
    result = attempt(command, goal=goal, load=6)
    assert (result.outcome, result.failure and result.failure.rule) == (
        "failed",
        "probe-unanswered",
    )
    assert "500" in result.because
    if goal == "load":
        assert "4 of 6" in result.because


def test_a_death_while_serving_is_named_by_the_log(
    attempt: Try, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dying = tmp_path / "dying"
    text = FAILED.read_text()
    at = text.index("Scheduler hit an exception")
    dying.write_text(text[text.rindex("\n", 0, at) + 1 :])
    monkeypatch.setenv("DYING", str(dying))
    command = stand_in(FIXED, "--port", free_port(), "--then", "die-serving")
    result = attempt(command, goal="generate", terms=Terms(grace_s=2.0, env=dict(os.environ)))
    assert result.outcome == "failed"
    assert result.failure is not None
    assert result.failure.rule != "probe-unanswered"


def test_a_probe_that_cannot_reach_the_server_decides_nothing(attempt: Try) -> None:
    terms = Terms(reach=lambda target: None, grace_s=2.0)
    result = attempt(stand_in(), goal="generate", terms=terms)
    assert (result.outcome, result.failure) == ("interrupted", None)
    assert "not reached" in result.because


def test_stopping_is_no_failure_though_the_end_is_loud(attempt: Try, tmp_path: Path) -> None:
    stop = Stop()
    timer = Timer(1.5, stop.ask)
    timer.start()
    command = stand_in(FIXED, "--then", "hang", until="Load weight begin")
    result = attempt(command, terms=Terms(stop=stop, grace_s=2.0))
    assert (result.outcome, result.failure) == ("interrupted", None)
    assert result.cleaned_up


@pytest.mark.parametrize("timeout_s", [60.0, 5.0])
def test_last_words_of_an_end_that_was_asked_for_are_no_failure(
    attempt: Try, timeout_s: float
) -> None:
    until = READY if timeout_s > 10 else "Load weight end"
    result = attempt(stand_in(FIXED, "--then", "last-words", until=until), timeout_s=timeout_s)
    assert (result.outcome, result.failure) == (
        "passed" if timeout_s > 10 else "timed-out",
        None,
    )
    assert result.status == 0


def test_a_precursor_decides_nothing(attempt: Try, fixtures: Path, tmp_path: Path) -> None:
    command = stand_in(
        fixtures / "sglang-glm5.log", "--then", "hang", until="Capture cuda graph begin"
    )
    result = attempt(command, timeout_s=6.0)
    assert (result.outcome, result.failure) == ("timed-out", None)
    assert '"graph-capture-headroom"' in (tmp_path / "control" / "events.ndjson").read_text()


def with_a_traceback(tmp_path: Path, at: str = "Load weight begin") -> Path:
    """A healthy log, with a traceback before it loads weights."""
    before, _, after = FIXED.read_text().partition(at)
    survived = 'Traceback (most recent call last):\n  File "/opt/site/a.py", line 1, in <module>\n'
    survived += "    import odd\nImportError: no odd"
    log = tmp_path / "survived.log"
    line = before.rindex("\n") + 1
    log.write_text(f"{before[:line]}{survived}\n{before[line:]}{at}{after}")
    return log


def test_a_traceback_that_the_launch_survives_decides_nothing(attempt: Try, tmp_path: Path) -> None:
    result = attempt(stand_in(with_a_traceback(tmp_path), "--pause", "ImportError: no odd"))
    assert (result.outcome, result.failure) == ("passed", None), result.because


def test_nor_does_one_after_which_it_talks_on_and_comes_to_no_end(
    attempt: Try, tmp_path: Path
) -> None:
    command = stand_in(with_a_traceback(tmp_path), "--then", "chatter", until="ImportError: no odd")
    result = attempt(command, timeout_s=4.0)
    assert (result.outcome, result.failure) == ("timed-out", None), result.because


def test_asked_twice_it_waits_for_nobody(attempt: Try, tmp_path: Path) -> None:
    stop, pids = Stop(), tmp_path / "pids"

    def ask() -> None:
        while not pids_in(pids):  # by then it ignores the request
            time.sleep(0.05)
        stop.ask()
        time.sleep(0.5)
        stop.ask()

    Thread(target=ask, daemon=True).start()
    command = stand_in(
        FIXED, "--then", "hang+ignore-term", "--pids", pids, until="Load weight begin"
    )
    result = attempt(command, terms=Terms(stop=stop, grace_s=3600.0))
    assert (result.outcome, result.status) == ("interrupted", -9)


def test_the_environment_is_kept_without_secrets(attempt: Try, tmp_path: Path) -> None:
    env = {"HF_TOKEN": "hf_abcdefghijklmn", "SGLANG_X": "1", "NCCL_DEBUG": "[redacted]"}
    attempt(stand_in(FIXED, "--api-key", "s3cret-key-1"), env=env, unset_env=["HOME"])
    text = (tmp_path / "control" / "environment.json").read_text()
    kept = json.loads(text)
    assert "hf_abcdefghijklmn" not in text
    assert "s3cret-key-1" not in text
    assert kept["env"]["SGLANG_X"] == "1"
    assert "NCCL_DEBUG" not in kept["env"]
    assert kept["unset"] == ["HOME"]
