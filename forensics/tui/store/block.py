"""The index of some thousand lines: where they are, and the class and time of each.

About six bytes a line: the class is two, the time four, and only every `STRIDE`-th line has its
place noted; those between are found by counting newlines when they are shown.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field, replace

import polars as pl

STRIDE = 64


@dataclass(slots=True)
class LineBlock:
    """Consecutive lines of one source. A change makes a new version, never alters a column."""

    source: int
    first_line: int
    lines: int
    offset: int
    """Of the first byte, in the backing."""
    size: int
    marks: array[int]
    """Offsets from the beginning of the block, of lines 0, `STRIDE`, 2 `STRIDE` and so on."""
    codes: pl.Series
    times: pl.Series
    """Seconds since 1970 on the log's own clock; null before the first time of a source."""
    version: int = 0
    extra: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """Further records that begin on a line, by its place in the block: their codes."""

    @property
    def last_line(self) -> int:
        """Number of the last line."""
        return self.first_line + self.lines - 1

    def span(self, line: int, count: int) -> tuple[int, int, int]:
        """Where to read lines from: offset, bytes, and how many lines to skip there."""
        place = line - self.first_line
        mark = place // STRIDE
        end = (place + count - 1) // STRIDE + 1
        begin = self.marks[mark]
        stop = self.marks[end] if end < len(self.marks) else self.size
        return self.offset + begin, stop - begin, place - mark * STRIDE

    def joined(self, later: LineBlock) -> LineBlock:
        """This block and the one right behind it, whose marks were made to fit, as one."""
        shift = later.offset - self.offset
        marks = array("Q", self.marks)
        marks.extend(mark + shift for mark in later.marks)
        moved = {place + self.lines: codes for place, codes in later.extra.items()}
        return replace(
            self,
            lines=self.lines + later.lines,
            size=shift + later.size,
            marks=marks,
            codes=pl.concat([self.codes, later.codes]),
            times=pl.concat([self.times, later.times]),
            version=self.version + 1,
            extra={**self.extra, **moved},
        )


def marks_of(data: bytes, frame: pl.DataFrame | None = None, before: int = 0) -> array[int]:
    """Where every `STRIDE`-th line of these bytes begins.

    `frame` holds the same lines in a column `line`, if that is known already; `before` lines
    stand in front of these in their block.
    """
    first = -before % STRIDE
    if frame is not None:
        ends = (pl.col("line").str.len_bytes() + 1).cum_sum()
        begins = frame.select(begin=ends.shift(1, fill_value=0), end=ends)
        if frame.height and int(begins["end"][-1]) in (len(data), len(data) + 1):
            return array("Q", begins["begin"].gather_every(STRIDE, first).to_list())
    # polars leaves out carriage returns and replaced bytes, so that lengths would be wrong.
    begin, found = 0, array("Q")
    for number, line in enumerate(data.removesuffix(b"\n").split(b"\n")):
        if number % STRIDE == first:
            found.append(begin)
        begin += len(line) + 1
    return found
