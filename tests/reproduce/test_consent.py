"""Foreign code is named whatever it hides behind; what SGLang brings itself is not."""

from __future__ import annotations

import shlex

import pytest

from forensics.launch import Launch
from forensics.releases import table
from forensics.reproduce.consent import consents

SERVER = "python3 -m sglang.launch_server"


def named(
    text: str,
    release: str = "0.5.23",
    env: dict[str, str] | None = None,
    own: dict[str, str] | None = None,
) -> list[str]:
    words = shlex.split(text)
    return [one.what for one in consents(words, Launch(), table(release), env or {}, own)]


@pytest.mark.parametrize(
    "text",
    [
        f"{SERVER} --model-path org/model --tp 8 --mem-fraction-static 0.9",
        f"{SERVER} --model-path m --chat-template llama-2 --tool-call-parser glm47",
        f"{SERVER} --model-path m --disable-custom-all-reduce --load-format dummy",
        f"{SERVER} --model-path m --hicache-storage-backend file",
        "sglang serve m --tp 2",
        "/opt/venv/bin/python3.11 -u -X dev -m sglang.launch_server --model-path m",
    ],
)
def test_a_plain_launch_needs_none(text: str) -> None:
    assert named(text) == []


@pytest.mark.parametrize(
    ("flags", "what"),
    [
        ("--trust-remote-code", "--trust-remote-code"),
        ("--trust-remote", "--trust-remote"),
        ("--custom-weight-loader evil.load", "--custom-weight-loader evil.load"),
        ("--chat-template /tmp/x.jinja", "--chat-template /tmp/x.jinja"),
        ("--chat-template=../x.jinja", "--chat-template=../x.jinja"),
        ("--load-format remote", "--load-format remote"),
        ("--enable-custom-logit-processor", "--enable-custom-logit-processor"),
        ("--hicache-storage-backend dynamic", "--hicache-storage-backend dynamic"),
        ("--forward-hooks '[]x'", "--forward-hooks []x"),
        ("--some-plugin-path /x", "--some-plugin-path /x"),
        ("--custom-thing /x", "--custom-thing /x"),
        ("--config /tmp/more.yaml", "--config /tmp/more.yaml"),
    ],
)
def test_flags_that_load_code(flags: str, what: str) -> None:
    assert named(f"{SERVER} --model-path m {flags}") == [what]


@pytest.mark.parametrize(
    "text", ["bash -c 'sglang serve m'", "python3 serve.py --model-path m", "python3 -m other.app"]
)
def test_another_program_is_named(text: str) -> None:
    assert len(named(text)) == 1


@pytest.mark.parametrize(
    "name", ["PYTHONPATH", "LD_PRELOAD", "PATH", "SGLANG_PLUGINS", "NCCL_NET_PLUGIN", "CUDA_HOME"]
)
def test_variables_of_a_log_that_bring_code(name: str) -> None:
    assert named(f"{SERVER} --model-path m", env={name: "/x"}) == [f"{name}=/x"]
    assert named(f"{SERVER} --model-path m", env={name: "/x"}, own={name: "/x"}) == []


def test_variables_that_configure_need_none() -> None:
    env = {"SGLANG_ENABLE_JIT_DEEPGEMM": "0", "NCCL_DEBUG": "INFO", "CUDA_VISIBLE_DEVICES": "0"}
    assert named(f"{SERVER} --model-path m", env=env) == []
