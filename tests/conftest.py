"""What tests of several stages share: the repository's folder, the fixtures, the program."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "sglang: needs a real SGLang server (see the README)")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "sglang" in str(config.option.markexpr):
        return
    for item in items:
        if item.get_closest_marker("sglang"):
            item.add_marker(pytest.mark.skip(reason="asked for with -m sglang"))


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def fixtures() -> Path:
    return ROOT / "fixtures"


@pytest.fixture(scope="session")
def program() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `forensics` as its users do: in a process of its own, its output in a pipe."""

    def run(*argv: str, cwd: Path = ROOT, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        quiet = {"COLUMNS", "FORCE_COLOR", "NO_COLOR", "CLICOLOR_FORCE", "TERM"}
        env = {name: value for name, value in os.environ.items() if name not in quiet}
        return subprocess.run(
            [sys.executable, "-m", "forensics", *argv],
            capture_output=True,
            text=True,
            check=False,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            timeout=timeout,
        )

    return run
