"""The fraction to start with next: the worked example, genuine launches, and properties."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from forensics.memory import (
    Need,
    Pending,
    Requests,
    Situation,
    grow_fraction,
    lower_bound,
    lower_fraction,
    minimum_fraction,
    observed_need,
    pool_budget_gib,
    pool_tokens,
    prior_need,
    raise_fraction,
    request_table_gib,
    suggest_fraction,
)
from forensics.memory.ledger import Capture

INCIDENT = Situation(
    fraction=0.95,
    baseline_gib=94.40,
    capture_begin_gib=0.96,
    after_weights_gib=33.20,
    pool_gib=31.70,
    kv_tokens=553_728,
    requests=Requests(202_752, 8, typed=True),
    total_gib=94.97,
    automatic_fraction=0.848,
)
FAILED = lower_bound(0.96, 247.44 / 1024, 694 / 1024)


def test_the_worked_example() -> None:
    advice = suggest_fraction(INCIDENT, FAILED)
    assert FAILED.gib == pytest.approx(1.40, abs=0.005)
    assert FAILED.gib - INCIDENT.capture_begin_gib == pytest.approx(0.44, abs=0.005)
    assert advice.possible
    assert advice.fraction == 0.88
    assert advice.basis == "lower_bound"
    assert advice.fraction_fail == pytest.approx(0.945, abs=0.001)
    assert advice.fraction_min == pytest.approx(0.648, abs=0.001)
    assert advice.target_gib == pytest.approx(7.0, abs=0.03)
    assert advice.fraction_next == 0.85
    assert advice.free_gib_at_capture == pytest.approx(7.57, abs=0.01)
    assert advice.free_gib_at_capture_scaled == pytest.approx(8.2, abs=0.15)  # 8.23 was seen
    assert advice.kv_tokens == pytest.approx(425_000, rel=0.01)  # about 425 thousand were seen
    assert advice.pool_change_gib == pytest.approx(-6.61, abs=0.01)
    assert advice.warnings == []
    taken = advice.unbudgeted
    assert taken is not None
    assert taken.total_gib == pytest.approx(3.76, abs=0.01)
    assert taken.pool_excess_gib == pytest.approx(3.22, abs=0.01)
    assert taken.pool_ratio == pytest.approx(1.113, abs=0.001)
    assert taken.fixed_gib == pytest.approx(0.53, abs=0.02)


def test_without_pool_and_baseline_figures_the_answer_holds() -> None:
    bare = Situation(0.95, 94.1, 0.96, total_gib=94.97)
    advice = suggest_fraction(bare, FAILED)
    assert advice.fraction == 0.88
    assert advice.free_gib_at_capture == pytest.approx(7.54, abs=0.01)
    assert advice.kv_tokens is None
    assert advice.fraction_min is None
    assert advice.fraction_next is None


GENUINE = [
    # fraction, first capture begin, tokens, pool: one model on an H200, 0.5.16
    (0.900, 11.97, 902_631, 110.18),
    (0.903, 11.59, 906_051, 110.60),
    (0.960, 3.47, 971_047, 118.54),
    (0.975, 1.43, 988_151, 120.62),
    (0.977, 1.05, 990_432, 120.90),
    (0.9788, 0.80, 992_484, 121.16),
]


@pytest.mark.parametrize("known", GENUINE)
@pytest.mark.parametrize("other", [*GENUINE, (0.9825, 0.29, 0, 0.0)])
def test_genuine_launches_foretell_one_another(
    known: tuple[float, float, int, float], other: tuple[float, float, int, float]
) -> None:
    fraction, begin, tokens, pool = known
    situation = Situation(fraction, 139.13, begin, 124.11, pool, tokens, Requests(131_072))
    assert situation.free_at(other[0]) == pytest.approx(other[1], abs=0.1)


def test_request_table() -> None:
    assert request_table_gib(2048, 202_752, 0) == pytest.approx(1.55, abs=0.005)
    assert request_table_gib(64, 202_752, 0) < 0.05
    assert request_table_gib(None, 131_072, 906_051, flag_typed=False) == pytest.approx(
        1.73, abs=0.01
    )
    assert request_table_gib(None, 1000, 10**9) == pytest.approx(4096 * 1004 * 4 / 2**30)
    assert request_table_gib(8, 0, 0) == 0.0


def test_pool_arithmetic() -> None:
    assert pool_budget_gib(33.20, 94.40, 0.95) == pytest.approx(28.48)
    assert minimum_fraction(33.20, 94.40) == pytest.approx(0.6483, abs=1e-4)
    assert pool_tokens(1.0, 1024, 64) == 1_048_576
    assert pool_tokens(-1.0, 1024) == 0


def test_an_observed_need_asks_for_little() -> None:
    need = observed_need([Capture("decode", 1.43, 1.16, 0.27)])
    assert need is not None
    situation = Situation(0.975, 139.13, 1.43, 124.11, 120.62, 988_151, Requests(131_072))
    advice = suggest_fraction(situation, need)
    assert advice.fraction == 0.96
    assert advice.free_gib_at_capture == pytest.approx(3.47, abs=0.1)


def test_a_capped_pool_is_not_sized_by_the_fraction() -> None:
    advice = suggest_fraction(dataclasses.replace(INCIDENT, pool_gib=3.0), FAILED)
    assert not advice.possible
    assert "token limit" in advice.because


def test_no_room_for_both() -> None:
    crowded = Situation(0.95, 94.40, 0.96, after_weights_gib=5.0)
    advice = suggest_fraction(crowded, FAILED)
    assert not advice.possible
    assert advice.fraction is None
    assert "more GPUs" in advice.because


def test_a_tight_card_is_told_so() -> None:
    snug = Situation(0.95, 94.40, 0.96, after_weights_gib=8.0, pool_gib=3.28, kv_tokens=50_000)
    advice = suggest_fraction(snug, FAILED)
    assert advice.possible
    assert any("reserve" in warning for warning in advice.warnings)


def test_token_warnings() -> None:
    few = dataclasses.replace(INCIDENT, kv_tokens=150_000)
    assert any("full context" in w for w in suggest_fraction(few, FAILED).warnings)


def test_prior_leaves_the_usual_reserve() -> None:
    need = prior_need([Pending("decode", "heavy", 8)])
    assert need is not None
    advice = suggest_fraction(INCIDENT, need)
    assert advice.possible
    assert 0.85 <= (advice.fraction or 0) <= 0.90


def test_raising() -> None:
    advice = raise_fraction(139.13, 124.11, fraction=0.08)
    assert advice.possible
    assert advice.fraction_min == pytest.approx(0.108, abs=0.001)
    assert advice.fraction == 0.13
    automatic = raise_fraction(139.13, 124.11, fraction=0.08, automatic_fraction=0.903)
    assert automatic.fraction == 0.91
    longer = raise_fraction(139.13, 124.11, fraction=0.08, cell_bytes=131_072, context_len=131_072)
    assert longer.fraction is not None
    assert longer.kv_tokens is not None
    assert longer.kv_tokens >= 131_072


def test_weights_that_do_not_fit_are_not_helped_by_a_fraction() -> None:
    advice = raise_fraction(79.0, 1.0, fraction=0.9)
    assert not advice.possible
    assert advice.fraction is None
    assert "no fraction" in advice.because


def test_growing_and_lowering() -> None:
    assert grow_fraction(0.85, 79.0, 6.0).fraction == 0.87
    assert not grow_fraction(0.85, 79.0, 2.1).possible
    lowered = lower_fraction(0.9, 79.0, 2.0, 30.0)
    assert lowered.fraction == 0.87
    assert not lower_fraction(0.3, 79.0, 20.0, 70.0).possible


fractions = st.floats(0.3, 0.99)


@st.composite
def situations(draw: st.DrawFn) -> Situation:
    base = draw(st.floats(10, 280))
    fraction = draw(st.floats(0.5, 0.99))
    weights_left = draw(st.floats(base * (1 - fraction) + 0.5, base))
    slack = base * (1 - fraction)
    budget = weights_left - slack
    return Situation(
        fraction=fraction,
        baseline_gib=base,
        capture_begin_gib=draw(st.floats(0.01, max(slack, 0.02))),
        after_weights_gib=weights_left,
        pool_gib=budget * draw(st.floats(0.98, 1.2)),
        kv_tokens=draw(st.integers(1000, 2_000_000)),
        requests=Requests(draw(st.integers(2048, 262_144)), 64, typed=True),
    )


@given(situations(), fractions, fractions)
def test_a_lower_fraction_predicts_more_free(s: Situation, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assume(high - low > 1e-6)
    assert s.free_at(low) > s.free_at(high)
    tokens = s.tokens_at(low), s.tokens_at(high)
    assert tokens[0] is not None
    assert tokens[1] is not None
    assert tokens[0] <= tokens[1]


@given(situations(), st.floats(0.05, 8))
def test_advice_is_lower_and_above_the_minimum(s: Situation, need_gib: float) -> None:
    advice = suggest_fraction(s, Need(need_gib, "lower_bound", need_gib))
    if not advice.possible:
        assert advice.because
        assert advice.fraction is None
        return
    assert advice.fraction is not None
    assert advice.fraction < s.fraction
    assert advice.fraction_min is not None
    assert advice.fraction > advice.fraction_min
    assert advice.free_gib_at_capture is not None
    assert advice.free_gib_at_capture > s.capture_begin_gib
    assert advice.kv_tokens_change is not None
    assert advice.kv_tokens_change <= 0


@given(situations(), st.floats(0.05, 4), st.floats(0.05, 4))
def test_a_larger_need_never_asks_for_a_higher_fraction(
    s: Situation, one: float, other: float
) -> None:
    small, large = sorted((one, other))
    easy = suggest_fraction(s, Need(small, "observed", small))
    hard = suggest_fraction(s, Need(large, "observed", large))
    if easy.fraction is not None and hard.fraction is not None and not hard.warnings:
        assert hard.fraction <= easy.fraction


@given(st.floats(10, 280), st.floats(0.01, 1), st.floats(0.01, 0.97))
def test_raising_stays_above_the_minimum(base: float, share: float, fraction: float) -> None:
    advice = raise_fraction(base, base * share, fraction=fraction)
    if advice.possible:
        assert advice.fraction is not None
        assert advice.fraction_min is not None
        assert advice.fraction_min < advice.fraction < 0.98
        assert advice.fraction > fraction
