"""Writes a log anew at its own pace, for demonstrations and tests of what watches logs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import BinaryIO

from forensics.grammar import load
from forensics.reading import Source, Unwrapper, detect, read_blocks
from forensics.reading.wrappers import SAMPLE_LINES
from forensics.timeline.records import RecordReader


@dataclass(frozen=True, slots=True)
class TimedLine:
    """A line with its newline, and the seconds from the log's first time to its own."""

    data: bytes
    at_s: float


def timed_lines(path: str) -> Iterator[TimedLine]:
    """The lines of a log; one without a time is as late as the line before it.

    Times never run backwards: a line that says so is as late as the latest before it.
    Raises `InputError`.
    """
    first: datetime | None = None
    at_s = 0.0
    unwrapper: Unwrapper | None = None
    reader = RecordReader(load())
    number = 0
    for block in read_blocks(Source(0, path), notices=[]):
        lines = _cut(block.data)
        if unwrapper is None:
            unwrapper = detect([line.decode("utf-8", "replace") for line in lines[:SAMPLE_LINES]])
        for line in lines:
            number += 1
            for piece in unwrapper.pieces(number, line.decode("utf-8", "replace").rstrip("\n")):
                time_of = reader.read(piece).time
                if time_of is None:
                    continue
                first = time_of if first is None else first
                at_s = max(at_s, (time_of - first).total_seconds())
            yield TimedLine(line, at_s)


def _cut(data: bytes) -> list[bytes]:
    """Lines by newlines alone."""
    parts = data.split(b"\n")
    last = parts.pop()
    return [part + b"\n" for part in parts] + ([last] if last else [])


def replay(
    lines: Sequence[TimedLine] | Iterator[TimedLine],
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
