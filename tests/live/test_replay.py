"""A replayed log has the pace of the log."""

from __future__ import annotations

import io
from pathlib import Path

from forensics.live.replay import replay, timed_lines
from tests.live.conftest import FIXTURES


def test_every_byte_comes_back_in_time() -> None:
    path = FIXTURES / "sglang-glm5.log"
    lines = list(timed_lines(str(path)))
    assert b"".join(line.data for line in lines) == path.read_bytes()
    times = [line.at_s for line in lines]
    assert times == sorted(times)
    assert times[-1] > 360


def test_bars_have_a_clock_of_their_own() -> None:
    lines = list(timed_lines(str(FIXTURES / "sglang-glm5.log")))
    at = {line.data[43:].strip(): line.at_s for line in lines if b"Completed |" in line.data}
    shards = [time for _, time in sorted(at.items(), key=lambda item: item[1])]
    assert shards[-1] - shards[0] > 300


def test_speed_and_pauses(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "[2026-02-18 23:00:00] one\n[2026-02-18 23:00:10] two\n\n[2026-02-18 23:10:10] three\n"
    )
    waits: list[float] = []
    now = [0.0]

    def sleep(seconds: float) -> None:
        waits.append(round(seconds, 3))
        now[0] += seconds

    out = io.BytesIO()
    lines = timed_lines(str(log))
    assert replay(lines, out, 10, longest_pause_s=5.0, sleep=sleep, clock=lambda: now[0]) == 4
    assert waits == [1.0, 5.0]
    assert out.getvalue() == log.read_bytes()
