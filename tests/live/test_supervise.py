"""Commands that are run: output unchanged, log kept, signals forwarded, ends named."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.live.conftest import FIXTURES

READY = "[2026-02-18 23:47:20] The server is fired up and ready to roll!"
START = "[2026-02-18 23:47:18] server_args=ServerArgs(model_path='m', tp_size=1)"


def script(text: str) -> list[str]:
    return [sys.executable, "-u", "-c", f"import os,sys,time,signal\n{text}"]


def forensics(*argv: str, command: list[str], **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "forensics", "run", *argv, "--", *command],
        capture_output=True,
        timeout=60,
        check=False,
        **more,
    )


def verdict_of(output: bytes) -> dict[str, Any]:
    last = json.loads(output.splitlines()[-1])
    assert last["event"] == "verdict"
    return dict(last["verdict"])


def test_output_passes_unchanged_and_the_log_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "log"
    odd = rb"sys.stdout.buffer.write(b'one\xff\x00\r two\nthree')"
    command = script(f"{odd.decode()}\nsys.stdout.flush()\nprint('err', file=sys.stderr)")
    done = forensics("--log", str(log), command=command)
    assert done.stdout == b"one\xff\x00\r two\nthree"
    assert done.stderr.startswith(b"err\n")
    kept = log.read_bytes()
    assert b"one\xff\x00\r two\n" in kept
    assert b"err\n" in kept
    assert b"three" in kept


@pytest.mark.parametrize(("end", "code", "outcome", "status"), [
    ("", 0, "stopped", 0),
    ("sys.exit(3)", 1, "failed", 3),
    ("os.kill(os.getpid(), 9)", 1, "failed", -9),
])  # fmt: skip
def test_how_a_command_ends(tmp_path: Path, end: str, code: int, outcome: str, status: int) -> None:
    command = script(f"print({START!r})\nprint({READY!r})\n{end}")
    done = forensics("--log", str(tmp_path / "log"), "--format", "ndjson", command=command)
    verdict = verdict_of(done.stdout)
    assert done.returncode == verdict["exit_code"] == code, done.stderr
    assert (verdict["outcome"], verdict["command_status"]) == (outcome, status)


def test_a_command_that_is_not_there() -> None:
    done = forensics(command=["/no/such/program"])
    assert done.returncode == 2
    assert b"No such file" in done.stderr


def test_a_failed_launch_is_explained(tmp_path: Path) -> None:
    log = FIXTURES / "sglang-glm5-a.log"
    command = script(f"sys.stderr.buffer.write(open({str(log)!r},'rb').read())\nsys.exit(1)")
    done = forensics("--log", str(tmp_path / "log"), "--format", "ndjson", command=command)
    verdict = verdict_of(done.stdout)
    assert done.returncode == 1
    assert verdict["root_cause"]["rule"] == "unknown-architecture"
    assert (tmp_path / "log").read_bytes() == log.read_bytes()


def test_stop_on_critical_ends_the_whole_group(tmp_path: Path) -> None:
    source = (FIXTURES / "sglang-glm5.log").read_bytes()
    part = tmp_path / "part"
    part.write_bytes(source[: source.index(b"Capturing batches")])
    pids = tmp_path / "pids"
    command = script(
        f"pid = os.fork()\nopen({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN if not pid else signal.SIG_DFL)\n"
        f"pid and os.write(1, open({str(part)!r},'rb').read())\ntime.sleep(60)"
    )
    began = time.monotonic()
    done = forensics(
        *("--stop-on", "critical", "--grace", "1", "--format", "ndjson"),
        *("--log", str(tmp_path / "log")),
        command=command,
    )
    assert time.monotonic() - began < 30
    verdict = verdict_of(done.stdout)
    assert done.returncode == 6
    assert verdict["finding"]["rule"] == "graph-capture-headroom"
    assert verdict["command_status"] == -15
    for pid in pids.read_text().split():
        assert not os.path.exists(f"/proc/{pid}/cwd") or _is_dead(int(pid))


def _is_dead(pid: int) -> bool:
    state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return state in "ZX"


def test_a_start_that_takes_too_long(tmp_path: Path) -> None:
    command = script(f"print({START!r})\ntime.sleep(60)")
    done = forensics(
        "--timeout", "1", "--log", str(tmp_path / "log"), "--format", "ndjson", command=command
    )
    assert done.returncode == 7
    assert verdict_of(done.stdout)["command_status"] == -15


def test_until_ready_ends_the_command_well(tmp_path: Path) -> None:
    command = script(f"print({START!r})\nprint({READY!r})\ntime.sleep(60)")
    done = forensics(
        "--until", "ready", "--log", str(tmp_path / "log"), "--format", "ndjson", command=command
    )
    assert done.returncode == 0
    assert verdict_of(done.stdout)["outcome"] == "ready"


@contextmanager
def running(*argv: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "forensics", "run", *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_signals_are_forwarded(tmp_path: Path, number: signal.Signals) -> None:
    got = tmp_path / "got"
    command = script(
        f"def note(n, f):\n    open({str(got)!r}, 'w').write(str(n))\n    sys.exit(0)\n"
        f"signal.signal({int(number)}, note)\nprint({START!r})\nprint({READY!r})\ntime.sleep(60)"
    )
    with running("--log", str(tmp_path / "log"), "--", *command) as process:
        assert process.stdout
        while b"ready to roll" not in process.stdout.readline():
            pass
        process.send_signal(number)
        assert process.wait(20) == 0
    assert got.read_text() == str(int(number))


def test_a_stopped_process_is_noticed(tmp_path: Path) -> None:
    command = script(f"print({START!r})\nprint({READY!r})\nos.kill(os.getpid(), signal.SIGSTOP)")
    done = forensics(
        *("--stop-on", "critical", "--grace", "1", "--format", "ndjson"),
        *("--log", str(tmp_path / "log")),
        command=command,
    )
    verdict = verdict_of(done.stdout)
    assert done.returncode == 1
    assert verdict["outcome"] == "hung"
    assert verdict["root_cause"]["rule"] == "stopped-process"


def test_the_environment_is_known_without_its_secrets(tmp_path: Path) -> None:
    hit = (FIXTURES / "sglang-glm5.log").read_text()
    part = tmp_path / "part"
    part.write_text(hit[: hit.index("Capturing batches")])
    env = {**os.environ, "NCCL_IB_DISABLE": "1", "HF_TOKEN": "hf_secretsecret"}
    done = forensics(
        *("--log", str(tmp_path / "log"), "--format", "ndjson"),
        command=script(f"print(open({str(part)!r}).read())\nsys.exit(1)"),
        env=env,
    )
    verdict = verdict_of(done.stdout)
    assert verdict["new_env"].get("NCCL_IB_DISABLE") == "1"
    assert b"hf_secret" not in done.stdout
