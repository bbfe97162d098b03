"""A real SGLang server on the CPU, watched from its start to its end.

Runs only with `-m sglang`. SGLANG_CPU_PYTHON names a Python with SGLang 0.5.16 and a CPU
build of torch. The server prints what a GPU's would, but for memory and graph capture.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

pytestmark = pytest.mark.sglang

HERE = Path(__file__).parent / "sglang_cpu"
PYTHON = os.environ.get("SGLANG_CPU_PYTHON", "")
PORT = 31017
PATIENCE_S = 240.0


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    probe = [PYTHON, "-c", "import sglang"]
    if not PYTHON or subprocess.run(probe, env=environment(), check=False).returncode:
        pytest.skip("SGLANG_CPU_PYTHON names no Python with sglang")
    folder = tmp_path_factory.mktemp("model")
    subprocess.run(
        [PYTHON, str(HERE / "make_tiny_model.py"), folder], env=environment(), check=True
    )
    return folder


def environment() -> dict[str, str]:
    extra = {"HF_HUB_OFFLINE": "1", "SGLANG_USE_CPU_ENGINE": "1", "PYTHONPATH": str(HERE / "shim")}
    return {**os.environ, **extra}


def server(model: Path | str) -> list[str]:
    flags = "--device cpu --attention-backend torch_native --grammar-backend none"
    flags += f" --host 127.0.0.1 --port {PORT} --max-total-tokens 8192"
    return [PYTHON, "-m", "sglang.launch_server", "--model-path", str(model), *flags.split()]


class Launch:
    """A server under `forensics run`, and its events as they come."""

    def __init__(self, command: list[str], log: Path, *options: str) -> None:
        root = Path(__file__).parents[2]
        env = environment()
        env["PYTHONPATH"] = f"{env['PYTHONPATH']}:{root}"
        argv = [sys.executable, "-m", "forensics", "run", "--format", "ndjson", "--log", str(log)]
        self.log = log
        self.process = subprocess.Popen(
            [*argv, *options, "--", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
        )
        self.events: list[tuple[float, dict[str, Any]]] = []
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self.events.append((time.time(), json.loads(line)))

    def wait_for(self, found: Any) -> tuple[float, dict[str, Any]]:
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            for at, event in list(self.events):
                if found(event):
                    return at, event
            time.sleep(0.05)
        raise AssertionError(f"not seen: {self.events}")

    def line_at(self, word: bytes) -> float:
        """When a line came into the log, looked up every 10 ms."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            if self.log.exists() and word in self.log.read_bytes():
                return time.time()
            time.sleep(0.01)
        raise AssertionError(f"{word!r} never came")

    def verdict(self) -> dict[str, Any]:
        code = self.process.wait(PATIENCE_S)
        self._reader.join(5)
        verdict = dict(self.events[-1][1]["verdict"])
        assert verdict["exit_code"] == code
        return verdict

    def scheduler(self) -> int:
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    name = (entry / "cmdline").read_bytes()
                    group = (entry / "stat").read_text().rpartition(")")[2].split()[2]
                except OSError:
                    continue
                if b"sglang::scheduler" in name and group in self.groups():
                    return int(entry.name)
        raise AssertionError("no scheduler")

    def groups(self) -> set[str]:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return set(children.read_text().split())


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Any]:
    launches: list[Launch] = []

    def start(command: list[str], *options: str) -> Launch:
        launches.append(Launch(command, tmp_path / "server.log", *options))
        return launches[-1]

    yield start
    for one in launches:
        if one.process.poll() is None:
            one.process.terminate()
            one.process.wait(60)


def is_ready(event: dict[str, Any]) -> bool:
    return event["event"] == "phase" and event["phase"] == "serving"


def test_ready_is_seen_at_once_and_the_end_is_orderly(model: Path, launch: Any) -> None:
    one = launch(server(model))
    written = one.line_at(b"ready to roll")
    seen, _ = one.wait_for(is_ready)
    print(f"ready seen {seen - written:.3f} s after the line")
    assert seen - written < 0.5
    one.process.send_signal(signal.SIGINT)
    verdict = one.verdict()
    assert (verdict["outcome"], verdict["exit_code"]) == ("stopped", 0)


def test_watch_returns_when_it_is_ready(model: Path, launch: Any) -> None:
    one = launch(server(model))
    root = Path(__file__).parents[2]
    watch = subprocess.Popen(
        [sys.executable, "-m", "forensics", "watch", str(one.log), "--quiet", "--timeout", "200"],
        cwd=root,
        stdout=subprocess.PIPE,
    )
    written = one.line_at(b"ready to roll")
    assert watch.wait(30) == 0
    print(f"watch ended {time.time() - written:.3f} s after the line")
    request = urllib.request.Request(
        f"http://127.0.0.1:{PORT}/generate",
        b'{"text": "hello", "sampling_params": {"max_new_tokens": 4}}',
        {"Content-Type": "application/json"},
    )
    assert urllib.request.urlopen(request, timeout=60).status == 200


def test_a_bad_model_path(launch: Any, model: Path) -> None:
    del model
    verdict = launch(server("/no/such/model")).verdict()
    assert (verdict["outcome"], verdict["exit_code"], verdict["phase"]) == ("failed", 1, "init")
    assert verdict["root_cause"]["class"] in ("checkpoint_io", "model_arch_unknown")


def test_a_killed_scheduler(model: Path, launch: Any) -> None:
    one = launch(server(model))
    one.wait_for(is_ready)
    os.kill(one.scheduler(), signal.SIGKILL)
    verdict = one.verdict()
    assert (verdict["outcome"], verdict["exit_code"]) == ("failed", 1)
    assert verdict["root_cause"]["class"] in ("external_kill", "host_ram_oom")


def test_a_stopped_scheduler(model: Path, launch: Any) -> None:
    one = launch(server(model), "--stop-on", "critical", "--grace", "5")
    one.wait_for(is_ready)
    os.kill(one.scheduler(), signal.SIGSTOP)
    verdict = one.verdict()
    assert (verdict["outcome"], verdict["exit_code"]) == ("hung", 1)
    assert verdict["root_cause"]["rule"] == "stopped-process"
