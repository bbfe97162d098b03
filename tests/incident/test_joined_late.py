"""A log that begins in the middle, and a launch that ends before anything has a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.pipeline import analyze

FIXTURES = Path(__file__).parents[2] / "fixtures"
USAGE = """usage: launch_server.py [-h] --model-path MODEL_PATH
launch_server.py: error: unrecognized arguments: --mem-fraction-statik 0.9
"""


def decode(count: int) -> str:
    return "".join(
        f"[2026-03-01 10:{number // 60 % 60:02}:{number % 60:02} TP0] Decode batch, #running-req: "
        f"{number % 64}, #token: {number}, token usage: 0.31, cuda graph: True, "
        "gen throughput (token/s): 812.40, #queue-req: 0, \n"
        for number in range(count)
    )


@pytest.mark.parametrize("count", [40, 3000])  # 3000 lines are read columnar
def test_batches_without_a_start_are_those_of_a_server_that_serves(
    tmp_path: Path, count: int
) -> None:
    log = tmp_path / "middle.log"
    log.write_text(decode(count))
    (report,) = analyze([str(log)]).reports
    assert (report.run.outcome, report.run.phase) == ("serving", "serving")
    assert report.run.ended_at is not None
    assert report.run.started_at is not None
    assert report.run.ended_at > report.run.started_at


def test_batches_while_it_warms_up_make_no_server(tmp_path: Path) -> None:
    started = (FIXTURES / "genuine/h200-tp2-healthy.log").read_text()
    log = tmp_path / "warming.log"
    log.write_text(started[: started.index("The server is fired up")] + decode(1))
    (report,) = analyze([str(log)]).reports
    assert report.run.outcome == "unknown"


def test_a_launch_without_times_keeps_its_place_among_those_of_its_file(tmp_path: Path) -> None:
    log = tmp_path / "two.log"
    log.write_text(USAGE + (FIXTURES / "sglang-glm5.log").read_text())
    first, second = analyze([str(log)]).reports
    assert first.run.phase == "init"
    assert second.run.phase == "graph_capture"
