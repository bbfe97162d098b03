"""The command: where the report goes, in which form, with which exit code."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Program = Callable[..., "subprocess.CompletedProcess[str]"]
LOG = "fixtures/sglang-glm5.log"


def test_markdown_on_standard_output_is_the_default(program: Program) -> None:
    done, dashed = program("report", LOG), program("report", LOG, "-o", "-")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("# SGLang launch failed while capturing CUDA graphs\n")
    assert dashed.stdout == done.stdout


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("r.md", "# SGLang launch"),
        ("r.html", "<!DOCTYPE html>"),
        ("r.sarif", '{\n  "$schema"'),
        ("r.xml", "<?xml"),
        ("r.json", '{\n  "schema_version"'),
        ("r.txt", "FAILED"),
    ],
)
def test_the_files_name_tells_the_form(
    program: Program, tmp_path: Path, name: str, begins: str
) -> None:
    done = program("report", LOG, "-o", str(tmp_path / name))
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
    assert (tmp_path / name).read_text().startswith(begins)


def test_analyze_offers_the_same_forms(program: Program) -> None:
    for form in ("markdown", "html", "sarif", "junit", "json"):
        same = program("report", LOG, "--format", form).stdout
        assert program("analyze", LOG, "--format", form).stdout == same


@pytest.mark.parametrize(("bar", "code"), [("critical", 1), ("never", 0)])
def test_the_bar_decides_on_the_exit_code(program: Program, bar: str, code: int) -> None:
    assert program("report", LOG, "--fail-on", bar).returncode == code


def test_names_are_hidden_for_an_issue_unless_told_otherwise(
    program: Program, tmp_path: Path
) -> None:
    log = tmp_path / "l.log"
    log.write_text((Path(__file__).parents[2] / LOG).read_text().replace("0.0.0.0", "10.9.8.7"))
    options = ("report", str(log), "--fail-on", "never")
    assert "10.9.8.7" not in program(*options, "--for", "issue").stdout
    assert "10.9.8.7" not in program(*options, "--redact").stdout
    assert "10.9.8.7" in program(*options, "--for", "issue", "--no-redact").stdout
    assert "10.9.8.7" in program(*options).stdout


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--for", "issue", "--format", "html"), "--for issue writes markdown"),
        (("--reproduction", "no-such.json"), "no-such.json"),
        (("--reproduction", LOG), "is no reproduction.json"),
        (("--run", "7"), "--run 7"),
    ],
)
def test_wrong_usage_is_one_line(program: Program, options: tuple[str, ...], said: str) -> None:
    done = program("report", LOG, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_no_log_is_told(program: Program, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("just a text\n")
    assert program("report", str(tmp_path / "x")).returncode == 3
