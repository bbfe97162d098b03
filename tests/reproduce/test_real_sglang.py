"""`forensics reproduce` with a real SGLang on the CPU: launches that fail, and what cures them.

Runs only with `-m sglang`; `scripts/sglang_cpu_venv.sh` makes the environment. A launch takes
about 20 s on two cores. CI runs `test_confirmed_a_larger_pool` alone.
"""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from forensics.reproduce.model import Reproduction
from tests.reproduce.conftest import free_port, is_alive

pytestmark = pytest.mark.sglang

ROOT = Path(__file__).parents[2]
CPU = ROOT / "tests" / "live" / "sglang_cpu"
PYTHON = os.environ.get("SGLANG_CPU_PYTHON") or str(ROOT / "build/sglang-cpu/bin/python")
ENV = {
    "PYTHONPATH": str(CPU / "shim"),
    "HF_HUB_OFFLINE": "1",
    "SGLANG_USE_CPU_ENGINE": "1",
}
PATIENCE_S = 900.0


def made(folder: Path, *size: str) -> Path:
    probe = [PYTHON, "-c", "import sglang"]
    if (
        not Path(PYTHON).exists()
        or subprocess.run(probe, env=os.environ | ENV, check=False).returncode
    ):
        pytest.skip("scripts/sglang_cpu_venv.sh makes the Python with sglang that is missing")
    maker = [PYTHON, str(CPU / "make_tiny_model.py"), str(folder), *size]
    subprocess.run(maker, env=os.environ | ENV, check=True)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def larger_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("larger"), "2048", "8")


def server(model: Path, *flags: object) -> list[str]:
    words = "--device cpu --attention-backend torch_native --grammar-backend none"
    words += f" --host 127.0.0.1 --port {free_port()}"
    given = [*words.split(), *map(str, flags)]
    return [PYTHON, "-m", "sglang.launch_server", "--model-path", str(model), *given]


