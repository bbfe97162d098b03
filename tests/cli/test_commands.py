from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import polars as pl
import pytest

from forensics import __version__
from forensics.cli import app
from forensics.reading import InputError

if TYPE_CHECKING:
    from conftest import Line, Result

Run = Callable[..., "Result"]


@pytest.mark.parametrize(
    ("severity", "bar", "code"),
    [
        ("critical", "critical", 1),
        ("warning", "critical", 0),
        ("warning", "warning", 1),
        ("info", "warning", 0),
        ("info", "info", 1),
        (None, "info", 0),
        ("critical", "never", 0),
    ],
)
def test_the_bar_decides_on_the_exit_code(
    line: Line, run: Run, severity: str | None, bar: str, code: int
) -> None:
    line.severity = severity  # type: ignore[assignment]
    assert run("analyze", "a.log", "--fail-on", bar).code == code


def test_the_bar_is_critical(line: Line, run: Run) -> None:
    assert run("analyze", "a.log").code == 1
    line.severity = "warning"
    assert run("analyze", "a.log").code == 0


def test_json_is_all_there_is_on_standard_output(line: Line, run: Run) -> None:
    for options in (["--json"], ["--format", "json"]):
        result = run("analyze", "a.log", *options)
        assert json.loads(result.out)["schema_version"] == 1
        assert result.err == ""


def test_options_reach_the_line(
    line: Line, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    known = [SimpleNamespace(id=name) for name in "xyz"]
    monkeypatch.setattr("forensics.rules.registry", lambda: known)
    run("analyze", "a.log", "-", "--select", "x", "--select", "y", "--ignore", "z",
        "--model-config", "config.json")  # fmt: skip
    ((paths, settings),) = line.calls
    assert paths == ["a.log", "-"]
    assert (settings.select, settings.ignore) == ({"x", "y"}, {"z"})
    assert settings.model_config == Path("config.json")


def test_a_misspelt_rule_is_refused(line: Line, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("forensics.rules.registry", lambda: [SimpleNamespace(id="graph-oom")])
    result = run("analyze", "a.log", "--ignore", "graph-om")
    assert result.code == 2
    assert "no rule 'graph-om'; did you mean graph-oom?" in result.err


def test_one_run_alone(line: Line, run: Run) -> None:
    runs = json.loads(run("analyze", "a.log", "--json", "--run", "2").out)["runs"]
    assert [found["run"] for found in runs] == [2]
    assert run("analyze", "a.log", "--run", "1").code == 0
    result = run("analyze", "a.log", "--run", "7")
    assert result.code == 2
    assert "the input has 2 launches" in result.err


def test_quiet_prints_the_verdicts(line: Line, run: Run) -> None:
    out = run("analyze", "a.log", "-q", "--run", "2").out
    assert out == "FAILED while starting up: Something happened.\n"


@pytest.mark.parametrize("command", ["analyze", "events", "coverage"])
@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (InputError("no such file: a.log"), 2, "forensics: no such file: a.log\n"),
        (PermissionError(13, "Permission denied", "b"), 2, "forensics: b: Permission denied\n"),
        (KeyboardInterrupt(), 130, ""),
        (
            ValueError("odd\n\x1b[2Jthing"),
            70,
            "forensics: internal error: ValueError: odd thing (rerun with --debug for the "
            "traceback)\n",
        ),
    ],
)
def test_errors_are_one_line_and_a_code(
    line: Line, run: Run, command: str, error: BaseException, code: int, text: str
) -> None:
    line.error = error
    result = run(command, "a.log")
    assert (result.code, result.err) == (code, text)


def test_what_is_no_log_ends_with_3(line: Line, run: Run) -> None:
    line.error = sys.modules["forensics.pipeline"].NotALog("a.log: nothing was recognised")
    result = run("analyze", "a.log")
    assert (result.code, result.err) == (3, "forensics: a.log: nothing was recognised\n")


def test_debug_shows_the_traceback(line: Line, run: Run) -> None:
    line.error = ValueError("odd")
    with pytest.raises(ValueError, match="odd"):
        run("analyze", "a.log", "--debug")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["analyze"], "name a log or a folder, or - for standard input"),
        (["analyze", "a", "--format", "xml"], "xml"),
        (["analyze", "a", "--nosuch"], "--nosuch"),
        (["nosuch"], "No such command 'nosuch'"),
        (["events", "a", "--format", "parquet"], "parquet needs a file"),
    ],
)
def test_wrong_usage_ends_with_2(line: Line, run: Run, argv: list[str], message: str) -> None:
    result = run(*argv)
    assert result.code == 2
    assert "Usage: forensics" in result.err
    assert message in result.err


