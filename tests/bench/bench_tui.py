"""Measure the timeline on a long log: the longest pause of its UI loop, first paint, memory.

A heartbeat on the UI loop notes how late it wakes while the log is opened, scrolled and filtered:
what it is late by is how long a key would have had to wait.

    python tests/bench/bench_tui.py --size 1GB
    python tests/bench/bench_tui.py --log server.log
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from make_log import parse_size, write

from forensics.rules import Settings
from forensics.tui.app import TimelineApp
from forensics.tui.engine import Reader

BEAT_S = 0.002
PAGES = 100
FILTERS = ("r", "ra", "rank:TP3", "rank:TP3 kind:decode_batch", "out of memory", "running-req: 77")


class Heart:
    """Beats on the UI loop; keeps the longest it was late."""

    def __init__(self) -> None:
        self.worst_s = 0.0
        self._task = asyncio.get_running_loop().create_task(self._beat())

    async def _beat(self) -> None:
        while True:
            due = time.perf_counter() + BEAT_S
            await asyncio.sleep(BEAT_S)
            self.worst_s = max(self.worst_s, time.perf_counter() - due)

    def take(self) -> float:
        """The longest pause since the last call."""
        worst, self.worst_s = self.worst_s, 0.0
        return worst

    def stop(self) -> None:
        self._task.cancel()


async def until(done: Callable[[], bool], timeout_s: float = 300.0) -> float:
    """Wait without holding the loop; gives the seconds it took."""
    began = time.perf_counter()
    while not done() and time.perf_counter() - began < timeout_s:
        await asyncio.sleep(0.02)
    return time.perf_counter() - began


def rss_mib() -> float:
    """Memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


async def measure(path: Path, size: tuple[int, int]) -> None:
    before = rss_mib()
    began = time.perf_counter()
    app = TimelineApp(lambda: Reader([str(path)], Settings()), f"Reading {path.name}")
    async with app.run_test(size=size) as pilot:
        print(f"{'first paint':34} {time.perf_counter() - began:6.2f} s")
        heart = Heart()
        await until(lambda: bool(app.screen.query("EventTable")))
        table: Any = app.screen.query_one("EventTable")
        await until(lambda: table.total() > 0)
        print(f"{'first rows':34} {time.perf_counter() - began:6.2f} s")
        await pilot.press("2")
        await step("scroll while it reads", heart, lambda: scroll(pilot))
        await step("filter while it reads", heart, lambda: filtered(table))
        took = await until(lambda: bool(app.engine and app.engine.store.complete))
        lines = app.engine.store.lines(0) if app.engine else 0
        print(f"{'indexed after':34} {time.perf_counter() - began:6.2f} s, {lines:,} lines")
        await asyncio.sleep(2)
        print(f"{'pause until all is read':34} {heart.take() * 1000:6.0f} ms (waited {took:.1f} s)")
        await step(f"{PAGES} pages down", heart, lambda: scroll(pilot))
        await step("to the end and back", heart, lambda: ends(pilot))
        await step("six filters, typed on", heart, lambda: filtered(table))
        await step("search for the last line", heart, lambda: searched(table, app.engine.store))
        heart.stop()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{'memory':34} {rss_mib():6.0f} MiB, peak {peak:.0f}, at start {before:.0f}")
        app.exit(0)


async def step(name: str, heart: Heart, act: Callable[[], Awaitable[object]]) -> None:
    """Do something and print its longest pause."""
    heart.take()
    began = time.perf_counter()
    await act()
    took = time.perf_counter() - began
    print(f"{name:34} {heart.take() * 1000:6.0f} ms longest pause, {took:5.2f} s in all")


async def scroll(pilot: Any) -> None:
    for _ in range(PAGES):
        await pilot.press("pagedown")


async def ends(pilot: Any) -> None:
    await pilot.press("G", "g")


async def filtered(table: Any) -> None:
    for typed in FILTERS:
        table.set_filter(typed)
        await asyncio.sleep(0.15)
    await until(lambda: table.all_found, 20)
    table.set_filter("")
    await until(lambda: table.total() > 0)


async def searched(table: Any, store: Any) -> None:
    """From the first record to a text of the last lines."""
    last = store.read(0, store.lines(0), 1)[0].text
    table.search.begin(last[-40:])
    table.ends(-1)
    table.found(1)
    await until(lambda: table.cursor > 0, 20)
    await asyncio.sleep(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="200MB", help="of the log that is made")
    parser.add_argument("--log", type=Path, help="a log to read instead")
    parser.add_argument("--screen", default="120x40", help="columns x lines")
    asked = parser.parse_args()
    width, height = (int(part) for part in asked.screen.split("x"))
    if asked.log:
        asyncio.run(measure(asked.log, (width, height)))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.log"
        write(parse_size(asked.size), path)
        asyncio.run(measure(path, (width, height)))


if __name__ == "__main__":
    sys.exit(main())
