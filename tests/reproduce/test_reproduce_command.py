"""`forensics reproduce` as its user meets it; the server is a stand-in for genuine ones."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from forensics.reproduce.model import Reproduction

ROOT = Path(__file__).parents[2]
GENUINE = ROOT / "fixtures" / "genuine"
FAILED, FIXED = GENUINE / "h200-capture-failed.log", GENUINE / "h200-capture-fixed.log"
SERVER = '''
"""Fails as the genuine launch did where the fraction is high, else comes up as the fixed one."""
import runpy, sys
fraction = float(sys.argv[sys.argv.index("--mem-fraction-static") + 1])
log = {failed!r} if fraction > 0.97 else {fixed!r}
ends = ["--then", "exit-1"] if fraction > 0.97 else ["--until", "ready to roll"]
sys.argv = ["stand_in.py", log, *ends]
runpy.run_path({stand_in!r}, run_name="__main__")
'''

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A place with an sglang 0.5.16 that needs no GPU, and a model."""
    package = tmp_path / "site" / "sglang"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    code = SERVER.format(
        failed=str(FAILED), fixed=str(FIXED), stand_in=str(Path(__file__).parent / "stand_in.py")
    )
    (package / "launch_server.py").write_text(code)
    info = tmp_path / "site" / "sglang-0.5.16.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: sglang\nVersion: 0.5.16\n")
    (tmp_path / "model").mkdir()
    return tmp_path


@pytest.fixture
def launched(home: Path) -> list[str]:
    """The options that name that place."""
    site, model = home / "site", home / "model"
    found = ["--python", sys.executable, "--env", f"PYTHONPATH={site}"]
    return [*found, "--with", f"model_path={model}", "--folder", str(home / "run")]


@pytest.fixture
def program(home: Path) -> Run:
    def run(*argv: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "forensics", "reproduce", *map(str, argv)],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env={**os.environ, "XDG_STATE_HOME": str(home / "state")},
            stdin=subprocess.DEVNULL,
            timeout=120,
        )

    return run


def lines(text: str) -> list[str]:
    return text.strip().splitlines()


def test_without_a_terminal_only_the_plan_is_shown(
    program: Run, launched: list[str], home: Path
) -> None:
    done = program(FAILED, *launched)
    assert done.returncode == 0
    assert done.stdout.startswith("PLAN for launch 1 of ")
    assert lines(done.stderr) == [
        "forensics: only the plan was shown, nothing ran; add --yes to run it"
    ]
    assert not (home / "run").exists()


def test_a_dry_run_shows_the_plan_even_with_yes(
    program: Run, launched: list[str], home: Path
) -> None:
    done = program(FAILED, *launched, "--yes", "--dry-run")
    assert (done.returncode, done.stderr) == (0, "")
    assert not (home / "run").exists()


def test_confirmed_from_log_to_report(program: Run, launched: list[str], home: Path) -> None:
    done = program(FAILED, *launched, "--yes")
    assert done.returncode == 0, done.stderr
    assert "\nCONFIRMED. The control fails as in the log" in done.stdout
    assert "PROVEN LAUNCH\n" in done.stdout
    told = lines(done.stderr)
    assert told[0].startswith("control (1 of 3) started; log ")
    assert any(line.startswith("fix passed after ") for line in told)
    folder = home / "run"
    found = Reproduction.model_validate_json((folder / "reproduction.json").read_text())
    assert found.verdict == "confirmed"
    assert [trial.outcome for trial in found.trials] == ["failed", "passed", "passed"]
    report = (folder / "report.md").read_text()
    assert report.startswith("# Reproduction\n\n**Confirmed.** The control fails")
    assert "| `control`        | GiB free at capture" in report