def test_an_output_file_is_whole_or_as_it_was(line: Line, run: Run, tmp_path: Path) -> None:
    target = tmp_path / "events.ndjson"
    assert run("events", "a.log", "-o", str(target)).code == 0
    whole = target.read_text()
    assert len(whole.splitlines()) == 2
    line.error = InputError("cut")
    assert run("events", "a.log", "-o", str(target)).code == 2
    assert target.read_text() == whole
    assert os.listdir(tmp_path) == ["events.ndjson"]


def test_an_output_never_overwrites_an_input(line: Line, run: Run, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text("precious\n")
    result = run("analyze", str(log), "-o", str(log))
    assert (result.code, log.read_text()) == (2, "precious\n")


def test_an_output_that_cannot_be_written(line: Line, run: Run, tmp_path: Path) -> None:
    result = run("analyze", "a.log", "-o", str(tmp_path / "no" / "such"))
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert result.err.endswith("/no/such: No such file or directory\n")
    assert run("analyze", "a.log", "-o", "/dev/null").code == 1
    assert Path("/dev/null").is_char_device()


def test_events_take_their_format_from_the_suffix(line: Line, run: Run, tmp_path: Path) -> None:
    out = run("events", "a.log").out
    assert [json.loads(row)["kind"] for row in out.splitlines()] == ["begin", "other"]
    run("events", "a.log", "-o", str(tmp_path / "a.csv"))
    table = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text())))
    assert [row["avail_gib"] for row in table] == ["0.96", ""]
    run("events", "a.log", "-o", str(tmp_path / "a.parquet"))
    assert pl.read_parquet(tmp_path / "a.parquet")["avail_gib"].to_list() == [0.96, None]


def test_coverage(line: Line, run: Run) -> None:
    assert run("coverage", "a.log").out == (
        "       lines    recognised    share  source\n"
        "          10             7    87.5%  a.log\n"
        "\n"
        "NOT UNDERSTOOD  most frequent first, numbers masked\n"
        "       6  odd line # at #\n"
        "       1  other line\n"
    )
    data = json.loads(run("coverage", "a.log", "--format", "json").out)
    assert data["sources"][0]["share"] == 0.875
    assert data["unknown"] == [
        {"shape": "odd line # at #", "count": 6},
        {"shape": "other line", "count": 1},
    ]
    assert "odd" not in run("coverage", "a.log", "--unknown", "0").out


def test_schema(run: Run) -> None:
    assert json.loads(run("schema").out)["title"] == "Document"
    events = json.loads(run("schema", "--events").out)
    assert events["$defs"]["LoadWeightBegin"]["required"][0] == "source"


def test_version_and_help(run: Run) -> None:
    assert run("--version").out == f"forensics {__version__}\n"
    assert "analyze" in run("--help").out
    assert run("analyze", "-h").code == 0


def test_help_loads_nothing_heavy() -> None:
    code = "import sys, forensics.cli; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"polars", "pydantic", "rich", "lark", "textual", "torch", "forensics.views"}
    assert not heavy & set(done.stdout.split())


def test_a_reader_that_leaves_early_is_no_error() -> None:
    command = f"{sys.executable} -m forensics schema | head -c 10"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupted_reading_ends_with_130() -> None:
    command = [sys.executable, "-m", "forensics", "analyze", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdin
        assert program.stderr
        program.stdin.write(b"[2026-02-18 23:53:22] Load weight begin.\n" * 100)
        program.stdin.flush()
        time.sleep(3)
        program.send_signal(signal.SIGINT)
        assert program.wait(10) == 130
        assert program.stderr.read() == b""


def test_a_closed_pipe_changes_no_exit_code(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("forensics.views.terminal.show", closed)
    monkeypatch.setattr("forensics.views.output.abandon_stdout", lambda: None)
    with pytest.raises(SystemExit) as stop:
        app(["analyze", "a.log"])
    assert stop.value.code == 1
