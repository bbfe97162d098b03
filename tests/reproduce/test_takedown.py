"""Processes are told by group, session, descent and mark; and nobody else is ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from forensics.reproduce.gpu_memory import is_returned
from forensics.reproduce.guardian import Guardian
from forensics.reproduce.takedown import MARK, Herd
from tests.reproduce.conftest import is_alive

SLEEP = "import time; time.sleep(300)"
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a Python that sleeps."""
    started: list[subprocess.Popen[bytes]] = []

    def run(mark: str | None = None, code: str = SLEEP, **more: object) -> subprocess.Popen[bytes]:
        env = {**os.environ, **({MARK: mark} if mark else {})}
        started.append(subprocess.Popen([sys.executable, "-c", code], env=env, **more))  # type: ignore[call-overload]
        return started[-1]

    yield run
    for one in started:
        one.kill()
        one.wait()


def until(seen: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_mark_alone_is_enough(start: Start) -> None:
    mark = uuid.uuid4().hex
    mine, other, foreign = start(mark), start(uuid.uuid4().hex), start()
    herd = Herd(mark)
    until(lambda: herd.look() == [mine.pid])
    assert herd.end(2.0)
    assert not is_alive(mine.pid)
    assert is_alive(other.pid)
    assert is_alive(foreign.pid)


def test_a_group_of_its_own_is_known_by_its_root(start: Start) -> None:
    mine = start(start_new_session=True)
    herd = Herd(uuid.uuid4().hex, mine.pid)
    assert herd.look() == [mine.pid]
    assert herd.end(2.0)


def test_who_was_seen_is_known_when_all_signs_are_gone(start: Start, tmp_path: Path) -> None:
    pid, enough = tmp_path / "pid", tmp_path / "enough"
    inner = f"import os; open({str(pid)!r}, 'w').write(str(os.getpid())); {SLEEP}"
    code = "import subprocess, sys, time\n"
    code += f"subprocess.Popen([sys.executable, '-c', {inner!r}], env={{}}, start_new_session=True)"
    code += f"\nimport os\nwhile not os.path.exists({str(enough)!r}): time.sleep(0.02)"
    root = start(code=code, start_new_session=True)
    herd = Herd(uuid.uuid4().hex, root.pid)
    until(lambda: pid.exists() and pid.read_text())
    assert int(pid.read_text()) in herd.look(marks=False)
    enough.touch()
    root.wait()
    assert herd.look() == [int(pid.read_text())]
    assert herd.end(2.0)
    assert not is_alive(int(pid.read_text()))


def test_who_ignores_the_request_is_ended_all_the_same(start: Start) -> None:
    mark = uuid.uuid4().hex
    deaf = start(mark, f"import signal; signal.signal(15, signal.SIG_IGN); print(1); {SLEEP}",
                 stdout=subprocess.PIPE)  # fmt: skip
    assert deaf.stdout
    stopped = start(mark)
    stopped.send_signal(signal.SIGSTOP)
    herd = Herd(mark)
    until(lambda: len(herd.look()) == 2)
    assert herd.end(0.5)


@pytest.mark.parametrize("mark", ["", "x", "0" * 31, "0" * 33, "../" * 11, "0" * 32 + "\n"])
def test_a_mark_is_checked(mark: str) -> None:
    with pytest.raises(ValueError, match="32"):
        Herd(mark)


def test_a_dismissed_guardian_ends_nobody(start: Start) -> None:
    mark = uuid.uuid4().hex
    mine = start(mark)
    with Guardian(mark) as guardian:
        guardian.guard(mine.pid)
        guardian.dismiss()
    assert not is_alive(guardian.pid)
    assert is_alive(mine.pid)


def test_a_guardian_that_hears_no_farewell_ends_all(start: Start) -> None:
    mark = uuid.uuid4().hex
    mine = start(mark)
    with Guardian(mark):
        pass
    until(lambda: not is_alive(mine.pid))


def test_a_tool_outlives_its_guardian(start: Start) -> None:
    mark = uuid.uuid4().hex
    with Guardian(mark) as guardian:
        os.kill(guardian.pid, signal.SIGKILL)
        until(lambda: not is_alive(guardian.pid))
        guardian.guard(1)
        guardian.dismiss()


@pytest.mark.parametrize(
    ("before", "after", "returned"),
    [
        (None, [1.0], None),
        ([80.0, 80.0], [80.0, 79.9], True),
        ([80.0, 80.0], [80.0, 60.0], False),
        ([80.0, 80.0], [80.0], None),
        ([80.0], None, None),
    ],
)
def test_gpu_memory_that_is_back(
    before: list[float] | None, after: list[float] | None, returned: bool | None
) -> None:
    assert is_returned(before, lambda: after, patience_s=0.0) is returned


def test_gpu_memory_that_comes_back_late() -> None:
    answers = iter([[10.0], [80.0]])
    assert is_returned([80.0], lambda: next(answers), patience_s=10.0) is True
