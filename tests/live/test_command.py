"""`watch` and `replay` as their users run them: exit codes, speed of the alarm, pipes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.conftest import FIXTURES

GLM5 = (FIXTURES / "sglang-glm5.log").read_bytes()
BEGIN = GLM5.index(b"[2026-02-18 23:53:22 TP6] Capture cuda graph begin")
HEALTHY = (FIXTURES / "genuine/cpu-healthy.log").read_bytes()
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    running: list[subprocess.Popen[bytes]] = []

    def begin(*argv: str, **more: Any) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "forensics", *argv], stdout=subprocess.PIPE, **more
        )
        running.append(process)
        return process

    yield begin
    for process in running:
        process.kill()
        process.wait()


def events(process: subprocess.Popen[bytes]) -> Iterator[dict[str, Any]]:
    assert process.stdout
    for line in process.stdout:
        yield json.loads(line)


def test_the_alarm_comes_in_a_fraction_of_a_second(tmp_path: Path, start: Start) -> None:
    """Under 0.3 s on an idle machine; the bound here leaves room for a busy one."""
    log = tmp_path / "log"
    log.write_bytes(GLM5[:BEGIN])
    process = start("watch", str(log), "--format", "ndjson")
    for event in events(process):
        if event["event"] == "phase":
            break
    with log.open("ab") as out:
        out.write(GLM5[BEGIN : GLM5.index(b"\n", BEGIN) + 1])
    written = time.monotonic()
    for event in events(process):
        if event["event"] == "finding" and event["finding"]["severity"] == "critical":
            break
    took_s = time.monotonic() - written
    assert event["finding"]["rule"] == "graph-capture-headroom"
    assert took_s < 1.5
    assert process.wait(20) == 6


def test_replay_and_watch_meet(tmp_path: Path, start: Start) -> None:
    source, log = tmp_path / "source", tmp_path / "log"
    begin = GLM5.index(b"Loading safetensors checkpoint shards:  98%")
    data = GLM5[: GLM5.index(b"Loading safetensors")] + GLM5[begin:]
    source.write_bytes(data)
    watch = start("watch", str(log), "--format", "ndjson", "--timeout", "90")
    pace = ("--speed", "3", "--longest-pause", "0.8")
    replay = start("replay", str(source), *pace, "--into", str(log))
    seen = list(events(watch))
    verdict = seen[-1]["verdict"]
    assert watch.wait(20) == verdict["exit_code"] == 6
    known_at = verdict["finding"]["known_at"]["line"]
    assert b"Capture cuda graph begin" in data.split(b"\n")[known_at - 1]
    assert {event["event"] for event in seen} == {"phase", "progress", "finding", "verdict"}
    replay.wait(30)
    assert log.read_bytes() == data


def test_a_pipe(start: Start) -> None:
    process = start("watch", "-", "--quiet", stdin=subprocess.PIPE)
    out, _ = process.communicate(HEALTHY[: HEALTHY.index(b"ready to roll") + 20], timeout=30)
    assert process.returncode == 0
    assert out.count(b"\n") == 1
    assert b"READY" in out


@pytest.mark.parametrize(("name", "options", "code"), [
    ("sglang-glm5-a.log", [], 1),
    ("genuine/cpu-healthy.log", ["--until", "failed"], 0),
    ("genuine/cpu-healthy.log", ["--ignore-past", "--timeout", "1"], 7),
    ("no-such.log", ["--timeout", "1"], 7),
    ("genuine", [], 2),
])  # fmt: skip
def test_exit_codes(start: Start, name: str, options: list[str], code: int) -> None:
    process = start("watch", str(FIXTURES / name), "--quiet", *options, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=30)
    assert process.returncode == code, err
    assert b"Traceback" not in err
    assert out.count(b"\n") == (code != 2)


def test_what_is_no_log(start: Start) -> None:
    process = start("watch", "-", stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    _, err = process.communicate(b"some text\nof another kind\n", timeout=30)
    assert process.returncode == 3
    assert b"recognised" in err


def test_a_hook_is_called(tmp_path: Path, start: Start) -> None:
    got = tmp_path / "got"
    code = f"import sys; open({str(got)!r}, 'a').write(sys.stdin.read())"
    hook = [sys.executable, "-c", code]
    options = [word for argument in hook for word in ("--on-finding", argument)]
    process = start("watch", str(FIXTURES / "sglang-glm5-a.log"), "--quiet", *options)
    process.communicate(timeout=40)
    assert "unknown-architecture" in [
        json.loads(line)["rule"] for line in got.read_text().splitlines()
    ]


def test_escapes_of_a_log_do_not_reach_the_terminal(start: Start) -> None:
    evil = b"[2026-02-18 23:47:20] \x1b]0;owned\x07\x1b[2J ValueError: \x1b[31mboom\n"
    log = GLM5[:2000] + evil + b"Traceback (most recent call last):\n" + evil[22:]
    process = start("watch", "-", stdin=subprocess.PIPE)
    out, _ = process.communicate(log, timeout=30)
    assert b"\x1b" not in out
