"""From one piece of a line to a record: its head is cut off, its message gets a kind.

A record is what one program wrote at once. Pieces without a head may continue the record before
them; `forensics.timeline.assembly` decides that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from forensics.events import OTHER, Event
from forensics.grammar import Grammar
from forensics.reading import Piece
from forensics.timeline.clock import Clock

_HEAD = re.compile(r"[\[(]|\d{4}-|(?:DEBUG|INFO|WARN|ERROR|CRITICAL|FATAL)|[IWEF]\d{4} ")
"""How every head begins; a cheap test before the rules are tried."""

_SEVERITIES = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "FATAL"}
_DEEPEST = 4
_OWN = frozenset({"sglang_head", "old_head", "formatter_head"})


@dataclass(slots=True)
class Record:
    """A piece with its head read: `message` is what follows the head."""

    line: int
    text: str
    message: str
    time: datetime | None
    rank: str | None
    level: str | None
    headed: bool
    """It has a head of SGLang or of a logger, so it begins a record."""
    torn: str | None = None
    """`[rank5]:` alone in front: the line belongs to that process's traceback or message."""
    early: bool = False
    own: bool = False
    """Its head is one that SGLang's own logging prints."""
    node: str | None = None
    logger: str | None = None


class RecordReader:
    """Reads the records of one source, in order."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._clock = Clock()

    def read(self, piece: Piece) -> Record:
        """The record that a piece begins or continues."""
        text = piece.text
        record = Record(piece.line, text, text, None, None, None, headed=False, node=piece.node)
        stamped = None
        for _ in range(_DEEPEST):
            if not _HEAD.match(record.message) or not (head := self._grammar.head(record.message)):
                break
            fields = head.fields
            if "clock" in fields and stamped is None:
                stamped = fields
            self._take(record, head.kind, dict(fields))
        record.time = self._clock.read(stamped, piece.time)
        return record

    @staticmethod
    def _take(record: Record, kind: str, fields: dict[str, object]) -> None:
        record.message = str(fields.get("message") or "")
        rank = fields.get("rank") or fields.get("old_rank")
        if rank and record.rank is None:
            record.rank = str(rank)
        if level := fields.get("level") or _SEVERITIES.get(str(fields.get("severity"))):
            record.level = "WARNING" if level == "WARN" else str(level)
        if (process := fields.get("global_rank")) is not None:
            record.torn = f"rank{process}"
        if logger := fields.get("logger"):
            record.logger = str(logger)
        record.own = record.own or kind in _OWN
        record.early = record.early or kind == "early_head"
        record.headed = record.headed or kind != "ranked_head"

    def event(self, record: Record, source: int) -> Event:
        """A new event for a record, with its kind."""
        match = self._grammar.match(record.message.rstrip()) if record.message else None
        return Event(
            source=source,
            line=record.line,
            end_line=record.line,
            kind=match.kind if match else OTHER,
            text=record.message,
            time=record.time,
            rank=record.rank,
            node=record.node,
            level=record.level,
            fields=dict(match.fields) if match else {},
        )
