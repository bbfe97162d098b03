"""Much and long: lines are heard in time, and memory stays flat. Scaled down for every run."""

from __future__ import annotations

import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.live.conftest import FIXTURES, Make, Watched

START = (FIXTURES / "genuine/h200-tp2-healthy.log").read_bytes()
READY = START[: START.index(b"\n", START.index(b"ready to roll")) + 1]
BEGAN = datetime(2026, 3, 1)


def lines(first: int, count: int, a_second: int) -> bytes:
    """Routine lines of a server with two ranks."""
    made = []
    for number in range(first, first + count):
        at = BEGAN + timedelta(seconds=number // a_second)
        rank = number % 2
        if number % 5 < 2:
            made.append(
                f'[{at}] INFO:     127.0.0.1:{number % 60000} - "POST /generate HTTP/1.1" 200 OK'
            )
        elif number % 5 < 4:
            made.append(
                f"[{at} TP{rank}] Decode batch, #running-req: {number % 64}, #token: {number}, "
                f"token usage: 0.{number % 90 + 10}, cuda graph: True, gen throughput (token/s): "
                f"{number % 4000}.12, #queue-req: 0, "
            )
        else:
            made.append(
                f"[{at} TP{rank}] Prefill batch, #new-seq: 1, #new-token: {number % 800}, "
                f"#cached-token: 0, token usage: 0.{number % 90 + 10}, "
                f"#running-req: {number % 64}, #queue-req: 0, "
            )
    return ("\n".join(made) + "\n").encode()


def serving(watched: Make) -> Watched:
    w = watched("failed")
    w.watch.caught_up()
    w.watch.heard(0, READY)
    w.clock.now += 1
    assert w.watch.step() is None
    return w


def test_ten_thousand_lines_a_second_are_heard_in_less_than_a_second(watched: Make) -> None:
    w = serving(watched)
    portions = [lines(number, 10_000, 10_000) for number in range(0, 100_000, 10_000)]
    worst_s = 0.0
    began = time.process_time()
    for portion in portions:
        before = time.process_time()
        w.watch.heard(0, portion)
        w.clock.now += 1.0
        w.watch.step()
        worst_s = max(worst_s, time.process_time() - before)
    assert time.process_time() - began < 8.0
    assert worst_s < 1.5


def test_routine_lines_cost_next_to_nothing(watched: Make) -> None:
    """20 lines a second for ten minutes, a look every second: under 1 % of one core."""
    w = serving(watched)
    portions = [lines(number, 20, 20) for number in range(0, 12_000, 20)]
    began = time.process_time()
    for portion in portions:
        w.watch.heard(0, portion)
        w.clock.now += 1.0
        w.watch.step()
    assert (time.process_time() - began) / 600 < 0.01


def memory_mib() -> float:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2**20


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux only")
def test_memory_is_flat(watched: Make) -> None:
    w = serving(watched)
    sizes = []
    for number in range(0, 600_000, 10_000):
        w.watch.heard(0, lines(number, 10_000, 20))
        w.clock.now += 500.0
        w.watch.step()
        sizes.append(memory_mib())
    # Rows are summed up from 120,000 on, after about 480,000 of these lines: the memory of then
    # is the most there will ever be.
    assert max(sizes[50:]) < 1.1 * max(sizes[:50])
