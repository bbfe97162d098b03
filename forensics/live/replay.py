"""Writes a log anew at its own pace, for demonstrations and tests of what watches logs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO

from forensics.grammar import load
from forensics.live.bars import seconds
from forensics.reading import SAMPLE_LINES, Piece, Source, Unwrapper, detect, read_blocks
from forensics.timeline.records import Record, RecordReader

_MOST_WAITING = 10_000


@dataclass(slots=True)
class TimedLine:
    """A line with its newline, and the seconds from the log's first time to its own."""

    data: bytes
    at_s: float


class _Pace:
    """When each line was written: by its head, else by its bar's own clock, else as the last."""

    def __init__(self) -> None:
        self._reader = RecordReader(load())
        self._first: datetime | None = None
        self._last_s = 0.0
        self._bar_began_s = 0.0

    def of(self, pieces: Iterable[Piece]) -> tuple[float, bool]:
        """Seconds since the first time, and whether the line itself says so."""
        sure = False
        at_s = self._last_s
        for piece in pieces:
            record = self._reader.read(piece)
            if (record.headed or piece.time) and record.time is not None:
                self._first = self._first or record.time
                own_s = (record.time - self._first).total_seconds()
                self._last_s = self._bar_began_s = at_s = max(self._last_s, own_s)
                sure = True
            elif (elapsed_s := self._elapsed_s(record)) is not None:
                at_s = self._bar_began_s + elapsed_s
        return at_s, sure

    @staticmethod
    def _elapsed_s(record: Record) -> float | None:
        if "%|" not in record.message and "% Completed" not in record.message:
            return None
        match = load().match(record.message.strip())
        return seconds(match.fields.get("elapsed")) if match else None


def timed_lines(path: str) -> Iterator[TimedLine]:
    """The lines of a log; those without a time come between their neighbours.

    Times never run backwards: a line that says so is as late as the latest before it.
    Raises `InputError`.
    """
    pace = _Pace()
    waiting: list[TimedLine] = []
    for number, raw, unwrapper in _lines(path):
        text = raw.decode("utf-8", "replace").rstrip("\n")
        at_s, sure = pace.of(unwrapper.pieces(number, text))
        if sure or len(waiting) >= _MOST_WAITING:
            yield from _not_after(waiting, at_s)
            waiting = []
            yield TimedLine(raw, at_s)
        else:
            waiting.append(TimedLine(raw, at_s))
    yield from _not_after(waiting, float("inf"))


def _not_after(lines: list[TimedLine], limit_s: float) -> Iterator[TimedLine]:
    latest_s = 0.0
    for line in lines:
        latest_s = line.at_s = min(max(line.at_s, latest_s), limit_s)
        yield line


def _lines(path: str) -> Iterator[tuple[int, bytes, Unwrapper]]:
    unwrapper: Unwrapper | None = None
    number = 0
    for block in read_blocks(Source(0, path), notices=[]):
        parts = block.data.split(b"\n")
        lines = [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
        if unwrapper is None:
            unwrapper = detect([line.decode("utf-8", "replace") for line in lines[:SAMPLE_LINES]])
        for line in lines:
            number += 1
            yield number, line, unwrapper


def replay(
    lines: Iterable[TimedLine],
    out: BinaryIO,
    speed: float,
    *,
    longest_pause_s: float | None = None,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> int:
    """Write lines at their pace times `speed`; returns how many there were.

    Pauses longer than `longest_pause_s` (after `speed`) are cut to it.
    """
    due = clock()
    before_s = 0.0
    count = 0
    for line in lines:
        pause_s = (line.at_s - before_s) / speed
        if longest_pause_s is not None:
            pause_s = min(pause_s, longest_pause_s)
        due += pause_s
        before_s = line.at_s
        if (wait_s := due - clock()) > 0:
            out.flush()
            sleep(wait_s)
        out.write(line.data)
        count += 1
    out.flush()
    return count
