"""One source of a live session: bytes in any portions, events as soon as their line is whole."""

from __future__ import annotations

from collections import Counter

from forensics.events import Event
from forensics.grammar import load
from forensics.incident import IncidentBuilder, SourceFacts
from forensics.pipeline import take_tally
from forensics.reading import SAMPLE_LINES, LineCutter
from forensics.timeline import Chunk, SourceParser

_HEAD_BYTES = 8 << 20
"""A beginning longer than this is no longer read anew, however few lines it has."""

_LANES_FROM = 32 << 10
"""With polars loaded, lanes are faster from some 200 lines on."""

_OPEN_BYTES = 4096
"""How much of an unfinished line is kept to look at."""


class LiveSource:
    """Reads one source into a builder.

    `analyze` settles what stands around every line from the first `SAMPLE_LINES` lines, so until
    a source has as many, its lines are read anew whenever they are looked at; afterwards every
    line is read once.
    """

    def __init__(self, index: int, path: str) -> None:
        self.facts = SourceFacts(path)
        self.index = index
        self.open_line = b""
        """The end of the line that is still being written: a progress bar, often."""
        self._cutter = LineCutter()
        self._parser = SourceParser(index, load(), lanes_from=_LANES_FROM)
        self._head: bytearray | None = bytearray()
        self._scout: SourceParser | None = SourceParser(index, load(), sample_lines=0)
        self._scout_cutter = LineCutter()
        self._seen = 0

    def feed(self, data: bytes, builder: IncidentBuilder) -> list[Event]:
        """Take more bytes; returns the events that begin in them, as far as they can be told."""
        self.facts.bytes += len(data)
        newline = data.rfind(b"\n")
        self.open_line = (self.open_line + data if newline < 0 else data[newline + 1 :])[
            -_OPEN_BYTES:
        ]
        if self._head is None:
            return self._new(self._read(data, builder), self._parser)
        self._head += data
        assert self._scout is not None
        block = self._scout_cutter.feed(data)
        begun = self._new(self._scout.feed(block) if block else Chunk(), self._scout)
        if self._head.count(b"\n") >= SAMPLE_LINES or len(self._head) > _HEAD_BYTES:
            data = bytes(self._head)
            self._head = self._scout = None
            self._read(data, builder)
        return begun

    @property
    def lines(self) -> int:
        """Whole lines read so far."""
        return self._parser.tally.lines if self._head is None else self._head.count(b"\n")

    def look_ahead(self, fork: IncidentBuilder) -> Counter[str]:
        """Put into a fork what is still open; returns the unknown shapes of the source so far."""
        parser = self._parser
        if self._head is not None:
            whole = bytes(self._head[: self._head.rfind(b"\n") + 1])
            cutter = LineCutter()
            parser = SourceParser(self.index, load())
            for block in (cutter.feed(whole), cutter.flush()):
                if block:
                    fork.add(self.index, parser.feed(block), parser.runs_at())
            fork.add(self.index, parser.finish(), parser.runs_at())
        elif parser.knows_wrappers:
            fork.add(self.index, parser.peek(), parser.runs_at())
        take_tally(self.facts, parser, [])
        return parser.unknown

    def end(self, builder: IncidentBuilder) -> None:
        """The source is over: its last line is whole though it has no newline."""
        if self.open_line:
            self.feed(b"\n", builder)

    def _read(self, data: bytes, builder: IncidentBuilder) -> Chunk:
        block = self._cutter.feed(data)
        chunk = self._parser.feed(block) if block else Chunk()
        builder.add(self.index, chunk, self._parser.runs_at())
        return chunk

    def _new(self, chunk: Chunk, parser: SourceParser) -> list[Event]:
        events = chunk.events + (parser.peek().events if parser.knows_wrappers else [])
        begun = [event for event in events if event.line > self._seen]
        self._seen = max((event.line for event in begun), default=self._seen)
        return begun
