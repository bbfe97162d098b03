"""What the program loads: diagnosing needs no GPU libraries, the help nothing heavy."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPORT = """
import sys
from forensics.cli import main
sys.argv = ["forensics", *{argv!r}]
try:
    main()
except SystemExit:
    pass
print(*sorted({{name.partition(".")[0] for name in sys.modules}}), file=sys.stderr)
"""


def loaded(root: Path, *argv: str) -> set[str]:
    """Top-level packages that are loaded when a command has run."""
    code = REPORT.format(argv=argv)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root
    )
    return set(done.stderr.split())


@pytest.mark.parametrize("output", ["text", "json"])
def test_diagnosing_needs_no_gpu_library_and_no_terminal_program(root: Path, output: str) -> None:
    packages = loaded(root, "analyze", "fixtures/sglang-glm5.log", "--format", output)
    assert {"forensics", "lark"} <= packages
    assert not packages & {"torch", "sglang", "transformers", "textual"}


def test_help_loads_nothing_heavy(root: Path) -> None:
    assert not loaded(root, "--help") & {"polars", "lark", "pydantic", "rich", "textual", "torch"}


@pytest.mark.parametrize("argv", [["--version"], ["analyze", "--help"]])
def test_nothing_is_loaded_ahead_of_its_use(root: Path, argv: list[str]) -> None:
    # Typer itself loads pydantic to check arguments.
    assert not loaded(root, *argv) & {"polars", "lark", "textual", "torch"}
