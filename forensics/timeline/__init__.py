"""The timeline: typed events of one source in reading order, from blocks of lines.

`SourceParser` takes blocks of any size and gives chunks; however the input is cut, the events are
the same. Routine serving lines of large blocks travel columnar (`Chunk.serving`), everything else
as `Event`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forensics.events import Event
from forensics.grammar import Grammar
from forensics.reading import SAMPLE_LINES, Block, Unwrapper, detect
from forensics.timeline.assembly import Assembler

if TYPE_CHECKING:
    import polars as pl

    from forensics.timeline.lanes import Lanes

ROUTINE = frozenset({"decode_batch", "prefill_batch", "http_access"})
"""Kinds of routine serving lines: kept as rows, not as events."""

_WORTH_LANES = 256 * 1024
"""Bytes of a block from which sorting it into lanes is faster than reading line by line."""


@dataclass(slots=True)
class Chunk:
    """What one or more blocks gave: finished events in order, and rows of routine lines."""

    events: list[Event] = field(default_factory=list)
    serving: list[pl.DataFrame] = field(default_factory=list)


@dataclass(slots=True)
class Tally:
    """How much of a source was read and understood, in physical lines."""

    lines: int = 0
    blank: int = 0
    recognised: int = 0


class SourceParser:
    """Reads one source, block by block."""

    def __init__(self, source: int, grammar: Grammar, *, lanes: bool = True) -> None:
        self.tally = Tally()
        self.unknown: Counter[str] = Counter()
        self._source = source
        self._grammar = grammar
        self._use_lanes = lanes
        self._assembler = Assembler(source, grammar)
        self._unwrapper: Unwrapper | None = None
        self._lanes: Lanes | None = None
        self._held: list[Block] = []
        self._held_lines = 0
        self._hot_lines = 0

    @property
    def is_log(self) -> bool:
        """Whether anything was recognised beyond doubt as a line of a log."""
        return self._assembler.sure > 0 or self._hot_lines > 0

    @property
    def wrapper(self) -> str | None:
        """The wrappers found around every line, in words."""
        return self._unwrapper.name if self._unwrapper else None

    def feed(self, block: Block) -> Chunk:
        """Take one block of complete lines."""
        if self._unwrapper is None:
            self._held.append(block)
            self._held_lines += block.data.count(b"\n")
            if self._held_lines < SAMPLE_LINES:
                return Chunk()
            return self._begin()
        chunk = Chunk()
        self._read(block, chunk)
        return chunk

    def finish(self) -> Chunk:
        """The events that were still open at the end of the source."""
        chunk = self._begin() if self._unwrapper is None else Chunk()
        assert self._unwrapper is not None
        for piece in self._unwrapper.flush():
            chunk.events += self._assembler.add(piece)
        chunk.events += self._assembler.flush()
        self._count(self._assembler.take_tally())
        return chunk

    def _begin(self) -> Chunk:
        sample: list[str] = []
        for block in self._held:
            sample += block.data.decode("utf-8", "replace").split("\n")[:SAMPLE_LINES]
        self._unwrapper = detect(sample[:SAMPLE_LINES])
        chunk, held = Chunk(), self._held
        self._held = []
        for block in held:
            self._read(block, chunk)
        return chunk

    def _read(self, block: Block, chunk: Chunk) -> None:
        assert self._unwrapper is not None
        if self._use_lanes and len(block.data) >= _WORTH_LANES and self._unwrapper.bulk_ok:
            lines = self._sort(block, chunk)
        else:
            texts = block.data.decode("utf-8", "replace").split("\n")
            if texts[-1] == "":
                texts.pop()
            self.tally.lines += len(texts)
            lines = list(enumerate(texts, start=block.first_line))
        unwrap, add = self._unwrapper.pieces, self._assembler.add
        for number, text in lines:
            for piece in unwrap(number, text):
                chunk.events += add(piece)
        self._count(self._assembler.take_tally())

    def _sort(self, block: Block, chunk: Chunk) -> list[tuple[int, str]]:
        """The rare lines of a large block; its routine lines go to the chunk as rows."""
        from forensics.timeline.lanes import Lanes

        if self._lanes is None:
            assert self._unwrapper is not None
            self._lanes = Lanes(self._grammar, self._unwrapper.hot_prefix)
        found = self._lanes.sort(block.data, block.first_line)
        self.tally.lines += found.lines
        self.tally.recognised += found.hot_lines
        self._hot_lines += found.hot_lines
        if found.hot.height:
            chunk.serving.append(found.hot)
        return found.rare

    def _count(self, seen: tuple[int, int, Counter[str]]) -> None:
        blank, recognised, unknown = seen
        self.tally.blank += blank
        self.tally.recognised += recognised
        self.unknown.update(unknown)
        if len(self.unknown) > 5_000:
            self.unknown = Counter(dict(self.unknown.most_common(2_000)))

    def runs_at(self) -> list[tuple[int, int]]:
        """First line and number of each run of this source, in order."""
        return list(self._assembler.tracker.starts)
