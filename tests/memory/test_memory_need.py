"""Capture need by each kind of evidence, and the alarm on the prior."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics.memory import (
    Capture,
    DecodeShape,
    Pending,
    best_need,
    capture_class,
    decode_need,
    headroom,
    lower_bound,
    observed_need,
    prior_cell,
    prior_need,
    projected_need,
)

DENSE = DecodeShape("triton", 512, 52, 131072, 32, 128, 128256)
MLA = DecodeShape("triton", 512, 52, 163840, 16, 512, 102400, mla=True)


@pytest.mark.parametrize(
    ("shape", "buffers", "kept"),
    [
        (DENSE, 0.87, 1.16),
        (dataclasses.replace(DENSE, prefill_graphs_before=True), 0.63, 0.91),
        (
            dataclasses.replace(DENSE, largest_batch=256, sizes=36, prefill_graphs_before=True),
            0.31,
            0.49,
        ),
        (
            dataclasses.replace(DENSE, backend="flashinfer", prefill_graphs_before=True),
            0.32,
            1.12,
        ),
        (MLA, 4.90, 5.29),
        (
            DecodeShape(
                "triton", 512, 52, 40960, 32, 128, 151936, experts=True, prefill_graphs_before=True
            ),
            0.24,
            0.62,
        ),
    ],
)
def test_the_three_part_sum_fits_genuine_launches(
    shape: DecodeShape, buffers: float, kept: float
) -> None:
    need = decode_need(shape)
    assert need is not None
    early = need.parts["buffers"] + need.parts.get("logits buffer", 0.0)
    assert early == pytest.approx(buffers, abs=0.02)
    assert sum(need.parts.values()) == pytest.approx(kept, abs=0.03)


def test_the_peak_is_what_has_to_fit() -> None:
    need = decode_need(DENSE)
    assert need is not None
    assert 1.18 < need.gib < 1.43  # failed with 1.18 free, passed with 1.43
    assert need.basis == "computed"


def test_unmeasured_backends_are_not_computed() -> None:
    assert decode_need(dataclasses.replace(DENSE, backend="fa3")) is None
    assert decode_need(dataclasses.replace(MLA, backend="flashinfer")) is None
    assert decode_need(dataclasses.replace(MLA, context_len=4096)) is None


@given(st.integers(1, 512), st.integers(1, 512))
def test_a_larger_batch_never_needs_less(one: int, other: int) -> None:
    small, large = sorted((one, other))
    needs = [decode_need(dataclasses.replace(DENSE, largest_batch=b)) for b in (small, large)]
    assert needs[0] is not None
    assert needs[1] is not None
    assert needs[0].gib <= needs[1].gib


def test_lower_bound_of_a_failed_request() -> None:
    need = lower_bound(0.96, 247.44 / 1024, 694 / 1024)
    assert need.gib == pytest.approx(1.40, abs=0.005)
    assert need.high_gib is None
    assert lower_bound(0.5, 0.9, 0.25).gib == 0.25


def test_observed_takes_the_worst_rank_and_the_lowest_bar() -> None:
    need = observed_need(
        [
            Capture("decode", 3.0, 0.5, 2.5),
            Capture("decode", 3.0, 0.7, 2.3),
            Capture("prefill", 9.0, 1.5, 7.5, bars=[(8192, 9.0), (4096, 6.6), (4, 6.3)]),
            Capture("verify", 3.0),
        ]
    )
    assert need is not None
    assert need.parts == {"decode": 0.7, "prefill": pytest.approx(2.7)}
    assert need.gib == pytest.approx(3.4 * 1.05)
    assert observed_need([Capture("decode", 1.0)]) is None


def test_projection_from_the_bar() -> None:
    need = projected_need([(512, 3.0), (496, 2.0), (480, 1.9), (464, 1.8)], 3.4, 10)
    assert need is not None
    assert need.low_gib == pytest.approx(1.6)
    assert need.gib == pytest.approx(1.6 + 0.4 * 7)
    assert projected_need([(512, 3.0)], 3.4, 10) is None


def test_the_best_basis_wins_unless_a_failure_says_more() -> None:
    prior = prior_need([Pending("decode", "light", 8)])
    failed = lower_bound(0.96, 0.24, 0.68)
    computed = decode_need(DENSE)
    assert best_need(prior, computed, None) is computed
    assert best_need(prior, computed, failed) is failed
    assert best_need(prior, failed) is failed
    assert best_need(None) is None
    assert prior_need([]) is None


@pytest.mark.parametrize(
    ("names", "tp_size", "weight"),
    [
        (("GlmMoeDsaForCausalLM",), 1, "heavy"),
        (("DeepseekV3ForCausalLM",), 8, "heavy"),
        (("KimiLinearForCausalLM", None), 1, "heavy"),
        (("Qwen3MoeForCausalLM",), 4, "light"),
        (("Qwen3MoeForCausalLM",), 8, "heavy"),
        (("LlamaForCausalLM",), 8, "light"),
        ((None, "/models/DeepSeek-R1"), 1, "heavy"),
        (("Qwen2ForCausalLM", "/models/DeepSeek-R1-Distill-Qwen-7B"), 8, "light"),
        (("LlamaForCausalLM", "/models/kimi-like"), 8, "light"),
        ((None,), 8, "light"),
    ],
)
def test_capture_class(names: tuple[str | None, ...], tp_size: int, weight: str) -> None:
    assert capture_class(*names, tp_size=tp_size) == weight


def test_the_incident_is_critical_at_its_begin_line() -> None:
    found = headroom(0.96, [Pending("decode", "heavy", 8)])
    assert found.alarm == "critical"
    assert found.expected_gib > 1.4


@pytest.mark.parametrize(
    ("free", "pending", "alarm"),
    [
        (0.80, [Pending("decode", "light", 8)], "none"),
        (0.80, [Pending("decode", "light", 64)], "info"),
        (1.05, [Pending("decode", "light", 512)], "critical"),
        (1.43, [Pending("decode", "light", 256)], "none"),
        (10.7, [Pending("decode", "heavy", 512)], "info"),
        (2.05, [Pending("piecewise")], "warning"),
        (0.14, [Pending("draft_extend")], "critical"),
        (0.0, [Pending("decode", "heavy", 8)], "unusable"),
        (-1.0, [], "unusable"),
        (0.1, [], "none"),
        (2.0, [Pending("decode", "light", 8), Pending("prefill")], "info"),
    ],
)
def test_alarms(free: float, pending: list[Pending], alarm: str) -> None:
    assert headroom(free, pending).alarm == alarm


def test_cells() -> None:
    assert prior_cell(Pending("verify", "heavy", 512)).q50_gib == 6.0
    assert prior_cell(Pending("decode", "heavy", 8, wide=True)).q50_gib == 6.0
    assert prior_cell(Pending("decode", "light", None)).n == 12
    assert prior_cell(Pending("draft_prefill", "heavy", 512)).q50_gib == 0.38


@given(st.floats(0.01, 30), st.floats(0.01, 30), st.integers(1, 1024), st.booleans())
def test_more_free_memory_never_alarms_more(
    one: float, other: float, batch: int, heavy: bool
) -> None:
    order = ["critical", "warning", "info", "none"]
    pending = [Pending("decode", "heavy" if heavy else "light", batch), Pending("draft")]
    low, high = sorted((one, other))
    alarms = [order.index(headroom(free, pending).alarm) for free in (low, high)]
    assert alarms[0] <= alarms[1]
