"""Scripts and command lines that people keep: read as a shell would read them, and never run."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from forensics.launch.script import read_script
from forensics.launch.shell import LaunchError, commands

PLAIN = "python3 -m sglang.launch_server"
SH = shutil.which("bash")


def words(text: str) -> list[str]:
    found = read_script(text)
    return [*found.program, *found.arguments]


def refused(text: str) -> str:
    with pytest.raises(LaunchError) as caught:
        read_script(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("--model m --tp 8", ["--model", "m", "--tp", "8"]),
        ("--model 'a b' --x \"c d\"", ["--model", "a b", "--x", "c d"]),
        ("--x 'it'\\''s' --y it\\'s", ["--x", "it's", "--y", "it's"]),
        ("--x $'a\\tb\\x41\\u00e4\\'' --y $\"z\"", ["--x", "a\tbAä'", "--y", "z"]),
        ('--x "a\\"b\\$c\\`d\\e"', ["--x", 'a"b$c`d\\e']),
        ("--x '' \"\"", ["--x", "", ""]),
        ("--x '{\"a\": [1, 2]}' --y='{\"b\":1}'", ["--x", '{"a": [1, 2]}', '--y={"b":1}']),
        ("--x a\\\n  --y b", ["--x", "a", "--y", "b"]),
        ("--x a\\\nb", ["--x", "ab"]),
        ("--x a#b '#c' # a comment", ["--x", "a#b", "#c"]),
        ("--x 1 > log.txt 2>&1 < /dev/null &", ["--x", "1"]),
        ("--x 1 2>&1 | tee log.txt", ["--x", "1"]),
        ("--x 1 &>> log; echo done", ["--x", "1"]),
        ("--x $ '$HOME' \"a$\"", ["--x", "$", "$HOME", "a$"]),
        ("--model m \\", ["--model", "m"]),
        ('--x "$@" $@', ["--x"]),
        ("--x ${A:-8} ${B:-'a b'} \"${C:-d  e}\" ${D:+no}", ["--x", "8", "a b", "d  e"]),
        ("--x ${A:-${B:-nested}}", ["--x", "nested"]),
    ],
)
def test_words(text: str, arguments: list[str]) -> None:
    assert words(f"{PLAIN} {text}") == [*PLAIN.split(), *arguments]


@pytest.mark.skipif(SH is None, reason="needs bash")
@pytest.mark.parametrize(
    "text",
    [
        "--a 'x y' \"p q\" $'r\\ns' t\\ u",
        '$A "$A" ${A}z "${A} z" \'$A\'',
        '"${LIST[@]}" "${LIST[*]}" ${LIST[@]} $LIST',
        '"${NONE[@]}" $NONE2 "$NONE2" x${NONE2}y',
        '${N:-a b} "${N:-a b}" ${A:-no} ${A:+yes} "${A:+\'q\'}" ${EMPTY:-e} ${EMPTY-f}',
        "a\\\nb \"c\\\nd\" 'e\\\nf'",
        "a=b --x=$A --y=\"$A\" --z='$A'",
        "x#y # z",
        '"a\\$b\\`c\\"d\\\\e\\f"',
    ],
)
def test_words_are_those_of_bash(text: str, tmp_path: Path) -> None:
    """Held against bash itself, which runs a program that prints its arguments."""
    setting = "A='one  two'\nLIST=(1 'two three' \"$A\")\nNONE=()\nNONE2=\nEMPTY=\n"
    program = tmp_path / "python3"
    program.write_text('#!/bin/sh\nfor word; do printf "%s\\0" "$word"; done\n')
    program.chmod(0o755)
    script = f"{setting}{program} -m sglang.launch_server {text}\n"
    assert SH is not None
    done = subprocess.run([SH, "-c", script], capture_output=True, check=True, text=True)
    found = read_script(script)
    assert [*found.program[1:], *found.arguments] == done.stdout.split("\0")[:-1]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.text(st.characters(exclude_characters="\0\r", codec="utf-8"), max_size=12)))
def test_what_shlex_quotes_is_read_back(arguments: list[str]) -> None:
    assert words(f"{PLAIN} {shlex.join(arguments)}") == [*PLAIN.split(), *arguments]


SCRIPT = """#!/bin/bash
set -euo pipefail
# The launch of the week
export NCCL_DEBUG=INFO SGLANG_X="a b"
unset CUDA_LAUNCH_BLOCKING
declare -x EXPORTED=1
PRIVATE=2
MODEL=/models/m
TP=${TP:-8}
ARGS=(
  --tp "$TP"        # all cards
  --served-model-name 'my model'
)
ARGS+=(--trust-remote-code)
EXTRA="--mem-fraction-static 0.9"

