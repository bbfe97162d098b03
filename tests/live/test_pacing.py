"""Judging is rare, but never late where it matters."""

from __future__ import annotations

from forensics.events import Event
from forensics.live.pacing import SERVING_EVERY_S, Pacer, Urgency, urgency_of


def event(kind: str, level: str | None = None) -> Event:
    return Event(0, 1, kind, "text", level=level)


def test_what_is_urgent() -> None:
    assert urgency_of([event("decode_batch")], serving=False) is Urgency.routine
    assert urgency_of([event("shards_progress")], serving=False) is Urgency.routine
    assert urgency_of([event("load_weight_end")], serving=False) is Urgency.soon
    assert urgency_of([event("load_weight_end")], serving=True) is Urgency.routine
    assert urgency_of([event("capture_begin")], serving=False) is Urgency.vital
    assert urgency_of([event("child_failed")], serving=True) is Urgency.failure
    assert urgency_of([event("other", "ERROR")], serving=True) is Urgency.failure


def judged_in(seconds: float, urgency: Urgency, cost_s: float, *, serving: bool) -> int:
    now, count = 0.0, 0
    pacer = Pacer(now)
    while now < seconds:
        now += 0.05
        pacer.heard(urgency)
        if pacer.due(now, serving=serving):
            pacer.judged(now, cost_s)
            count += 1
    return count


def test_routine_lines_of_a_server_are_judged_rarely() -> None:
    assert judged_in(600, Urgency.routine, 0.03, serving=True) <= 600 / SERVING_EVERY_S + 1


def test_judging_takes_a_small_share_whatever_comes() -> None:
    for urgency in Urgency:
        for serving, share in ((True, 0.01), (False, 0.06)):
            cost_s = 0.05
            spent = judged_in(1000, urgency, cost_s, serving=serving) * cost_s
            assert spent / 1000 < share, (urgency, serving)


def test_a_failure_is_judged_at_once_even_after_much_judging() -> None:
    pacer, now = Pacer(0.0), 0.0
    while pacer.due(now, serving=False) or pacer.waiting is None:
        pacer.judged(now, 0.1)
        pacer.heard(Urgency.soon)
        now += 0.01
    pacer.heard(Urgency.failure)
    assert pacer.due(now, serving=False)


def test_one_judging_that_took_long_does_not_end_all_judging() -> None:
    pacer = Pacer(0.0)
    pacer.judged(0.0, 3.0)
    pacer.heard(Urgency.routine)
    assert pacer.due(5000.0, serving=True)
