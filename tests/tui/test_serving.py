"""The serving view: what each rank carried, drawn over time, and why there may be nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forensics.tui.charts import chart
from forensics.tui.model import Loaded, Selection
from forensics.tui.serving import ServingView
from forensics.tui.serving_rows import load_of

Drive = Callable[..., Any]
DECODE = (
    "[2026-03-01 10:{:02}:{:02} DP{} TP{}] Decode batch, #running-req: {}, #token: 2240, "
    "token usage: {:.2f}, cuda graph: True, gen throughput (token/s): {:.2f}, #queue-req: {}\n"
)
RETRACT = (
    "[2026-03-01 10:{:02}:{:02} DP1 TP4] KV cache pool is full. Retract requests. "
    "#retracted_reqs: 3, #new_tokens_gained: 512, #new_token_ratio: 0.70 -> 0.95\n"
)
READY = "[2026-03-01 09:59:59] The server is fired up and ready to roll!\n"


def text_of(pane: ServingView) -> str:
    return "\n".join(line.plain for line in pane.document.lines)


async def summed(pilot: Any) -> None:
    await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


@pytest.fixture
def served(tmp_path: Path, load: Callable[[Path], Loaded]) -> Loaded:
    """Ten minutes on two DP ranks: the first rises, the second is full and puts back requests."""
    lines = ["[2026-03-01 09:59:00 DP0 TP0] Load weight begin. avail mem=78.50 GB\n", READY]
    for number in range(600):
        minute, second = divmod(number, 60)
        lines.append(DECODE.format(minute, second, 0, 0, number // 6, number / 600, 2 * number, 0))
        lines.append(DECODE.format(minute, second, 1, 4, 100, 0.99, 1000.0, 7))
        if number in (300, 301):
            lines.append(RETRACT.format(minute, second))
    path = tmp_path / "served.log"
    path.write_text("".join(lines))
    return load(path)


def test_rows_become_columns_of_each_rank(served: Loaded) -> None:
    load = load_of(served.report(0).run, 60)
    assert load is not None
    first, second = load.ranks
    assert (first.rank, second.rank) == ("DP0 TP0", "DP1 TP4")
    usage, running, queued, rate = first.series
    assert [series.quantity.name for series in first.series] == [
        "token usage",
        "running",
        "queued",
        "decode tokens/s",
    ]
    drawn = [value for value in usage.values if value is not None]
    assert drawn == sorted(drawn)
    assert len(drawn) == 60
    assert (running.peak, queued.peak) == (99, 0)
    assert rate.mean == pytest.approx(599)
    assert second.series[2].peak == 7
    assert sum(second.retracted) == load.retracted == 6
    assert [at for at, number in enumerate(second.retracted) if number] in ([29], [29, 30], [30])
    assert load.lines["decode"] == 1200


def test_a_chart_fills_from_below_and_shows_the_least_of_values() -> None:
    assert chart([0.0, None, 1.0, 0.5], 1.0) == [" ⣧"]
    upper, lower = chart([8.0, 4.0], 8.0, height=2)
    assert (upper, lower) == (chr(0x2800 | 0x47), chr(0x2800 | 0x47 | 0xB8))
    assert chart([0.0001], 100.0) == [chr(0x2800 | 0x40)]


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
def test_the_view_draws_every_rank_with_numbers_and_marks(
    size: tuple[int, int], served: Loaded, drive: Drive
) -> None:
    async def script(pilot: Any, pane: ServingView) -> None:
        pane.show(served, 0)
        await summed(pilot)
        text = text_of(pane)
        assert "2026-03-01 10:00:00 to 10:09:59" in text
        assert "1,200 decode lines" in text
        assert "6 requests retracted" in text
        assert text.index("DP0 TP0") < text.index("DP1 TP4")
        assert "peak 0.99" in text
        marks = next(line for line in text.splitlines() if "retracted  " in line)
        assert 1 <= marks.count("R") <= 2
        assert all(line.cell_len <= size[0] - 2 for line in pane.document.lines)

    drive(ServingView, script, size)


def test_a_chosen_rank_is_shown_alone_and_a_chart_leads_to_its_peak(
    served: Loaded, drive: Drive
) -> None:
    async def script(pilot: Any, pane: ServingView) -> None:
        pane.show(served, 0)
        pane.select(Selection(rank="DP0 TP0"))
        await summed(pilot)
        assert "DP1 TP4" not in text_of(pane)
        row = next(at for at, line in enumerate(pane.document.lines) if "running" in line.plain)
        pane.go(row)
        await pilot.press("enter")
        pane.select(Selection())
        await summed(pilot)
        assert "DP1 TP4" in text_of(pane)

    (told,) = drive(ServingView, script).told
    assert told.opened
    line = Path(served.paths[0]).read_text().splitlines()[told.line - 1]
    assert "#running-req: 99," in line


def test_nothing_served_says_why(
    fixtures: Path, tmp_path: Path, load: Callable[[Path], Loaded], drive: Drive
) -> None:
    failed = load(fixtures / "sglang-glm5.log")
    path = tmp_path / "idle.log"
    path.write_text("[2026-03-01 09:59:00 TP0] Load weight begin. avail mem=78.50 GB\n" + READY)
    idle = load(path)

    async def script(pilot: Any, pane: ServingView) -> None:
        pane.show(failed, 0)
        await summed(pilot)
        words = " ".join(text_of(pane).split())
        assert "never became ready; it failed while capturing CUDA graphs" in words
        pane.show(idle, 0)
        await summed(pilot)
        words = " ".join(text_of(pane).split())
        assert "It became ready, and no request was run" in words

    drive(ServingView, script)
