"""The recipes of CONTRIBUTING.md, followed to the letter on a copy of the repository."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

BLOCK = re.compile(
    r"(?:^(?P<place>New file|Above `// fields` in|Below `// fields` in|At the end of) "
    r"`(?P<path>[^`]+)`:\n\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$",
    re.M | re.S,
)
PROGRAMS = {"pytest": ["-p", "no:cacheprovider"], "forensics": []}
HIT = "tests/rules/standby-takeover/hit.log"


@dataclass
class Copy:
    """A copy of the repository in which the recipes have been followed."""

    root: Path
    ran: list[subprocess.CompletedProcess[str]]

    def run(self, program: str, *argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", program, *PROGRAMS[program], *argv],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(self.root)},
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def findings(self, log: str) -> dict[str, dict[str, Any]]:
        done = self.run("forensics", "analyze", "--json", log)
        (run,) = json.loads(done.stdout)["runs"]
        return {finding["rule"]: finding for finding in run["findings"]}


def apply(root: Path, place: str, path: Path, text: str) -> None:
    if place == "New file":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return
    old = path.read_text()
    if place == "At the end of":
        path.write_text(f"{old}\n\n{text}")
        return
    above, mark, below = old.partition("// fields\n")
    assert mark
    path.write_text(
        f"{above}{text}\n{mark}{below}" if place.startswith("Above")
        else f"{above}{mark}\n{text}{below.lstrip()}"
    )  # fmt: skip


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Copy:
    folder = tmp_path_factory.mktemp("contribution")
    for name in ("forensics", "grammars", "playbooks", "tests"):
        if (root / name).is_dir():
            shutil.copytree(
                root / name, folder / name, ignore=shutil.ignore_patterns("__pycache__")
            )
    shutil.copy(root / "pyproject.toml", folder)
    made = Copy(folder, [])
    for block in BLOCK.finditer((root / "CONTRIBUTING.md").read_text()):
        if block["place"]:
            apply(folder, block["place"], folder / block["path"], block["text"])
            continue
        assert block["language"] == "console", block["text"]
        for line in block["text"].splitlines():
            program, *argv = shlex.split(line.removeprefix("$ "))
            made.ran.append(made.run(program, *argv))
    return made


def test_every_command_of_the_recipes_works(copy: Copy) -> None:
    assert len(copy.ran) == 3
    assert [done.stdout + done.stderr for done in copy.ran if done.returncode] == []


def test_the_new_kind_is_tested_and_recognised(copy: Copy) -> None:
    assert re.search(r"\b\d+ passed", copy.ran[0].stdout)
    rows = copy.run("forensics", "events", HIT).stdout.splitlines()
    event = json.loads(rows[1])
    assert (event["kind"], event["rank"]) == ("standby_takeover", "TP0")
    assert (event["old_host"], event["waited_s"]) == ("node-7", 12.4)


def test_the_new_rules_fire_where_they_should(copy: Copy) -> None:
    found = copy.findings(HIT)
    assert found["standby-takeover"]["title"] == "node-7 was lost; a standby took over after 12.4 s"
    assert found["standby-takeover"]["known_at"]["line"] == 2
    assert found["standby-flapping"]["title"] == "A standby took over 2 times"
    assert [line["line"] for line in found["standby-flapping"]["evidence"]] == [2, 3]


def test_the_new_rules_are_silent_where_they_should(copy: Copy) -> None:
    assert not {"standby-takeover", "standby-flapping"} & set(
        copy.findings("tests/rules/standby-takeover/miss.log")
    )


def test_the_playbook_is_shown(copy: Copy) -> None:
    assert "What it means" in copy.ran[2].stdout


def test_it_is_one_page(root: Path) -> None:
    assert len((root / "CONTRIBUTING.md").read_text().splitlines()) < 150
