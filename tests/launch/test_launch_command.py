"""Commands as logs show them, and lines that only mention one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.launch import parse_command
from forensics.releases import table

SERVER = ["python3", "-m", "sglang.launch_server"]


def test_killed_line_of_a_shell() -> None:
    launch = parse_command(
        "./run.sh: line 28:  8891 Killed                  python3 -m sglang.launch_server "
        "--model org/m --tp 8 --mem-fraction 0.95 --chunked-prefill-size -1 --odd thing"
    )
    assert launch is not None
    assert launch.program == SERVER
    assert launch.flags == {
        "model_path": "org/m",
        "tp_size": 8,
        "mem_fraction_static": 0.95,
        "chunked_prefill_size": -1,
    }
    assert launch.command is not None
    assert launch.command[-2:] == ["--odd", "thing"]
    assert launch.typed == set(launch.flags)


def test_trace_of_a_shell_with_environment() -> None:
    launch = parse_command(
        "+ NCCL_P2P_LEVEL=PHB HF_TOKEN=hf_abcdefghijklm exec python -m sglang.launch_server "
        "--model-path=/m --trust-remote-code --api-key 'very secret' > log.txt 2>&1"
    )
    assert launch is not None
    assert launch.env == {"NCCL_P2P_LEVEL": "PHB", "HF_TOKEN": "[redacted]"}
    assert launch.command == [
        *("python", "-m", "sglang.launch_server"),
        *("--model-path=/m", "--trust-remote-code", "--api-key", "[redacted]"),
    ]
    assert launch.flags["trust_remote_code"] is True


@pytest.mark.parametrize(
    "text",
    [
        'command: ["python3", "-m", "sglang.launch_server", "--model-path", "m", "--tp=8"]',
        "args:\n  - python3\n  - -m\n  - sglang.launch_server\n  - --model-path\n  - m\n  - --tp=8",
        'bash -lc "python3 -m sglang.launch_server --model-path m --tp=8 | tee log"',
        "cd /x && FOO=1 python3 -m sglang.launch_server --model-path m --tp=8 & echo started",
        "docker run --gpus all -v a:b image python3 -m sglang.launch_server --model-path m --tp=8",
        "python3 -m sglang.launch_server --model-path m \\\n  --tp=8",
    ],
)
def test_many_ways_of_starting(text: str) -> None:
    launch = parse_command(text)
    assert launch is not None
    assert launch.command == [*SERVER, "--model-path", "m", "--tp=8"]


def test_serve_with_a_positional_model() -> None:
    launch = parse_command("sglang serve org/m --cuda-graph-bs 1 2 4 --disable-radix-cache")
    assert launch is not None
    assert launch.program == ["sglang", "serve"]
    assert launch.flags["model_path"] == "org/m"
    assert launch.get("cuda_graph_bs") == [1, 2, 4]
    assert launch.flags["disable_radix_cache"] is True


def test_a_release_gives_flags_its_own_fields() -> None:
    text = "python3 -m sglang.launch_server --model m --cuda-graph-max-bs 32"
    early = parse_command(text, table("0.5.9"))
    late = parse_command(text, table("0.5.23"))
    assert early is not None
    assert early.flags["cuda_graph_max_bs"] == 32
    assert late is not None
    assert late.flags == {"model_path": "m"}


@pytest.mark.parametrize(
    "text",
    [
        "usage: sglang serve [-h] --model-path MODEL_PATH",
        "  Example: sglang serve --model-path <model> [options]",
        "sglang serve: error: unrecognized arguments: --no-such-flag",
        "UserWarning: 'python -m sglang.launch_server' is still supported, but 'sglang serve' is"
        " the recommended entrypoint.",
        "For example: `python3 -m sglang.compile_deep_gemm --model m --tp 8`",
        '  File "/x/sglang/launch_server.py", line 58, in <module>',
        "python3 -m sglang.launch_server",
        "",
    ],
)
def test_a_mention_starts_nothing(text: str) -> None:
    assert parse_command(text) is None


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=120))
def test_any_text_is_survived(text: str) -> None:
    parse_command(f"python3 -m sglang.launch_server --model {text}")
    parse_command(f"{text} sglang serve x {text}")
