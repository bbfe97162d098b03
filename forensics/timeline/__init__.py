"""The timeline: typed events of one source in reading order, from blocks of lines.

`SourceParser` takes blocks of any size and gives chunks; however the input is cut, the events are
the same. Routine serving lines of large blocks travel columnar (`Chunk.serving`), everything else
as `Event`.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forensics.events import Event
from forensics.grammar import Grammar
from forensics.reading import SAMPLE_LINES, Block, Unwrapper, detect
from forensics.timeline.assembly import Assembler

if TYPE_CHECKING:
    import polars as pl

    from forensics.timeline.lanes import Lanes, Sorted

ROUTINE = frozenset({"decode_batch", "prefill_batch", "http_access"})
"""Kinds of routine serving lines: kept as rows, not as events."""

_FAIR_SHARE = 0.3
"""Of the lines of a text without SGLang's heads, from which it counts as a log."""

_WORTH_LANES = 256 * 1024
"""Bytes of a block from which sorting it into lanes is faster than reading line by line."""


@dataclass(frozen=True, slots=True)
class Routine:
    """Routine lines of one block: their rows, and how many there were of each kind."""

    rows: pl.DataFrame
    counts: dict[str, int]
    first_line: int
    last_line: int


@dataclass(slots=True)
class Chunk:
    """What one or more blocks gave: finished events in order, and rows of routine lines."""

    events: list[Event] = field(default_factory=list)
    serving: list[Routine] = field(default_factory=list)


@dataclass(slots=True)
class Tally:
    """How much of a source was read and understood, in physical lines."""

    lines: int = 0
    blank: int = 0
    recognised: int = 0


