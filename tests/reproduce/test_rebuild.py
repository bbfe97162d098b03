"""The launch to repeat, from a log or from a script: exact, and with nothing of a log trusted."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from forensics.incident.model import Run
from forensics.launch import with_changes
from forensics.pipeline import analyze
from forensics.reproduce.rebuild import LaunchError, Rebuilt, from_file, from_run

SERVER = ["python3", "-m", "sglang.launch_server"]
DUMP = (
    "[2026-02-18 23:47:15] server_args=ServerArgs(model_path='org/m', tokenizer_path='org/m', "
    "tp_size=8, mem_fraction_static=0.95, trust_remote_code=True, host='127.0.0.1', "
    "attention_backend='fa3', random_seed=5, api_key={key}, served_model_name={name}, "
    "json_model_override_args={override})"
)
LOAD = "[2026-02-18 23:48:15 TP0] Load weight begin. avail mem=78.50 GB\n"


def dump(key: str | None = None, name: str = "org/m", override: str = "{}") -> str:
    return DUMP.format(key=repr(key), name=repr(name), override=repr(override)) + "\n"


def run(text: str, folder: Path) -> Run:
    log = folder / "log.txt"
    log.write_text(text)
    return analyze([str(log)]).reports[0].run


def rebuilt(text: str, folder: Path) -> Rebuilt:
    return from_run(run(f"sglang==0.5.9\n{text}{LOAD}", folder))


def file(text: str, folder: Path) -> Path:
    path = folder / "launch.sh"
    path.write_text(text)
    return path


def told(found: Rebuilt) -> str:
    assert all("\n" not in note for note in found.notes)
    return "\n".join(found.notes)


def test_from_a_dump(tmp_path: Path) -> None:
    found = rebuilt(dump(), tmp_path)
    assert found.argv == [
        *SERVER,
        *("--model-path", "org/m", "--tp-size", "8", "--mem-fraction-static", "0.95"),
        *("--trust-remote-code", "--attention-backend", "fa3"),
    ]
    assert found.launch.argv() == found.argv
    assert found.source == "the server's arguments that the log shows"
    assert "--attention-backend fa3 is kept" in told(found)


def test_a_backend_that_sglang_says_it_chose_is_left_to_it(tmp_path: Path) -> None:
    line = "[2026-02-18 23:47:14] Attention backend not specified. Use fa3 backend by default.\n"
    found = rebuilt(line + dump(), tmp_path)
    assert "--attention-backend" not in found.argv
    assert "Left to SGLang" in told(found)


def test_a_change_keeps_the_rest(tmp_path: Path) -> None:
    found = rebuilt(dump(), tmp_path)
    after = with_changes(found.launch, {"mem_fraction_static": 0.88}, {}).argv()
    assert after == [w if w != "0.95" else "0.88" for w in found.argv]


def test_a_secret_is_left_out_and_said(tmp_path: Path) -> None:
    found = rebuilt(dump(key="sekrit"), tmp_path)
    assert "--api-key" not in found.argv
    assert "sekrit" not in str(found)
    assert "--api-key is left out" in told(found)
    text = (
        f"+ HF_TOKEN=hf_abcdefghijkl {shlex.join(SERVER)} --model-path org/m --api-key x --tp 8\n"
    )
    found = rebuilt(text + dump(), tmp_path)
    assert found.argv == [*SERVER, "--model-path", "org/m", "--tp", "8"]
    assert "HF_TOKEN" not in found.env
    assert "HF_TOKEN was set to a secret" in told(found)


@pytest.mark.parametrize(
    "line",
    [
        "+ {}",
        "$ {}",
        "root        4242 99.0  3.1 123456 65432 ?        Sl   10:00   1:23 {}",
        "root        4242       1 99 10:00 ?        00:01:23 {}",
        "   4242 pts/0    Sl     1:23 {}",
    ],
)
def test_the_command_as_it_was_typed(line: str, tmp_path: Path) -> None:
    command = f"{shlex.join(SERVER)} --model org/m --tp 8 --mem-fraction 0.95"
    found = rebuilt(line.format(command) + "\n" + dump(), tmp_path)
    assert shlex.join(found.argv) == command
    assert found.source == "the command that the log shows"


def test_the_command_that_a_shell_saw_killed(tmp_path: Path) -> None:
    command = f"{shlex.join(SERVER)} --model org/m --tp 8 --served-model-name 'my model'"
    killed = f"./run.sh: line 28:  8891 Killed                  {command}\n"
    found = rebuilt(dump() + LOAD + killed, tmp_path)
    assert shlex.join(found.argv) == command


def test_what_a_script_shows_before_its_shell_expanded_it(tmp_path: Path) -> None:
    text = (
        'python3 -m sglang.launch_server \\\n  --model-path "$MODEL" \\\n  --tp ${TP} \\\n'
        "  --load-format $FORMAT \\\n  --trust-remote-code\n"
    )
    found = rebuilt(text + dump(), tmp_path)
    assert found.argv == [
        *SERVER,
        *("--model-path", "org/m", "--tp-size", "8", "--trust-remote-code"),
    ]
    assert "--load-format is left out" in told(found)
    assert "$FORMAT" in told(found)


def test_a_row_of_ps_has_lost_its_quotes(tmp_path: Path) -> None:
    row = (
        "root  4242 99.0  3.1 123456 65432 ?  Sl  10:00  1:23 python3 -m sglang.launch_server"
        ' --model-path org/m --served-model-name my model --json-model-override-args {"a": "b c"}'
    )
    whole = dump(name="my model", override='{"a": "b c"}')
    found = rebuilt(f"{row}\n{whole}", tmp_path)
    assert found.argv == [
        *(*SERVER, "--model-path", "org/m", "--served-model-name", "my model"),
        *("--json-model-override-args", '{"a": "b c"}'),
    ]


def test_a_command_of_another_launch_is_not_used(tmp_path: Path) -> None:
    text = f"+ {shlex.join(SERVER)} --model-path other/model --tp 1\n"
    found = rebuilt(text + dump(), tmp_path)
    assert "other/model" not in found.argv
    assert "another model" in told(found)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("python3 -m sglang.launch_server", SERVER),
        ("python -m sglang.launch_server", ["python", *SERVER[1:]]),
        ("/opt/evil/python3.11 -m sglang.launch_server", ["python3.11", *SERVER[1:]]),
        ("/tmp/evil -m sglang.launch_server", SERVER),
        ("python3 -c 'import os' -m sglang.launch_server", SERVER),
        ("/tmp/evil/sglang serve", ["sglang", "serve"]),
    ],
)
def test_no_program_of_a_log_is_run(program: str, expected: list[str], tmp_path: Path) -> None:
    found = rebuilt(f"+ {program} --model-path org/m --tp 8\n{dump()}", tmp_path)
    assert found.argv[: len(expected)] == expected
    assert not any("evil" in word or "import" in word for word in found.argv)


def test_variables_that_load_code_are_left_as_they_are_here(tmp_path: Path) -> None:
    text = "export NCCL_DEBUG=INFO\n+ LD_PRELOAD=/tmp/x.so PYTHONPATH=/x NCCL_P2P_LEVEL=NVL " + (
        f"{shlex.join(SERVER)} --model-path org/m --tp 8\n"
    )
    found = rebuilt(text + dump(), tmp_path)
    assert found.env == {"NCCL_DEBUG": "INFO", "NCCL_P2P_LEVEL": "NVL"}
    assert "LD_PRELOAD is left as it is here" in told(found)


def test_hostile_values_are_single_words(tmp_path: Path) -> None:
    name = "; touch mark\n$(touch mark) `id` --tp 1"
    found = rebuilt(dump(name=name, override="--port"), tmp_path)
    assert found.argv[found.argv.index("--served-model-name") + 1] == name
    assert "--json-model-override-args=--port" in found.argv
    assert shlex.split(shlex.join(found.argv)) == found.argv


def test_the_entry_point_that_a_traceback_shows(tmp_path: Path) -> None:
    text = (
        "Traceback (most recent call last):\n"
        '  File "/usr/local/bin/sglang", line 8, in <module>\n    sys.exit(main())\n'
        '  File "/usr/lib/python3/dist-packages/sglang/cli/main.py", line 46, in main\n'
        "    args.func(args, extra_argv)\n"
        '  File "/usr/lib/python3/dist-packages/sglang/cli/serve.py", line 112, in serve\n'
        "    run_server(server_args)\nValueError: no\n"
    )
    assert rebuilt(dump() + text, tmp_path).argv[:2] == ["sglang", "serve"]


def test_one_node_of_several(tmp_path: Path) -> None:
    nodes = dump().replace("tp_size=8", "tp_size=16, nnodes=2, node_rank=1, dist_init_addr='a:1'")
    found = rebuilt(nodes, tmp_path)
    assert {"--nnodes", "--node-rank", "--dist-init-addr"} <= set(found.argv)
    assert "spans 2 nodes, and this is node 1" in told(found)


def test_a_log_without_a_launch(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="--launch"):
        from_run(run(LOAD, tmp_path))


def test_from_a_file(tmp_path: Path) -> None:
    text = "export A=1\nunset B\nTP=8\nnohup python3 -m sglang.launch_server --model m --tp $TP &\n"
    found = from_file(file(text, tmp_path), "0.5.9")
    assert found.argv == [*SERVER, "--model", "m", "--tp", "8"]
    assert found.launch.argv() == found.argv
    assert (found.env, found.unset_env) == ({"A": "1"}, ["B"])
    assert found.launch.flags == {"model_path": "m", "tp_size": 8}
    assert found.source == "launch.sh, line 4"


def test_a_file_keeps_the_secrets_that_the_launch_needs(tmp_path: Path) -> None:
    text = "HF_TOKEN=hf_abcdefghijkl sglang serve org/m --api-key 'se kret'\n"
    found = from_file(file(text, tmp_path))
    assert found.argv == ["sglang", "serve", "org/m", "--api-key", "se kret"]
    assert found.env == {"HF_TOKEN": "hf_abcdefghijkl"}
    assert found.launch.flags == {"model_path": "org/m", "api_key": "[redacted]"}


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("python3 -m sglang.launch_server --model $(id)\n", "line 1"),
        ("echo hello\n", "no command"),
        ("python3 -m sglang.launch_server --api-key '[redacted]'\n", "secret"),
        ("\0\1\2", "not text"),
        ("# x\n" * 40_000, "64 kB"),
    ],
)
def test_a_file_that_gives_no_launch(text: str, about: str, tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match=about) as caught:
        from_file(file(text, tmp_path))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LaunchError, match="cannot read"):
        from_file(tmp_path / "none.sh")
    with pytest.raises(LaunchError, match="cannot read"):
        from_file(tmp_path)