def test_the_document_fits_its_schema(program: Run, launched: list[str], home: Path) -> None:
    done = program(FAILED, *launched, "--yes", "--format", "json", "--confirm", 0)
    found = json.loads(done.stdout)
    schema = json.loads(
        subprocess.run(
            [sys.executable, "-m", "forensics", "schema", "reproduction"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    )
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(found, schema)
    assert found == json.loads((home / "run" / "reproduction.json").read_text())
    assert {"verdict", "exit_code", "trials"} <= found.keys()
    for trial in found["trials"]:
        fields = "name role command outcome phase predicted measured log"
        assert set(fields.split()) <= trial.keys()


def test_the_plan_is_a_document_too(program: Run, launched: list[str]) -> None:
    done = program(FAILED, *launched, "--dry-run", "--format", "json")
    plan = json.loads(done.stdout)
    assert [trial["name"] for trial in plan["trials"]] == ["control", "fix", "confirmation-1"]
    assert plan["trials"][1]["changes"][0]["to"] == 0.93


@pytest.mark.parametrize(
    ("change", "code", "word"),
    [
        ("mem_fraction_static=0.975", 4, "NOT CONFIRMED"),
        ("mem_fraction_static=0.5", 0, "CONFIRMED"),
    ],
)
def test_exit_codes_of_verdicts(
    program: Run, launched: list[str], change: str, code: int, word: str
) -> None:
    done = program(FAILED, *launched, "--yes", "--set", change, "--confirm", 0)
    assert done.returncode == code
    assert f"\n{word}. " in done.stdout


def test_a_control_that_passes_decides_nothing(program: Run, launched: list[str]) -> None:
    done = program(FAILED, *launched, "--yes", "--with", "mem_fraction_static=0.9")
    assert done.returncode == 5
    assert "\nNOT REPRODUCED. " in done.stdout
    assert "left out, since the verdict stands: fix, confirmation-1" in done.stderr


def test_what_cannot_run_here_is_not_run(program: Run, launched: list[str], home: Path) -> None:
    done = program(FAILED, *launched, "--yes", "--with", "model_path=/no/such/model")
    assert done.returncode == 5
    assert "cannot run here (model path: " in done.stderr
    assert not (home / "run").exists()
    forced = program(
        FAILED, *launched, "--yes", "--with", "model_path=/no/such/model", "--force", "--confirm", 0
    )
    assert forced.returncode == 0


def test_foreign_code_needs_a_consent_of_its_own(
    program: Run, launched: list[str], home: Path
) -> None:
    foreign = ["--with", "trust_remote_code=true"]
    done = program(FAILED, *launched, *foreign, "--yes")
    assert done.returncode == 2
    assert "add --allow-foreign-code" in done.stderr
    assert "--trust-remote-code  Python files that come with the checkpoint" in done.stdout
    assert not (home / "run").exists()
    done = program(FAILED, *launched, *foreign, "--yes", "--allow-foreign-code", "--confirm", 0)
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "name a log, or --launch FILE"),
        ([GENUINE / "cpu-healthy.log"], "did not fail: there is nothing to reproduce"),
        ([FAILED, "--set", "mem_fraction_static=much"], "is a number"),
        ([FAILED, "--set", "mem_fracton_static=0.9"], "did you mean mem_fraction_static"),
        ([FAILED, "--run", 2], "the input has 1 launch"),
        ([FAILED, "--remedy", 99], "remedies"),
        ([FAILED, "--resume", "x"], "has its plan"),
        ([FAILED, "--margin", 1], "go with --search"),
        ([FAILED, "--goal", "ready", "--load", 3], "goal load alone"),
        ([FAILED, "--env", "1X=2"], "NAME=VALUE"),
        (["--resume", "/no/such/folder"], "folder"),
        (["/no/such.log"], "no such file"),
    ],
)
def test_wrong_use_is_one_line_and_two(program: Run, argv: list[object], said: str) -> None:
    done = program(*argv)
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_some_other_text_is_no_log(program: Run, tmp_path: Path) -> None:
    poem = tmp_path / "poem.txt"
    poem.write_text("the quick brown fox\n" * 20)
    assert program(poem).returncode == 3


def test_a_folder_is_resumed_where_it_was_cut(
    program: Run, launched: list[str], home: Path
) -> None:
    assert program(FAILED, *launched, "--yes").returncode == 0
    folder = home / "run"
    (folder / "reproduction.json").unlink()
    (folder / "confirmation-1" / "result.json").unlink()
    done = program("--resume", folder)
    assert done.returncode == 0
    assert "only the plan was shown" in done.stderr
    assert not (folder / "reproduction.json").exists()
    done = program("--resume", folder, "--yes")
    assert done.returncode == 0, done.stderr
    assert "control failed: graph-capture-oom kept from before" in done.stderr
    assert "\nCONFIRMED. " in done.stdout
    again = program(FAILED, *launched, "--yes")
    assert again.returncode == 2
    assert "holds a plan already" in again.stderr


