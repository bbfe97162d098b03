"""However a log is cut into portions, and by whichever lane it is read, it says the same."""

from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import forensics.timeline as timeline
from forensics.events import Event
from forensics.grammar import load
from forensics.reading import Block
from forensics.reading.lines import LineCutter
from forensics.timeline import SourceParser
from forensics.timeline.serving import BUCKETS, empty, from_events

ROOT = Path(__file__).parents[2]
LOGS = sorted(
    [
        *(ROOT / "fixtures" / "genuine").glob("*.log"),
        ROOT / "fixtures" / "sglang-glm5.log",
        ROOT / "tests" / "rules" / "unknown-failure" / "hit.log",
        ROOT / "tests" / "rules" / "collective-hang" / "hit.log",
        ROOT / "tests" / "rules" / "scheduler-watchdog" / "hit.log",
    ]
)


def blocks(data: bytes, cuts: list[int]) -> list[Block]:
    """The blocks of a log that arrives in portions which end at `cuts`."""
    cutter, found, last = LineCutter(), [], 0
    for cut in [*sorted({cut for cut in cuts if 0 < cut < len(data)}), len(data)]:
        found.append(cutter.feed(data[last:cut]))
        last = cut
    found.append(cutter.flush())
    return [block for block in found if block is not None]


def parsed(data: bytes, cuts: list[int], *, lanes: bool = False) -> tuple[list[Event], Any]:
    """The events, and what else the parser tells at the end."""
    parser = SourceParser(0, load(), lanes=lanes)
    events: list[Event] = []
    for block in blocks(data, cuts):
        events += parser.feed(block).events
    events += parser.finish().events
    tally = parser.tally
    return events, (tally.lines, tally.blank, tally.recognised, parser.unknown, parser.runs_at())


@cache
def whole(path: Path) -> tuple[bytes, tuple[list[Event], Any]]:
    data = path.read_bytes()[:60_000]
    return data, parsed(data, [])


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}/{path.name}")
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(draw=st.data())
def test_portions_do_not_matter(path: Path, draw: st.DataObject) -> None:
    data, expected = whole(path)
    cuts = draw.draw(st.lists(st.integers(1, max(len(data) - 1, 1)), max_size=40))
    assert parsed(data, cuts) == expected


@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_line_by_line_is_the_same(path: Path) -> None:
    data, expected = whole(path)
    cuts = [place + 1 for place, byte in enumerate(data) if byte == 10]
    assert parsed(data, cuts) == expected


TORN = st.sampled_from(
    [
        "[2026-01-02 03:04:05 TP0] Scheduler hit an exception: Traceback (most recent call last):",
        "[2026-01-02 03:04:05 TP1] Scheduler hit an exception: Traceback (most recent call last):",
        "Traceback (most recent call last):",
        "[rank1]: Traceback (most recent call last):",
        '[rank1]:   File "/opt/a.py", line 3, in f',
        "[rank1]: ValueError: no",
        '  File "/opt/a.py", line 3, in f',
        "    g()",
        "RuntimeError: broken",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB.",
        "",
        "During handling of the above exception, another exception occurred:",
        "Killed",
        "[2026-01-02 03:04:06 TP0] Load weight begin. avail mem=70.00 GB",
        "Capturing batches (bs=1 avail_mem=1.18 GB):  50%|#####     | 1/2 [00:10<00:10,  3.37it/s]"
        "[2026-01-02 03:04:07 TP1] Registering 4 cuda graph addresses",
        "[2026-01-02 03:04:08] server_args=ServerArgs(model_path='/m', tp_size=2)",
        "[2026-01-02 03:04:09] Received sigquit from a child process. It usually means the child"
        " failed.",
        "[2026-01-02 03:0",
    ]
)


