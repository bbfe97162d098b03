"""The index of one source, built block by block and usable while it grows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime

import polars as pl

from forensics.events import Event
from forensics.reading import SAMPLE_LINES
from forensics.tui.store.backing import Backing
from forensics.tui.store.block import LineBlock, marks_of
from forensics.tui.store.classes import PART, ClassTable, grade
from forensics.tui.store.records import RecordFinder

_JOIN_BELOW = 1 << 20
"""Bytes of a block up to which the lines behind it are put into it."""

MOST_READ_BYTES = 64 << 20
"""Bytes that are read at once at most: lines behind a longer stretch are not shown."""

_EPOCH = datetime(1970, 1, 1)
_FARTHEST_S = 2**31 - 1


class SourceIndex:
    """What is known of the lines of one source. One thread adds; any thread reads."""

    def __init__(
        self,
        source: int,
        table: ClassTable,
        changed: Callable[[], object],
        *,
        sample_lines: int = SAMPLE_LINES,
    ) -> None:
        self.source = source
        self.backing: Backing | None = None
        self.blocks: list[LineBlock] = []
        self.complete = False
        """Everything that there is has been read."""
        self.stored = 0
        """Bytes of the source that were read by now, compressed as it is."""
        self.notice = ""
        """What the user should know about the source, in one line."""
        self._table = table
        self._changed = changed
        self._finder = RecordFinder(source, table, sample_lines)
        self._last_time: int | None = None
        self._timed = 0

    @property
    def lines(self) -> int:
        """How many lines are indexed."""
        return self.blocks[-1].last_line if self.blocks else 0

    @property
    def prefix(self) -> str | None:
        """The expression for what stands in front of every line, if anything does."""
        return self._finder.prefix

    def add(self, data: bytes, offset: int, raw: bytes) -> None:
        """Take the next whole lines in valid UTF-8; `raw` are the bytes of the backing there."""
        count = data.count(b"\n") + (not data.endswith(b"\n"))
        found = self._finder.bulk(data, self.lines + 1)
        grown = self.blocks[-1] if self.blocks and self.blocks[-1].size < _JOIN_BELOW else None
        frame = found.frame if found and raw is data else None
        fresh = LineBlock(
            source=self.source,
            first_line=self.lines + 1,
            lines=count,
            offset=offset,
            size=len(raw),
            marks=marks_of(raw, frame, grown.lines if grown else 0),
            codes=found.codes if found else pl.zeros(count, pl.UInt16, eager=True),
            times=found.times if found else pl.repeat(None, count, dtype=pl.Int32, eager=True),
        )
        lines = found.rare if found else _numbered(data, self.lines + 1)
        events = self._finder.events(lines)
        if grown:
            self.blocks[-1] = grown.joined(fresh)
        else:
            self.blocks.append(fresh)
        self._mark(events)
        self._fill_times()
        self._changed()

    def settle(self) -> None:
        """Nothing more came for now: what is still open is shown as far as it is known."""
        self._mark(self._finder.open_events())
        self._changed()

    def finish(self, notice: str = "") -> None:
        """The source is over."""
        self._mark(self._finder.finish())
        self._fill_times()
        self.notice = notice
        self.complete = True
        self._changed()

    def block_of(self, line: int) -> LineBlock | None:
        """The block that holds a line."""
        number = self._number_of(line)
        return None if number is None else self.blocks[number]

    def read(self, line: int, count: int) -> list[bytes]:
        """The bytes of consecutive lines, without their newlines; fewer at the end."""
        found: list[bytes] = []
        while count > 0 and self.backing and (block := self.block_of(line)):
            some = min(count, block.last_line - line + 1)
            offset, size, skip = block.span(line, some)
            data = self.backing.read(offset, min(size, MOST_READ_BYTES)).removesuffix(b"\n")
            texts = data.split(b"\n")[skip : skip + some]
            found += texts
            if len(texts) < some:
                break  # the file was cut since
            line, count = line + some, count - some
        return found

    def _number_of(self, line: int) -> int | None:
        blocks = self.blocks
        low, high = 0, len(blocks)
        while low < high:
            middle = (low + high) // 2
            if blocks[middle].last_line < line:
                low = middle + 1
            else:
                high = middle
        return low if low < len(blocks) and line >= 1 else None

    def _mark(self, events: Iterable[Event]) -> None:
        """Set class and time of the lines on which records begin."""
        found: dict[int, list[Event]] = defaultdict(list)
        for event in events:
            number = self._number_of(event.line)
            if number is not None:
                found[number].append(event)
        for number, some in found.items():
            self.blocks[number] = self._marked(self.blocks[number], some)

    def _marked(self, block: LineBlock, events: list[Event]) -> LineBlock:
        """The block with the classes of these records."""
        places = list(dict.fromkeys(event.line - block.first_line for event in events))
        known = block.codes.gather(places).to_list()
        codes = {place: _without_part(code) for place, code in zip(places, known, strict=True)}
        times: dict[int, int | None] = {}
        extra = dict(block.extra)
        for event in events:
            place = event.line - block.first_line
            code = self._table.of_event(event)
            on_line = self._with([*codes[place], *extra.get(place, ())], code)
            codes[place] = on_line[:1]
            if len(on_line) > 1:
                extra[place] = tuple(on_line[1:])
            if on_line[0] == code or place not in times:
                times[place] = _seconds(event.time)
        firsts = [codes[place][0] for place in places]
        stamps = [times[place] for place in places]
        return replace(
            block,
            codes=block.codes.clone().scatter(places, pl.Series(firsts, dtype=pl.UInt16)),
            times=block.times.clone().scatter(places, pl.Series(stamps, dtype=pl.Int32)),
            version=block.version + 1,
            extra=extra,
        )

    def _with(self, codes: list[int], code: int) -> list[int]:
        """The codes of a line with one more, the gravest first.

        What is known better now takes the place of what was known before.
        """
        entry = self._table.entries[code]
        others = [
            old
            for old in codes
            if (self._table.entries[old].rank, self._table.entries[old].kind)
            != (entry.rank, entry.kind)
        ]
        return sorted([*others, code], key=lambda one: -grade(self._table.entries[one].severity))

    def _fill_times(self) -> None:
        """Lines without a time of their own have that of the line before them."""
        for number in range(self._timed, len(self.blocks)):
            block = self.blocks[number]
            times = block.times.fill_null(strategy="forward")
            if self._last_time is not None and times.null_count():
                times = times.fill_null(self._last_time)
            self.blocks[number] = replace(block, times=times)
            if number < len(self.blocks) - 1:
                self._last_time, self._timed = times[-1], number + 1


def _numbered(data: bytes, first: int) -> list[tuple[int, str]]:
    texts = data.decode("utf-8", "replace").removesuffix("\n").split("\n")
    return list(enumerate(texts, start=first))


def _without_part(code: int) -> list[int]:
    return [] if code == PART else [code]


def _seconds(time: datetime | None) -> int | None:
    if time is None:
        return None
    passed = int((time.replace(tzinfo=None) - _EPOCH).total_seconds())
    return passed if abs(passed) <= _FARTHEST_S else None
