"""The script for people who run it elsewhere: run here, against a program that prints its words."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forensics.reproduce.model import Consent, Failure, Figures, ReproductionPlan, TrialPlan
from forensics.reproduce.script_text import script_text

SHELLS = [path for name in ("dash", "bash", "sh") if (path := shutil.which(name))]
HOSTILE = [
    *("; rm -rf ~", "$(touch mark)", "`touch mark`", "a\nb", "'", '"', "\\", "'; touch mark; '"),
    *("", " ", "$HOME", "--", "-x", "*", "~", "!", "#", "&", "|", ">mark", "ü 🙂", "\t", "end\n"),
    *('{"a": [1, "b"]}', "${X}", "${X:?}", "\\n", "%s", "EOF", "}", ")", "esac", "\x1b[31m", "\r"),
]


@pytest.fixture
def printer(tmp_path: Path) -> str:
    program = tmp_path / "print words"
    program.write_text(
        f"#!{sys.executable}\nimport json, os, sys\n"
        "print(json.dumps([sys.argv[1:], dict(os.environ)]))\n"
    )
    program.chmod(0o755)
    return str(program)


def plan(command: list[str], **words: object) -> ReproductionPlan:
    failure = Failure.model_validate(
        {"rule": "r", "class": "gpu_memory", "phase": "graph_capture", "title": "Out of memory"}
        | {"text": "$(touch mark)\n; touch mark"}
    )
    trial = {"command": command, "goal": "capture", **words}
    return ReproductionPlan(
        logs=["log\n; touch mark.txt"],
        run=1,
        failure=failure,
        trials=[
            TrialPlan.model_validate(
                {"name": "control", "role": "control", "expects": "fails"} | trial
            ),
            TrialPlan.model_validate({"name": "fix", "role": "fix", "expects": "passes"} | trial),
            TrialPlan.model_validate(
                {"name": "confirmation-1", "role": "confirmation", "expects": "passes"} | trial
            ),
        ],
        diff=["- --x 1", "+ --x '$(touch mark)\ntouch mark'"],
        notes=["left out: `touch mark`\r\ntouch mark"],
        consents=[Consent(what="--trust-remote-code", because="x\n\ntouch mark")],
        limits=["\u2028touch mark"],
    )


def run(
    text: str, shell: str, folder: Path, which: str = "control"
) -> tuple[list[str], dict[str, str]]:
    script = folder / "script.sh"
    script.write_text(text)
    subprocess.run([shell, "-n", str(script)], check=True)
    env = {"PATH": os.environ["PATH"], "GONE": "1", "KEPT": "2"}
    done = subprocess.run(
        [shell, str(script), which], capture_output=True, text=True, env=env, cwd=folder, check=True
    )
    words, there = json.loads(done.stdout)
    return words, there


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("which", ["control", "fix"])
def test_hostile_values_arrive_and_do_nothing(
    shell: str, which: str, printer: str, tmp_path: Path
) -> None:
    values = [word for i, value in enumerate(HOSTILE) for word in (f"--flag-{i}", value)]
    env = {f"V{i}": value for i, value in enumerate(HOSTILE)}
    text = script_text(plan([printer, *values], env=env, unset_env=["GONE"]), "forensics 0")
    words, there = run(text, shell, tmp_path, which)
    assert words == values
    assert {name: there[name] for name in env} == env
    assert "GONE" not in there
    assert there["KEPT"] == "2"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["print words", "script.sh"]


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=12), max_size=6
    )
)
def test_any_words_arrive(printer: str, tmp_path: Path, words: list[str]) -> None:
    text = script_text(plan([printer, *words]), "forensics 0")
    if "[redacted]" not in text and ":?" not in text:
        assert run(text, SHELLS[0], tmp_path)[0] == words


@pytest.mark.parametrize("shell", SHELLS)
def test_no_terminal_obeys_the_script(shell: str, printer: str, tmp_path: Path) -> None:
    words = ["--a", "\x1b]0;owned\x07\x9b31m", "--b=\r\u202ereversed\n\x1b[2J", "\x7f"]
    text = script_text(plan([printer, *words], env={"V": "\x1b[31m"}), "forensics 0")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", text)
    arrived, there = run(text, shell, tmp_path)
    assert arrived == words
    assert there["V"] == "\x1b[31m"


def test_what_to_expect_stands_in_comments() -> None:
    predicted = Figures(free_gib_at_capture=7.6)
    text = script_text(
        plan(["python3", "--x", "1"], predicted=predicted, timeout_s=900), "forensics 0"
    )
    assert "# control: fails in phase graph_capture: Out of memory" in text
    assert "# fix: passes when all graphs are captured" in text
    assert "predicted: 7.60 GiB free" in text
    assert "decided within 900 s" in text
    assert "# This runs foreign code:" in text
    assert text.count("() {") == 2
    outside = [line for line in text.splitlines() if "touch mark" in line and line[:1] != "#"]
    assert outside == []


def test_a_secret_is_asked_for(printer: str, tmp_path: Path) -> None:
    command = [printer, "--api-key", "sk-verysecret1", "--hf-token=hf_abcdefghijkl", "--x", "1"]
    text = script_text(plan(command, env={"HF_TOKEN": "hf_abcdefghijkl"}), "forensics 0")
    assert "secret1" not in text
    assert "hf_abc" not in text
    script = tmp_path / "script.sh"
    script.write_text(text)
    call = [SHELLS[0], str(script), "control"]
    env = {"PATH": os.environ["PATH"]}
    refused = subprocess.run(call, env=env, capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "HF_TOKEN" in refused.stderr
    env |= {"HF_TOKEN": "t", "API_KEY": "a'b c"}
    done = subprocess.run(call, env=env, capture_output=True, text=True, check=True)
    words, there = json.loads(done.stdout)
    assert words == ["--api-key", "a'b c", "--hf-token=t", "--x", "1"]
    assert there["HF_TOKEN"] == "t"


@pytest.mark.parametrize("arguments", [[], ["other"], ["control; id"]])
def test_it_says_how_it_is_used(arguments: list[str], tmp_path: Path) -> None:
    script = tmp_path / "script.sh"
    script.write_text(script_text(plan(["false"]), "forensics 0"))
    done = subprocess.run(
        [SHELLS[0], str(script), *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "control|fix" in done.stderr


def test_what_no_command_line_holds_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        script_text(plan(["a\0b"]), "forensics 0")
    for words in ({"env": {"A=1; touch mark": "x"}}, {"unset_env": ["A; touch mark"]}):
        with pytest.raises(ValueError, match="name"):
            script_text(plan(["a"], **words), "forensics 0")
