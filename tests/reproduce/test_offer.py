"""`analyze` ends with the line that tries the fix, where one can be tried."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[..., "subprocess.CompletedProcess[str]"]
RULES = Path(__file__).parents[1] / "rules"


def offered(program: Program, *logs: object) -> list[list[str] | None]:
    done = program("analyze", "--json", *map(str, logs))
    return [run["reproduce"] for run in json.loads(done.stdout)["runs"]]


def test_the_line_is_what_can_be_typed(program: Program, tmp_path: Path, fixtures: Path) -> None:
    log = tmp_path / "my server's.log"
    shutil.copy(fixtures / "genuine" / "h200-capture-failed.log", log)
    last = program("analyze", str(log)).stdout.splitlines()[-1]
    assert last.startswith("Try the fix: forensics reproduce ")
    words = shlex.split(last.removeprefix("Try the fix: "))
    assert [words] == offered(program, log)
    done = program(*words[1:], "--dry-run")
    assert done.returncode == 0
    assert "Change: --mem-fraction-static 0.9775 -> 0.93" in done.stdout


def test_of_several_launches_each_has_its_own(program: Program, fixtures: Path) -> None:
    log = fixtures / "sglang-glm5-abc.log"
    assert offered(program, log) == [
        None,  # an upgrade is nothing that the tool makes
        ["forensics", "reproduce", "--run", "2", str(log)],
        ["forensics", "reproduce", "--run", "3", str(log)],
    ]


@pytest.mark.parametrize(
    "log",
    [
        "package-too-old/hit.log",
        "interface-not-found/hit.log",
        "unknown-failure/hit.log",
        "kv-retraction/miss.log",
    ],
)
def test_none_is_offered_where_nothing_can_be_typed(program: Program, log: str) -> None:
    assert set(offered(program, RULES / log)) <= {None}
    assert "Try the fix" not in program("analyze", str(RULES / log)).stdout


@pytest.mark.parametrize("rule", ["port-in-use", "refused-arguments"])
def test_a_value_that_this_machine_or_the_launch_knows_is_offered(
    program: Program, rule: str
) -> None:
    assert offered(program, RULES / rule / "hit.log") == [
        ["forensics", "reproduce", str(RULES / rule / "hit.log")]
    ]


def test_a_log_named_like_an_option_stays_a_log(
    program: Program, tmp_path: Path, fixtures: Path
) -> None:
    shutil.copy(fixtures / "sglang-glm5.log", tmp_path / "--yes.log")
    done = program("analyze", "--json", "--", "--yes.log", cwd=tmp_path)
    (words,) = [run["reproduce"] for run in json.loads(done.stdout)["runs"]]
    assert words == ["forensics", "reproduce", "--", "--yes.log"]


def test_a_pipe_is_not_read_twice(fixtures: Path, root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "forensics", "analyze", "-"],
        input=(fixtures / "sglang-glm5.log").read_text(),
        capture_output=True,
        text=True,
        check=False,
        cwd=root,
    )
    assert "Fix: lower" in done.stdout
    assert "Try the fix" not in done.stdout
