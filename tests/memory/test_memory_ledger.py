"""The ledger closes, and says which lines are missing where it does not."""

from __future__ import annotations

import pytest

from forensics.memory import Capture, Ledger, allocator_split, situation_of


def whole() -> Ledger:
    """A genuine launch of an 8B model on an H200, 0.5.16."""
    return Ledger(
        rank="TP0",
        baseline_gib=139.13,
        weights_gib=15.02,
        after_weights_gib=124.11,
        kv_pool_gib=110.60,
        kv_tokens=906051,
        after_pool_gib=11.73,
        capture_begin_gib=11.59,
        captures=[
            Capture("prefill", 11.59, 1.47, 10.12),
            Capture("decode", 10.12, 0.49, 9.63),
        ],
        end_gib=9.63,
    )


def test_it_closes() -> None:
    check = whole().check()
    assert check.complete
    assert check.residual_gib == pytest.approx(0, abs=0.011)
    assert check.missing == []


def test_a_missing_line_is_named() -> None:
    ledger = whole()
    ledger.kv_pool_gib = None
    ledger.captures.append(Capture("draft", 9.6))
    check = ledger.check()
    assert not check.complete
    assert check.missing == ["kv_pool", "capture_end:draft"]
    assert Ledger().check().residual_gib is None


def test_an_unexplained_loss_is_not_complete() -> None:
    ledger = whole()
    ledger.end_gib = 8.0
    check = ledger.check()
    assert not check.complete
    assert check.residual_gib == pytest.approx(1.63)


def test_a_late_draft_is_counted() -> None:
    ledger = whole()
    ledger.draft_after_capture = True
    ledger.draft_weights_gib, ledger.draft_kv_pool_gib = 1.0, 0.5
    ledger.end_gib = 8.13
    assert ledger.check().complete
    assert ledger.pool_gib == 110.60
    assert ledger.free_before_pool_gib == 124.11


def test_derived_figures() -> None:
    ledger = whole()
    assert ledger.cell_bytes == pytest.approx(131072, rel=1e-3)
    assert ledger.graphs_gib == pytest.approx(1.96)
    assert ledger.pool_ratio(0.903) == pytest.approx(1.0, abs=0.01)
    assert ledger.pool_ratio(0.05) is None
    assert Ledger().cell_bytes is None
    assert Capture("decode", 3.0, None, 2.0).used_gib == 1.0
    assert Capture("decode", 3.0, bars=[(8, 2.5)]).lowest_gib == 2.5


def test_situation_takes_the_least_over_ranks() -> None:
    poor = whole()
    poor.after_weights_gib, poor.capture_begin_gib = 120.0, 10.0
    situation = situation_of([whole(), poor], 0.903)
    assert situation is not None
    assert situation.after_weights_gib == 120.0
    assert situation.capture_begin_gib == 10.0
    assert situation.cell_bytes == pytest.approx(131072, rel=1e-3)


def test_situation_says_what_it_assumed() -> None:
    ledger = Ledger(total_gib=94.97, after_pool_gib=1.36)
    situation = situation_of([ledger], 0.95)
    assert situation is not None
    assert situation.baseline_gib == pytest.approx(94.37)
    assert len(situation.assumed) == 2
    assert situation_of([Ledger()], 0.9) is None


def test_allocator_message() -> None:
    split = allocator_split(94.97, 247.44 / 1024, 94.72, 87.43, 6.44)
    assert split.non_torch_gib == pytest.approx(0.85)
    assert split.others_gib == 0.0
    assert allocator_split(80.0, 1.0, 40.0, None, None).others_gib == pytest.approx(39.0)
    assert allocator_split(None, None, None, None, None).others_gib is None