class SourceParser:
    """Reads one source, block by block.

    `sample_lines`: the lines from which its wrappers are recognised; with 0 they are learnt on
    the way, and the first lines may keep them. `lanes_from`: the bytes of a block from which it is
    sorted into lanes; None: where that pays, the time to load polars included.
    """

    def __init__(
        self,
        source: int,
        grammar: Grammar,
        *,
        lanes: bool = True,
        sample_lines: int = SAMPLE_LINES,
        lanes_from: int | None = None,
    ) -> None:
        self.tally = Tally()
        self.notices: list[str] = []
        """What the user should know of lines that were not read whole."""
        self.span_s = 1
        """Seconds over which rows of routine lines are summed up."""
        self.unknown: Counter[str] = Counter()
        self._source = source
        self._grammar = grammar
        self._use_lanes = lanes
        self._sample_lines = sample_lines
        self._lanes_from = lanes_from
        self._assembler = Assembler(source, grammar)
        self._unwrapper: Unwrapper | None = None
        self._lanes: Lanes | None = None
        self._held: list[Block] = []
        self._held_lines = 0
        self._hot_lines = 0

    @property
    def knows_wrappers(self) -> bool:
        """Whether enough lines were seen to know what stands around every line."""
        return self._unwrapper is not None

    @property
    def is_log(self) -> bool:
        """Whether this is a log of SGLang, or of what runs beside it, beyond doubt.

        A single phrase that a rule knows also occurs in prose: without a head of SGLang's own a
        fair share of the lines must be known.
        """
        if self._assembler.framed or self._hot_lines:
            return True
        lines = self.tally.lines - self.tally.blank
        return self._assembler.anchors > _FAIR_SHARE * lines

    @property
    def wrapper(self) -> str | None:
        """The wrappers found around every line, in words."""
        return self._unwrapper.name if self._unwrapper else None

    def prepare(self, block: Block, thin: int = 1) -> Block | Sorted:
        """Sort a large block into lanes ahead of `feed`; it may run in another thread.

        With `thin`, one routine line in so many is read in full and stands for the others.

        A block that is not worth it, or that comes before the wrappers are known, stays as it is.
        """
        if self._unwrapper is None or not self._worth_lanes(block):
            return block
        return self._sorter().sort(block.data, self.span_s, thin)

    def feed(self, block: Block | Sorted) -> Chunk:
        """Take one block of complete lines, as it is or prepared."""
        if self._unwrapper is None:
            assert isinstance(block, Block)
            self._held.append(block)
            self._held_lines += block.data.count(b"\n")
            if self._held_lines < self._sample_lines:
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

    def peek(self) -> Chunk:
        """What `finish` would give now, while the source goes on; its events may still grow.

        Parts of a line that wait for their rest are not in it, nor is anything before
        `knows_wrappers`.
        """
        return Chunk(self._assembler.peek())

    def _begin(self) -> Chunk:
        sample: list[bytes] = []
        count = self._sample_lines
        for block in self._held:
            sample += block.data.removesuffix(b"\n").split(b"\n", count)[:count]
        self._unwrapper = detect([raw.decode("utf-8", "replace") for raw in sample[:count]])
        chunk, held = Chunk(), self._held
        self._held = []
        for block in held:
            self._read(block, chunk)
        return chunk

    def _read(self, block: Block | Sorted, chunk: Chunk) -> None:
        assert self._unwrapper is not None
        prepared = self.prepare(block) if isinstance(block, Block) else block
        if isinstance(prepared, Block):
            lines = self._lines(prepared)
        else:
            lines = self._rare(prepared, chunk)
        unwrap, add = self._unwrapper.pieces, self._assembler.add
        for number, text in lines:
            for piece in unwrap(number, text):
                chunk.events += add(piece)
        self._count(self._assembler.take_tally())

    def _worth_lanes(self, block: Block) -> bool:
        assert self._unwrapper is not None
        large = len(block.data) >= (self._lanes_from or _WORTH_LANES)
        return self._use_lanes and large and not block.cut and self._unwrapper.bulk_ok

    def _sorter(self) -> Lanes:
        from forensics.timeline.lanes import Lanes

        if self._lanes is None:
            assert self._unwrapper is not None
            self._lanes = Lanes(self._grammar, self._unwrapper.hot_prefix)
        return self._lanes

    def _lines(self, block: Block) -> list[tuple[int, str]]:
        """Every line of a block with its number."""
        texts = block.data.decode("utf-8", "replace").split("\n")
        if texts[-1] == "":
            texts.pop()
        self.notices += [cut.notice(self.tally.lines) for cut in block.cut]
        first = self.tally.lines + 1
        self.tally.lines += len(texts)
        return list(enumerate(texts, start=first))

    def _rare(self, found: Sorted, chunk: Chunk) -> list[tuple[int, str]]:
        """The rare lines of a sorted block; its routine lines go to the chunk as rows."""
        import polars as pl

        before = self.tally.lines
        self.tally.lines += found.lines
        self.tally.recognised += found.hot_lines
        self._hot_lines += found.hot_lines
        if found.hot.height:
            rows = found.hot.with_columns(pl.col("line") + before)
            chunk.serving.append(Routine(rows, found.counts, before + 1, self.tally.lines))
        return [(before + number, text) for number, text in found.rare]

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


_SORTERS = 2
"""Blocks that are sorted at once: polars leaves the second core idle between its steps."""

_IN_FULL = 5
"""Blocks at the beginning of a source of which every routine line is read in full."""

_THIN = 8
"""Of later blocks, but for the last one, one routine line in so many is."""


def ahead(parser: SourceParser, blocks: Iterable[Block]) -> Iterator[Block | Sorted]:
    """Blocks ready for `feed`: while one is fed, the next ones are sorted in other threads."""
    with ThreadPoolExecutor(_SORTERS) as pool:
        waiting: deque[Future[Block | Sorted]] = deque()
        for place, block, is_last in _with_end(blocks):
            if not parser.knows_wrappers:
                yield block
                continue
            thin = 1 if place < _IN_FULL or is_last else _THIN
            waiting.append(pool.submit(parser.prepare, block, thin))
            if len(waiting) > _SORTERS:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _with_end(blocks: Iterable[Block]) -> Iterator[tuple[int, Block, bool]]:
    """Each block with its place and whether it is the last one."""
    held: Block | None = None
    place = 0
    for block in blocks:
        if held is not None:
            yield place, held, False
            place += 1
        held = block
    if held is not None:
        yield place, held, True