def test_a_secret_is_given_again_on_resuming(program: Run, launched: list[str], home: Path) -> None:
    secret = ["--with", "api_key=s3cret-of-mine", "--env", "MY_PASSWORD=s3cret-of-mine"]
    done = program(FAILED, *launched, *secret, "--yes", "--confirm", 0)
    assert done.returncode == 0, done.stderr
    folder = home / "run"
    kept = [p.read_text() for p in folder.rglob("*") if p.is_file()]
    assert "s3cret" not in "".join(kept) + done.stdout + done.stderr
    (folder / "fix" / "result.json").unlink()
    refused = program("--resume", folder, "--yes")
    assert refused.returncode == 2
    (told,) = lines(refused.stderr)
    assert told.endswith("give again MY_PASSWORD with --env, api_key with --with")
    assert program("--resume", folder, "--yes", *secret).returncode == 0


def test_a_fixed_plan_is_not_changed_on_resuming(
    program: Run, launched: list[str], home: Path
) -> None:
    assert program(FAILED, *launched, "--yes", "--confirm", 0).returncode == 0
    for more in (["--set", "page_size=4"], ["--timeout", 9], [FAILED], ["--skip-control"]):
        done = program("--resume", home / "run", "--yes", *more)
        assert done.returncode == 2
        assert "which is fixed" in done.stderr


def test_a_plan_goes_on_in_the_folder_that_it_was_made_in(
    program: Run, launched: list[str], home: Path
) -> None:
    python = Path(os.path.relpath(sys.executable, ROOT))
    launched[1] = str(python)
    assert program(FAILED, *launched, "--yes", "--confirm", 0).returncode == 0
    (home / "run" / "fix" / "result.json").unlink()
    argv = ["--resume", "run", "--yes"]
    command = [sys.executable, "-m", "forensics", "reproduce", *argv]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        command, cwd=home, capture_output=True, text=True, env=env, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert "\nCONFIRMED. " in done.stdout


def test_a_new_folder_is_named_by_the_log_and_stays_among_the_users_state(
    program: Run, launched: list[str], home: Path
) -> None:
    log = home / "$(touch pwned); rm -rf .log"
    log.write_text(FAILED.read_text())
    done = program(log, *launched[:-2], "--yes", "--confirm", 0)
    assert done.returncode == 0, done.stderr
    (folder,) = (home / "state").rglob("reproduction.json")
    assert re.fullmatch(r"touch-pwned-rm--rf-\d{8}-\d{6}-\d+", folder.parent.name)


def on_a_terminal(argv: list[str], answers: dict[str, str]) -> tuple[int, str]:
    """Runs the program on a terminal and answers its questions."""
    pid, fd = pty.fork()
    if pid == 0:
        os.environ["COLUMNS"] = "80"
        os.execv(sys.executable, [sys.executable, "-m", "forensics", "reproduce", *argv])
    out = ""
    while select.select([fd], [], [], 60)[0]:
        try:
            data = os.read(fd, 65536)
        except OSError:  # how a terminal says that the other side has gone
            break
        out += data.decode(errors="replace")
        for question in [one for one in answers if one in out]:
            os.write(fd, f"{answers.pop(question)}\n".encode())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), out


def test_on_a_terminal_it_asks(launched: list[str], home: Path) -> None:
    code, out = on_a_terminal([str(FAILED), *launched], {"Run these 3 launches?": "n"})
    assert code == 0
    assert "nothing ran" in out
    for sign, status in (("\x03", 130), ("\x04", 0)):  # Ctrl-C, and the end of the input
        code, out = on_a_terminal([str(FAILED), *launched], {"Run these 3 launches?": sign})
        assert code == status
    assert not (home / "run").exists()
    argv = [str(FAILED), *launched, "--confirm", "0", "--with", "trust_remote_code"]
    asked = {"Execute foreign code (--trust-remote-code)?": "y", "Run these 2 launches?": "y"}
    code, out = on_a_terminal(argv, asked)
    assert asked == {}
    assert code == 0
    assert "CONFIRMED" in out


HOSTILE = "x'; touch PWNED; $(touch PWNED) `touch PWNED`\n--port=1\t<b> | [a](http://x) ../../../up"


