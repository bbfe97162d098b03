"""What a new command repeats, and what it leaves to SGLang."""

from __future__ import annotations

import pytest

from forensics.launch import Launch, not_repeated
from forensics.launch.arguments import tokens, untypable


def launch(**flags: object) -> Launch:
    return Launch(flags={"model_path": "/m", "tp_size": 8, **flags}, release="0.5.9")  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("field", "value", "flag"),
    [
        ("attention_backend", "flashmla", "--attention-backend"),
        ("decode_attention_backend", "cutlass_mla", "--decode-attention-backend"),
        ("moe_runner_backend", "flashinfer_cutedsl", "--moe-runner-backend"),
        ("fp8_gemm_runner_backend", "triton", "--fp8-gemm-backend"),
        ("fp4_gemm_runner_backend", "flashinfer_cudnn", "--fp4-gemm-backend"),
    ],
)
def test_backends_that_sglang_never_picks_are_repeated(field: str, value: str, flag: str) -> None:
    words = launch(**{field: value}).argv()
    assert words[words.index(flag) + 1] == value
    assert not_repeated(launch(**{field: value})) == []


def test_what_may_be_sglangs_own_choice_is_left_out_and_named() -> None:
    own = launch(attention_backend="flashinfer", moe_runner_backend="flashinfer_trtllm")
    assert own.argv()[3:] == ["--model-path", "/m", "--tensor-parallel-size", "8"] or (
        own.argv()[3:] == ["--model-path", "/m", "--tp-size", "8"]
    )
    assert sorted(not_repeated(own)) == [
        "--attention-backend flashinfer",
        "--moe-runner-backend flashinfer_trtllm",
    ]


def test_a_command_that_is_known_is_repeated_whole() -> None:
    typed = launch(attention_backend="flashinfer")
    typed.command = ["python3", "-m", "sglang.launch_server", "--model-path", "/m"]
    assert not_repeated(typed) == []


def test_a_fraction_that_may_be_automatic_is_named() -> None:
    assert not_repeated(launch(mem_fraction_static=0.836)) == ["--mem-fraction-static 0.836"]


def test_a_draft_at_the_model_path_is_repeated_where_it_is_used() -> None:
    draft = "--speculative-draft-model-path"
    unused = launch(speculative_draft_model_path="/m")
    used = launch(speculative_draft_model_path="/m", speculative_algorithm="EAGLE")
    assert (draft in unused.argv(), draft in used.argv()) == (False, True)


def test_a_fraction_above_what_any_rule_picks_was_typed() -> None:
    assert launch(mem_fraction_static=0.9775).argv()[-2:] == ["--mem-fraction-static", "0.9775"]


def test_what_the_parser_would_refuse_was_not_typed() -> None:
    own = launch(load_format="made_up_by_resolution")
    assert not_repeated(own) == ["--load-format made_up_by_resolution"]
    own.release = "0.5.9.dev40+gabcdef"  # a build may take more than its release does
    assert not_repeated(own) == []


def test_a_field_that_no_release_declares_is_left_out() -> None:
    fork = launch(invented_by_a_fork=3, schedule_policy="lpm")
    assert "invented" not in " ".join([*fork.argv(), *not_repeated(fork)])
    assert fork.argv()[-2:] == ["--schedule-policy", "lpm"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("served_model_name", "--"),
        ("served_model_name", "a\0b"),
        ("cuda_graph_bs", []),
        ("lora_target_modules", ["a", "-b"]),
    ],
)
def test_what_no_command_line_says(field: str, value: object) -> None:
    table = launch().table()
    assert untypable(field, value, table)  # type: ignore[arg-type]
    assert tokens(field, value, table) == []  # type: ignore[arg-type]
