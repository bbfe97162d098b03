"""What a new command repeats, and what it leaves to SGLang."""

from __future__ import annotations

import pytest

from forensics.launch import Launch, not_repeated


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