def test_what_a_log_says_reaches_no_shell_and_stays_in_the_folder(
    program: Run, launched: list[str], home: Path
) -> None:
    log = home / "hostile.log"
    text = FAILED.read_text()
    dumped = "'served_model_name': '/models/llama-8b'"
    call = "served_model_name='/models/llama-8b'"
    assert (dumped in text) != (call in text)
    text = text.replace(dumped, f"'served_model_name': {HOSTILE!r}")
    log.write_text(text.replace(call, f"served_model_name={HOSTILE!r}"))
    before = {path for path in home.rglob("*") if "run" not in path.parts}
    done = program(log, *launched, "--yes", "--confirm", 0)
    assert done.returncode == 0, done.stderr
    assert "Not all of it can be shown" in done.stdout
    folder = home / "run"
    environment = json.loads((folder / "control" / "environment.json").read_text())
    command = environment["command"]
    assert command[command.index("--served-model-name") + 1] == HOSTILE
    after = {path for path in home.rglob("*") if "run" not in path.parts}
    assert {path for path in after - before if "__pycache__" not in path.parts} == set()
    assert not list(ROOT.glob("PWNED"))
    assert {path.name for path in folder.iterdir()} == {
        *(".lock", "plan.json", "control", "fix", "reproduction.json", "report.md")
    }
    report = (folder / "report.md").read_text()
    outside = re.sub(r"```.*?```", "", report, flags=re.S)
    assert "<b>" not in re.sub(r"`[^`\n]*`", "", outside)
    assert "](http" not in re.sub(r"`[^`\n]*`", "", outside)


def test_a_script_is_written_in_place_of_a_run(
    program: Run, launched: list[str], home: Path
) -> None:
    script = home / "launch.sh"
    done = program(FAILED, *launched, "--script", script, "--yes")
    assert done.returncode == 0
    assert f"nothing ran; the script is {script}" in done.stderr
    assert not (home / "run").exists()
    subprocess.run(["sh", "-n", script], check=True)
    printed = program(FAILED, *launched, "--script", "-")
    assert printed.stdout == script.read_text()
    command = ["sh", script, "control"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert "Capture cuda graph failed" in ran.stdout + ran.stderr


@pytest.fixture
def ssh(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An `ssh` that stays here: its remote shell is ours."""
    folder = home / "bin"
    folder.mkdir()
    text = '#!/bin/sh\nwhile [ "$1" != "--" ]; do shift; done; shift 2\nexec sh -c "$1"\n'
    (folder / "ssh").write_text(text)
    (folder / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.mark.usefixtures("ssh")
def test_elsewhere_is_looked_at_and_run_through_the_transport(
    program: Run, launched: list[str], home: Path
) -> None:
    done = program(FAILED, *launched, "--on", "ssh:gpu1", "--yes", "--confirm", 0)
    assert done.returncode == 0, done.stderr
    assert "HERE  ssh -T " in done.stdout
    assert "with sglang 0.5.16" in done.stdout
    assert "\nCONFIRMED. " in done.stdout
    plan = json.loads((home / "run" / "plan.json").read_text())
    assert plan["on"] == "ssh:gpu1"
    assert plan["trials"][0]["command"][0] == sys.executable


@pytest.mark.usefixtures("ssh")
def test_a_server_elsewhere_is_not_asked_from_here(program: Run, launched: list[str]) -> None:
    done = program(FAILED, *launched, "--on", "ssh:gpu1", "--goal", "health")
    assert done.returncode == 2
    assert "out of reach: --goal ready" in done.stderr
    assert program(FAILED, *launched, "--on", "carrier:pigeon").returncode == 2


def test_the_best_value_is_searched_and_confirmed(
    program: Run, launched: list[str], home: Path
) -> None:
    done = program(FAILED, *launched, "--yes", "--search", "mem-fraction-static")
    assert done.returncode == 0, done.stderr
    found = json.loads((home / "run" / "reproduction.json").read_text())
    assert found["best"]["name"] == "mem_fraction_static"
    assert 0.95 <= found["best"]["value"] <= 0.97 < found["best"]["known_bad"]
    assert found["trials"][-1]["role"] == "confirmation"
    assert "BEST VALUE\n" in done.stdout
