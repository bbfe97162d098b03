"""The README shows what the program prints now, and names every command there is."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def readme(root: Path) -> str:
    return (root / "README.md").read_text(encoding="utf-8")


def test_the_output_shown_is_the_output_now(
    readme: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(root / "scripts"))
    from refresh_readme import refreshed

    assert readme.count("```console\n$ forensics ") == 2
    assert refreshed(readme) == readme, "run python scripts/refresh_readme.py"


def test_every_command_is_in_the_table(readme: str, program: Program) -> None:
    listed = set(re.findall(r"^\| `forensics (\w+)", readme, re.M))
    _, _, commands = program("--help").stdout.partition("Commands:\n")
    assert listed == set(re.findall(r"^  (\w+)", commands, re.M))


def test_every_option_named_exists(readme: str, program: Program) -> None:
    for command, options in re.findall(r"^\| `forensics (\w+).*? \| (.*) \|$", readme, re.M):
        known = program(command, "--help").stdout
        assert [
            option for option in re.findall(r"`(--[\w-]+)", options) if option not in known
        ] == []


def test_both_commands_are_one_line_each(readme: str, root: Path) -> None:
    main, tests = (line for line in readme.splitlines() if line.startswith("python3 -m venv"))
    assert main.endswith(".venv/bin/forensics analyze fixtures/sglang-glm5.log")
    assert tests in (root / ".ci" / "run").read_text()
    assert sys.version_info >= (3, 11)