PORT=1 nohup python3 -u -m sglang.launch_server \\
    --model-path "$MODEL" \\
    "${ARGS[@]}" $EXTRA "$@" > "$LOGDIR/log.txt" 2>&1 &
while ! curl -s localhost:30000/health; do
  sleep 5
done
echo "ready at $(date)"
"""


def test_a_whole_script() -> None:
    found = read_script(SCRIPT)
    assert found.program == ["python3", "-u", "-m", "sglang.launch_server"]
    assert found.arguments == [
        *("--model-path", "/models/m", "--tp", "8", "--served-model-name", "my model"),
        *("--trust-remote-code", "--mem-fraction-static", "0.9"),
    ]
    assert found.env == {"NCCL_DEBUG": "INFO", "SGLANG_X": "a b", "EXPORTED": "1", "PORT": "1"}
    assert found.unset_env == ["CUDA_LAUNCH_BLOCKING"]
    assert found.line == 17


@pytest.mark.parametrize(
    ("text", "program", "env", "unset"),
    [
        ("env -u A B=1 C='2 3' {}", [], {"B": "1", "C": "2 3"}, ["A"]),
        ("env --unset=A {}", [], {}, ["A"]),
        ("exec nohup setsid {}", [], {}, []),
        ("time {}", [], {}, []),
        ("A=1 B='$x' {}", [], {"A": "1", "B": "$x"}, []),
        ("+ {}", [], {}, []),
        ("$ {}", [], {}, []),
        ("numactl --cpunodebind=0 -m 0 {}", ["numactl", "--cpunodebind=0", "-m", "0"], {}, []),
        ("conda run -n e {}", ["conda", "run", "-n", "e"], {}, []),
        ("( cd /x && {} )", [], {}, []),
        ("docker run --gpus all --rm -itd -v /a:/b -p 1:2 -e A=b --env=C=d i {}", [],
         {"A": "b", "C": "d"}, []),
        ("docker exec -it -e A=b c {}", [], {"A": "b"}, []),
    ],
)  # fmt: skip
def test_what_stands_in_front(
    text: str, program: list[str], env: dict[str, str], unset: list[str]
) -> None:
    found = read_script(text.format(f"{PLAIN} --model m"))
    assert found.program == [*program, *PLAIN.split()]
    assert found.arguments == ["--model", "m"]
    assert (found.env, found.unset_env) == (env, unset)


def test_a_container_sees_only_its_own_variables() -> None:
    text = (
        f"export A=1 HF=x\ndocker run -e B=2 -e A -e TOKEN image bash -lc 'export C=3; {PLAIN} $B'"
    )
    found = read_script(text)
    assert found.env == {"B": "2", "A": "1", "C": "3"}
    assert found.arguments == ["2"]
    assert any("--on docker:image" in note for note in found.notes)
    assert any("TOKEN" in note for note in found.notes)


def test_an_entry_point_of_docker() -> None:
    found = read_script("docker run --entrypoint python3 image -m sglang.launch_server --tp 2")
    assert (found.program, found.arguments) == (PLAIN.split(), ["--tp", "2"])


def test_serve_with_a_positional_model() -> None:
    assert words("sglang serve org/m --tp 2") == ["sglang", "serve", "org/m", "--tp", "2"]


def test_what_is_not_done_here_is_said() -> None:
    notes = read_script(
        f"cd /srv\nsource venv/bin/activate\nexport PATH=/x:$PATH\nCUDA_VISIBLE_DEVICES=0\n"
        f"timeout 60 {PLAIN} --tp 2"
    ).notes
    told = "\n".join(notes)
    assert "`cd /srv`" in told
    assert "activate" in told
    assert "PATH is left as it is here" in told
    assert "CUDA_VISIBLE_DEVICES is set but not exported" in told
    assert "timeout" in told


@pytest.mark.parametrize(
    ("text", "line", "about"),
    [
        (f"X=1\n{PLAIN} --model $(cat m)", 2, "output of a command"),
        (f"M=`ls`\n\n{PLAIN} --model $M", 3, "output of a command"),
        (f"{PLAIN} --tp $((1+1))", 1, "arithmetic"),
        (f"{PLAIN} --model $MODEL", 1, "`MODEL` is not set in this file"),
        (f"{PLAIN} --model ${{MODEL##*/}}", 1, "not supported"),
        (f"{PLAIN} --model $1", 1, "`1` is not set"),
        (f"{PLAIN} --model ~/m", 1, "`~`"),
        (f"{PLAIN} --x *.json", 1, "quote it"),
        (f"{PLAIN} --x {{1,2}}", 1, "write it out"),
        (f'{PLAIN} --x {{"a":1,"b":2}}', 1, "quote it"),
        (f"cat <<EOF > c\nx'\nEOF\n{PLAIN}", 1, "here-document"),
        (f"if true; then\n  {PLAIN}\nfi", 2, "within `if`"),
        (f"for t in 1 2; do\n {PLAIN} --tp $t\ndone", 2, "within `for`"),
        (f"start() {{\n {PLAIN}\n}}\nstart", 2, "within `start()`"),
        (f"if x; then TP=2; fi\n{PLAIN} --tp $TP", 2, "within `if`"),
        (f"sudo {PLAIN}", 1, "sudo"),
        (f"ssh host {PLAIN}", 1, "--on ssh:HOST"),
        (f"C='{PLAIN}'\neval $C", 2, "eval"),
        (f"{PLAIN} --x 'a\nb", 1, "quote is not closed"),
        (f"{PLAIN}\n{PLAIN} --tp 2", 2, "more than one server"),
        (f"echo {PLAIN}", 1, "not as a command"),
        (f"bash -c '{PLAIN} --model $(id)'", 1, "output of a command"),
    ],
)
def test_where_only_a_shell_would_know(text: str, line: int, about: str) -> None:
    told = refused(text)
    assert f"line {line}" in told or f"and {line}" in told
    assert about in told


@pytest.mark.parametrize("text", ["", "# nothing", "ls -l", "pip install foo"])
def test_no_server(text: str) -> None:
    assert refused(text) == "no command that starts an SGLang server"


def test_nothing_is_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for text in (f"$(touch {mark})", f"`touch {mark}`", f"; touch {mark}", f"<(touch {mark})"):
        for script in (f"{PLAIN} --x {text}", f"X={text}\n{PLAIN}", f"{PLAIN} --x '{text}'"):
            try:
                read_script(script)
            except LaunchError:
                continue
    assert not mark.exists()


def test_a_value_that_doubles_is_bounded() -> None:
    doubling = "\n".join(["A=xxxxxxxx", *["A=$A$A$A$A"] * 40, f"{PLAIN} --x $A"])
    assert "64 kB" in refused(doubling)


@pytest.mark.parametrize(
    "text",
    ["(" * 500, "$(" * 500, "x=(" * 100, "{ " * 5000, '"$(' * 200, "${a:-" * 3000, "\\" * 999],
)
def test_deep_text_is_refused_in_one_line(text: str) -> None:
    refused(f"{PLAIN} --x {text} '")


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from("ab$ {}()'\"`\\\n;&|<>=#-:@*!~[]"), max_size=40))
def test_any_text_gives_words_or_one_line(text: str) -> None:
    told = ""
    try:
        commands(text)
        read_script(f"{PLAIN} --x {text}")
    except LaunchError as error:
        told = str(error)
    assert "\n" not in told


@pytest.mark.skipif(SH is None, reason="needs bash")
@settings(max_examples=60, deadline=None)
@given(st.text(st.sampled_from("ab '\"\\\n#="), max_size=25))
def test_quotes_are_those_of_bash(text: str) -> None:
    """Any mix of quotes, blanks and backslashes: the words of bash, or refused."""
    assume(not text.endswith("\\"))  # the last line of a copied command
    try:
        found = read_script(f"{PLAIN} {text}")
    except LaunchError:
        return
    assert SH is not None
    script = f'python3() {{ for w; do printf "%s\\0" "$w"; done; }}\n{PLAIN} {text}'
    done = subprocess.run([SH, "-c", script], capture_output=True, check=False, text=True)
    assert [*found.program[1:], *found.arguments] == done.stdout.split("\0")[:-1]
