"""Errors end with the line and the exit code that `analyze` gives them."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[..., "subprocess.CompletedProcess[str]"]


def on_a_terminal(*argv: str) -> tuple[int, str]:
    """Runs the program on a terminal of its own: exit code, and its standard error, to which the
    screen is drawn as well."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-m", "forensics", *argv],
        stdin=theirs,
        stdout=theirs,
        stderr=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    os.close(theirs)
    try:
        while os.read(ours, 65536):
            pass
    except OSError:
        pass  # the last program has left the terminal
    assert child.stderr is not None
    with child.stderr:
        said = child.stderr.read().decode()
    os.close(ours)
    return child.wait(30), said


@pytest.mark.parametrize("content", [None, b"", b"Dear diary, nothing happened.\n" * 20])
def test_as_analyze_has_it(program: Program, tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "some.txt"
    if content is not None:
        path.write_bytes(content)
    code, said = on_a_terminal("tui", str(path))
    plain = program("analyze", str(path))
    assert code == plain.returncode != 0
    assert said.endswith(plain.stderr.splitlines(keepends=True)[-1])
    assert "Traceback" not in said


def test_without_a_terminal_it_says_so(program: Program, fixtures: Path) -> None:
    done = program("tui", str(fixtures / "sglang-glm5.log"))
    assert done.returncode == 2
    assert "needs a terminal" in done.stderr
