"""What the shipped table says, against facts read from the releases themselves."""

from __future__ import annotations

import pytest

from forensics.releases import (
    NO_DEFAULT,
    guess_release,
    releases,
    rename,
    table,
    version_key,
)


def test_releases_are_in_order() -> None:
    known = releases()
    assert known[0] == "0.4.1.post7"
    assert known[-1] == "0.5.23"
    assert len(known) == 42
    assert known == sorted(known, key=version_key)


@pytest.mark.parametrize(
    ("version", "fields"),
    [("0.4.6.post5", 143), ("0.5.2", 210), ("0.5.9", 328), ("0.5.16", 445), ("0.5.23", 546)],
)
def test_field_counts(version: str, fields: int) -> None:
    assert len(table(version).fields) == fields


@pytest.mark.parametrize(
    ("version", "known"),
    [
        ("0.5.9", "0.5.9"),
        ("v0.5.9", "0.5.9"),
        ("0.5.10.post2", "0.5.10.post1"),
        ("0.5.12", "0.5.11"),
        ("0.5.9.dev12+g1234abc", "0.5.8.post1"),
        ("0.5.9rc1", "0.5.8.post1"),
        ("0.6.0", "0.5.23"),
        ("0.3.0", "0.4.1.post7"),
        ("main", "0.4.1.post7"),
    ],
)
def test_nearest_release_at_or_below(version: str, known: str) -> None:
    assert table(version).version == known


def test_version_order() -> None:
    versions = ["0.5.8", "0.5.8.post1.dev3", "0.5.8.post1", "0.5.9.dev4", "0.5.9rc1", "0.5.9"]
    assert sorted(set(versions), key=version_key) == versions


@pytest.mark.parametrize(
    ("field", "version", "flag"),
    [
        ("mem_fraction_static", "0.4.4", "--mem-fraction-static"),
        ("tp_size", "0.4.4", "--tp-size"),
        ("tp_size", "0.5.23", "--tp-size"),
        ("pp_size", "0.4.4", None),
        ("fp8_gemm_runner_backend", "0.5.9", "--fp8-gemm-backend"),
        ("ep_join_mode", "0.5.16", "--elastic-ep-join-mode"),
        ("cuda_graph_max_bs", "0.5.13", "--cuda-graph-max-bs"),
        ("cuda_graph_max_bs", "0.5.14", None),
        ("cuda_graph_max_bs_decode", "0.5.14", "--cuda-graph-max-bs-decode"),
        ("disable_cuda_graph", "0.5.23", "--disable-cuda-graph"),
        ("attn_dp_size", "0.5.21", None),
        ("attn_dp_size", "0.5.22", "--attn-dp-size"),
        ("stat_loggers", "0.5.16", None),
        ("uses_mamba_radix_cache", "0.5.23", None),
    ],
)
def test_flag_of_a_field(field: str, version: str, flag: str | None) -> None:
    assert table(version).flag(field) == flag


@pytest.mark.parametrize(
    ("flag", "version", "field"),
    [
        ("--tp", "0.4.4", "tp_size"),
        ("--tp", "0.5.23", "tp_size"),
        ("--tensor-parallel-size", "0.5.9", "tp_size"),
        ("--model", "0.4.6", "model_path"),
        ("--mem-fraction", "0.5.9", "mem_fraction_static"),
        ("--mem-fraction-static=0.9", "0.5.9", "mem_fraction_static"),
        ("--pp", "0.5.9", None),
        ("--cuda-graph-max-bs", "0.5.19", "cuda_graph_max_bs_decode"),
        ("--cuda-graph-max-bs", "0.5.20", None),
        ("--enable-hicache", "0.5.22", None),
        ("--enable-hicache", "0.5.23", "enable_hierarchical_cache"),
        ("--nsa-decode-backend", "0.5.16", "dsa_decode_backend"),
        ("--config", "0.5.9", None),
        ("--", "0.5.9", None),
        ("--no-such-flag", "0.5.9", None),
    ],
)
def test_field_of_a_flag(flag: str, version: str, field: str | None) -> None:
    assert table(version).field_for_flag(flag) == field


def test_defaults() -> None:
    assert table("0.4.2.post4").default("trust_remote_code") is False  # the class has True
    assert table("0.5.9").default("kt_method") == "AMXINT4"  # the class has None
    assert table("0.5.9").default("trust_remote_code") is False
    assert table("0.5.9").default("page_size") is None
    assert table("0.4.4").default("page_size") == 1
    assert table("0.5.9").default("model_path") is NO_DEFAULT
    assert table("0.5.9").default("no_such_field") is NO_DEFAULT
    assert table("0.5.18").default("swa_full_tokens_ratio") == 0.8


def test_a_resolved_fallback_counts_as_default() -> None:
    release = table("0.5.23")
    assert release.default("swa_full_tokens_ratio") is None
    assert release.is_default("swa_full_tokens_ratio", 0.8)
    assert not release.is_default("swa_full_tokens_ratio", 0.5)
    assert not release.is_default("tp_size", True)


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("cuda_graph_max_bs", "0.5.13", "cuda_graph_max_bs"),
        ("cuda_graph_max_bs", "0.5.14", "cuda_graph_max_bs_decode"),
        ("cuda_graph_max_bs_decode", "0.5.9", "cuda_graph_max_bs"),
        ("nsa_prefill_backend", "0.5.3", "nsa_prefill"),
        ("nsa_prefill_backend", "0.5.20", "dsa_prefill_backend"),
        ("mamba_scheduler_strategy", "0.5.23", "mamba_radix_cache_strategy"),
        ("max_micro_batch_size", "0.5.9", "pp_max_micro_batch_size"),
        ("torchao_config", "0.5.23", None),
        ("no_such_field", "0.5.9", None),
    ],
)
def test_rename(name: str, version: str, expected: str | None) -> None:
    assert rename(name, version) == expected


@pytest.mark.parametrize("version", ["0.4.4", "0.5.4", "0.5.9", "0.5.16", "0.5.23"])
def test_guess_from_a_whole_dump(version: str) -> None:
    found = guess_release(set(table(version).fields))
    assert found is not None
    assert table(found[0]).fields.keys() == table(version).fields.keys()
    assert version_key(found[0]) <= version_key(version) <= version_key(found[1])


@pytest.mark.parametrize("version", ["0.5.9", "0.5.16"])
def test_guess_from_a_truncated_dump(version: str) -> None:
    names = list(table(version).fields)
    found = guess_release(names[: len(names) * 2 // 3])
    assert found is not None
    assert version_key(found[0]) <= version_key(version) <= version_key(found[1])


def test_guess_for_a_development_build() -> None:
    before, after = set(table("0.5.8.post1").fields), set(table("0.5.9").fields)
    added = sorted(after - before)
    found = guess_release(before | set(added[: len(added) // 2]) | {"not_yet_released"})
    assert found is not None
    assert "0.5.8" <= found[0] <= found[1] <= "0.5.9"


def test_guess_from_an_abridged_dump_is_a_range() -> None:
    assert guess_release({"model_path", "tp_size"}) == ("0.4.1.post7", "0.5.23")
    assert guess_release({"model_path", "tp_size"}, ("0.5.19", "0.5.23")) == ("0.5.19", "0.5.23")
    assert guess_release({"unheard_of"}) is None
    assert guess_release(set()) is None