def forensics(*argv: object, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "forensics", *map(str, argv)],
        cwd=ROOT,
        env=os.environ | (env or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


def log_of(folder: Path, command: list[str], env: dict[str, str] | None = None) -> Path:
    """The log of a launch as `forensics run` keeps it."""
    log = folder / "server.log"
    options = ("--until", "ready", "--stop-on", "critical", "--quiet", "--log", log)
    forensics("run", *options, "--", *command, env=ENV | (env or {}))
    return log


def reproduce(folder: Path, *argv: object, env: dict[str, str] | None = None) -> Reproduction:
    """What the command comes to, as its document says; no server is left."""
    sets = [word for name, text in ENV.items() for word in ("--env", f"{name}={text}")]
    options = ("--python", PYTHON, *sets, "--yes", "--folder", folder, "--timeout", 240)
    done = forensics("reproduce", *argv, *options, "--format", "json", env=env)
    assert done.stdout, done.stderr
    found = Reproduction.model_validate_json((folder / "reproduction.json").read_text())
    assert Reproduction.model_validate_json(done.stdout) == found
    print(found.verdict, "-", found.because)
    for trial in found.trials:
        seconds = (trial.ended_at - trial.started_at).total_seconds()
        print(f"  {trial.name}: {trial.outcome} after {seconds:.1f} s: {trial.because}")
        assert trial.cleaned_up
        assert (folder / trial.log).stat().st_size > 0
    assert done.returncode == found.exit_code
    return found


def reproduce_again(folder: Path) -> Reproduction:
    done = forensics("reproduce", "--resume", folder, "--yes", "--format", "json")
    assert done.stdout, done.stderr
    return Reproduction.model_validate_json(done.stdout)


def wait_for(seen: Callable[[], object]) -> None:
    deadline = time.monotonic() + 240
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def descendants(pid: int) -> list[int]:
    """All processes that a process started, the guardian among them."""
    found, waiting = [], [pid]
    while waiting:
        tasks = Path(f"/proc/{waiting.pop()}/task").glob("*/children")
        children = [int(word) for task in tasks for word in task.read_text().split()]
        found += children
        waiting += children
    return found


def cmdline(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


@contextmanager
def taken(port: int) -> Iterator[None]:
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.bind(("127.0.0.1", port))
        one.listen()
        yield


def trials(found: Reproduction) -> list[tuple[str, str]]:
    return [(trial.name, trial.outcome) for trial in found.trials]


@pytest.fixture(scope="module")
def small_pool(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of a launch whose pool is too small for SGLang's own first request."""
    folder = tmp_path_factory.mktemp("small-pool")
    return log_of(folder, server(model, "--max-total-tokens", 8))


def test_confirmed_a_larger_pool(small_pool: Path, tmp_path: Path) -> None:
    analysis = forensics("analyze", small_pool)
    assert analysis.returncode == 1
    assert "raise --max-total-tokens from 8 to 2048" in analysis.stdout
    found = reproduce(tmp_path / "run", small_pool)
    assert found.verdict == "confirmed"
    assert trials(found) == [("control", "failed"), ("fix", "passed"), ("confirmation-1", "passed")]
    assert found.trials[0].failure is not None
    assert found.trials[0].failure.rule == "kv-pool-under-context"
    assert found.trials[1].measured.kv_tokens == 2048
    assert found.command is not None
    assert "2048" in found.command


def test_not_confirmed_a_pool_that_is_still_too_small(small_pool: Path, tmp_path: Path) -> None:
    found = reproduce(tmp_path / "run", small_pool, "--set", "max-total-tokens=16")
    assert (found.verdict, found.exit_code) == ("not-confirmed", 4)
    assert trials(found) == [("control", "failed"), ("fix", "failed")]


def test_another_failure_is_named(small_pool: Path, tmp_path: Path) -> None:
    found = reproduce(tmp_path / "run", small_pool, "--set", "context-length=100000")
    assert (found.verdict, found.exit_code) == ("different-failure", 4)
    assert "A context of 100,000 tokens" in found.because
    assert "kv_pool_undersized" in found.because


def test_confirmed_another_port_and_not_reproduced_without_its_holder(
    model: Path, tmp_path: Path
) -> None:
    command = server(model, "--max-total-tokens", 4096)
    port = int(command[command.index("--port") + 1])
    with taken(port):
        log = log_of(tmp_path, command)
        found = reproduce(tmp_path / "held", log, "--confirm", 0, "--load", 6)
    assert found.verdict == "confirmed"
    assert found.trials[0].failure is not None
    assert found.trials[0].failure.class_ == "port_in_use"
    found = reproduce(tmp_path / "free", log)
    assert (found.verdict, found.exit_code) == ("not-reproduced", 5)
    assert trials(found) == [("control", "passed")]


def test_confirmed_a_flag_that_was_refused(model: Path, tmp_path: Path) -> None:
    script = tmp_path / "launch.sh"
    command = server(model, "--max-total-tokens", 4096, "--context-length", 100000)
    script.write_text(f"#!/bin/sh\nset -e\nexec {shlex.join(command)}\n")
    change = ("--set", "context-length=2048")
    found = reproduce(tmp_path / "run", "--launch", script, *change, "--confirm", 0)
    assert found.verdict == "confirmed"
    assert found.trials[0].failure is not None
    assert found.trials[0].failure.rule == "context-length-refused"


def test_confirmed_a_variable(model: Path, tmp_path: Path) -> None:
    log = log_of(tmp_path, server(model, "--max-total-tokens", 4096, "--tp", 2))
    change = ("--set", "SGLANG_CPU_OMP_THREADS_BIND=0|1")
    found = reproduce(tmp_path / "run", log, *change, "--confirm", 0)
    assert found.verdict == "confirmed"


def test_confirmed_a_larger_fraction(larger_model: Path, tmp_path: Path) -> None:
    log = log_of(tmp_path, server(larger_model, "--mem-fraction-static", 0.02))
    found = reproduce(tmp_path / "run", log, "--confirm", 0)
    assert found.verdict == "confirmed"
    assert found.trials[0].failure is not None
    assert found.trials[0].failure.class_ == "mem_fraction_too_low"
    assert found.plan.trials[1].changes[0].name == "mem_fraction_static"


def test_killed_in_mid_trial_it_leaves_no_server(small_pool: Path, tmp_path: Path) -> None:
    """SGLang's workers overwrite their environment with their titles: descent must tell."""
    folder = tmp_path / "run"
    sets = [word for name, text in ENV.items() for word in ("--env", f"{name}={text}")]
    options = ("--python", PYTHON, *sets, "--yes", "--folder", folder, "--skip-control")
    argv = ("reproduce", small_pool, "--goal", "health", *options)
    tool = subprocess.Popen([sys.executable, "-m", "forensics", *map(str, argv)], cwd=ROOT)
    log = folder / "fix" / "log"
    wait_for(lambda: log.exists() and b"Load weight end" in log.read_bytes())
    names = [cmdline(pid) for pid in descendants(tool.pid)]
    assert any("scheduler" in name for name in names), names
    left = descendants(tool.pid)
    tool.kill()
    tool.wait()
    wait_for(lambda: not [pid for pid in left if is_alive(pid)])
    found = reproduce_again(folder)
    assert (found.verdict, found.trials[0].outcome) == ("fix-holds", "passed")
    assert (folder / "fix.aside-1" / "log").exists()


def test_a_fix_holds_without_a_control(small_pool: Path, tmp_path: Path) -> None:
    found = reproduce(tmp_path / "run", small_pool, "--skip-control", "--confirm", 0)
    assert (found.verdict, found.exit_code) == ("fix-holds", 0)
    assert trials(found) == [("fix", "passed")]
