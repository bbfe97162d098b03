"""Which runs of several sources belong together."""

from datetime import datetime, timedelta

import pytest

from forensics.incident.matching import Key, Span, matched

NOON = datetime(2026, 5, 11, 12)


def span(hours: float = 0, length_s: float = 600, **part: object) -> Span:
    begin = NOON + timedelta(hours=hours)
    return Span(begin, begin + timedelta(seconds=length_s), **part)  # type: ignore[arg-type]


def groups(spans: dict[Key, Span]) -> list[list[Key]]:
    return sorted(sorted(group) for group in matched(spans))


def test_sources_that_overlap_are_one_launch() -> None:
    assert groups({(0, 1): span(), (1, 1): span(0.05)}) == [[(0, 1), (1, 1)]]


def test_sources_of_other_days_are_two() -> None:
    assert groups({(0, 1): span(), (1, 1): span(30)}) == [[(0, 1)], [(1, 1)]]


def test_two_runs_of_one_source_are_two() -> None:
    assert groups({(0, 1): span(), (0, 2): span(0.1)}) == [[(0, 1)], [(0, 2)]]


def test_the_second_start_of_both_nodes_is_the_second_run() -> None:
    spans = {(0, 1): span(), (1, 1): span(0.01), (0, 2): span(2), (1, 2): span(2.01)}
    assert groups(spans) == [[(0, 1), (1, 1)], [(0, 2), (1, 2)]]


@pytest.mark.parametrize("hours", [2, -8, 5.5])
def test_nodes_in_other_zones_meet_by_their_rendezvous(hours: float) -> None:
    spans = {
        (0, 1): span(rendezvous="h:5000", node_rank=0),
        (1, 1): span(hours + 0.01, rendezvous="h:5000", node_rank=1),
    }
    assert groups(spans) == [[(0, 1), (1, 1)]]


def test_prefill_and_decode_in_other_zones_meet() -> None:
    assert groups({(0, 1): span(part="prefill"), (1, 1): span(8.02, part="decode")}) == [
        [(0, 1), (1, 1)]
    ]


def test_strangers_at_the_same_minute_of_another_hour_stay_apart() -> None:
    assert groups({(0, 1): span(), (1, 1): span(8)}) == [[(0, 1)], [(1, 1)]]


def test_without_dates_the_order_of_runs_decides() -> None:
    undated = Span(None, None)
    spans = {(0, 1): undated, (1, 1): undated, (0, 2): undated}
    assert groups(spans) == [[(0, 1), (1, 1)], [(0, 2)]]