@settings(max_examples=120, deadline=None)
@given(lines=st.lists(TORN, min_size=1, max_size=40), cuts=st.lists(st.integers(1, 3000)))
def test_torn_and_interleaved_lines_are_cut_alike(lines: list[str], cuts: list[int]) -> None:
    data = ("\n".join(lines)).encode()
    assert parsed(data, cuts) == parsed(data, [])


@settings(max_examples=120, deadline=None)
@given(lines=st.lists(TORN, min_size=1, max_size=40))
def test_every_line_is_in_one_event_and_events_are_in_order(lines: list[str]) -> None:
    events, _ = parsed(("\n".join(lines)).encode(), [])
    assert [event.line for event in events] == sorted(event.line for event in events)
    for event in events:
        assert 1 <= event.line <= event.end_line <= len(lines)
        for raised in event.traceback.chain if event.traceback else []:
            assert raised.first_line >= event.line
            assert not raised.line or event.line <= raised.line <= event.end_line


def batches(count: int) -> str:
    """A served hour: decode, prefill and access lines of two ranks, odd lines among them."""
    time, lines = datetime(2026, 1, 2, 3, 4, 5), []
    for number in range(count):
        time += timedelta(seconds=number % 3)
        rank = f"DP{number % 2} TP0"
        head = f"[{time:%Y-%m-%d %H:%M:%S} {rank}]"
        lines += [
            f"{head} Decode batch, #running-req: {number % 9}, #token: {number * 7}, token usage: "
            f"0.{number % 10}0, cuda graph: {number % 5 != 0}, gen throughput (token/s): "
            f"{number}.50, #queue-req: {number % 4}, ",
            f"{head} Prefill batch, #new-seq: 1, #new-token: {number % 50}, #cached-token: 0, "
            f"token usage: 0.00, #running-req: 0, #queue-req: {number % 3}, ",
            f'[{time:%Y-%m-%d %H:%M:%S}] INFO:     127.0.0.1:{number} - "GET '
            f'{"/health" if number % 2 else "/v1/models"} HTTP/1.1" 200 OK',
        ]
        if number % 7 == 0:
            lines.append(f"{head} Decode batch, something that is none: {number}")
        if number % 11 == 0:
            lines.append(
                f"{head} KV cache pool is full. Retract requests. #retracted_reqs: 1, "
                f"#new_token_ratio: 0.5100 -> 0.9000"
            )
    return "\n".join(lines) + "\n"


def rows(data: bytes, *, lanes: bool) -> tuple[pl.DataFrame, list[Event]]:
    """Serving rows one per second, rank and lane, and all other events."""
    parser, found, events = SourceParser(0, load(), lanes=lanes, sample_lines=5), [empty()], []
    for block in blocks(data, list(range(0, len(data), 20_000))):
        chunk = parser.feed(block)
        found += [routine.rows for routine in chunk.serving]
        events += chunk.events
    events += parser.finish().events
    hot = [event for event in events if event.kind in timeline.ROUTINE]
    found.append(from_events(hot))
    kept = [c for c in BUCKETS if c not in ("source", "run")]
    table = pl.concat([frame.select(kept) for frame in found])
    means = [
        ((pl.col(name) * pl.col("n")).sum() / pl.col("n").sum()).round(6).alias(name)
        for name in ("tps", "accept_len")
    ]
    peaks = [pl.col(name).max() for name in ("running", "queue", "usage", "new_tokens_max")]
    least = [pl.col(name).min() for name in ("line", "running_min", "tps_min")]
    sums = [pl.col(name).sum() for name in ("n", "new_tokens", "graph_off")]
    keys = ["lane", "rank", "time"]
    summed = table.group_by(keys).agg(*least, *peaks, *sums, *means).sort("line")
    return summed, [event for event in events if event.kind not in timeline.ROUTINE]


def test_lanes_give_the_rows_that_events_give(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "_WORTH_LANES", 1)
    data = batches(700).encode()
    fast, others = rows(data, lanes=True)
    slow, same = rows(data, lanes=False)
    assert fast.height > 100
    assert fast.equals(slow)
    assert others == same
