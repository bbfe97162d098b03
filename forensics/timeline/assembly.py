"""From records to events: continuation lines join their record, tracebacks find their rank.

The rules of the log reference: a record ends at the next line that begins one; a traceback's
lines carry no rank and belong to the record that announced it; ranks interleave line by line.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from dataclasses import dataclass

from forensics.events import OTHER, Event
from forensics.grammar import Grammar
from forensics.reading import Piece
from forensics.timeline.records import Record, RecordReader
from forensics.timeline.runs import RunTracker
from forensics.timeline.tally import LineTally
from forensics.timeline.tracebacks import (
    BEGIN,
    TracebackBuilder,
    is_exception_line,
    split_exception,
)

MULTILINE = re.compile(
    r"exception|traceback|retract|failed|failure|token_pool|leak|pyspy|faulthandler|warning"
    r"|crash|dead|died|watchdog|nccl|error|sigquit|argparse|usage|smi|frame|terminate"
)
"""Kinds whose records run over several lines that have no form of their own."""

_UNMISTAKABLE = frozenset(
    {"server_args_dump", "ready", "load_weight_begin", "load_weight_end", "memory_pool_end"}
    | {"capture_begin", "capture_end", "scheduler_exception", "kernel_oom_kill", "launch_command"}
)
_REFUSALS = frozenset({"unrecognized_arguments", "ambiguous_option", "argument_error"})
_PATIENCE = 400
_LONGEST_TEXT = 8_192
_ANNOUNCED_IN = 400
"""Characters at the end of a record in which it may announce a traceback."""
_NEVER_ANNOUNCE = frozenset(
    {"server_args_dump", "launch_command", "http_access", "request_received", "request_finished"}
)
_ANNOUNCES = re.compile(r"(?i):\s*$|exception|error|fail|crash")
_TP = re.compile(r"(?:^| )TP(\d+)(?: |$)")


@dataclass(slots=True)
class _Open:
    event: Event
    builder: TracebackBuilder
    torn: str | None
    age: int = 0


class Assembler:
    """Makes the events of one source. An event is given out when nothing can join it any more."""

    def __init__(self, source: int, grammar: Grammar) -> None:
        self.tracker = RunTracker()
        self._source = source
        self._grammar = grammar
        self._reader = RecordReader(grammar)
        self._waiting: deque[Event] = deque()
        self._open: list[_Open] = []
        self._tags: dict[str, str | None] = {}
        self._tally = LineTally()
        self.framed = 0
        """Records of a known kind behind SGLang's own head, or that nothing else prints."""
        self.anchors = 0
        """Lines of tracebacks with frames, and records that only servers print."""

    def add(self, piece: Piece) -> list[Event]:
        """Take one piece of a line; returns the events that are finished now."""
        record = self._reader.read(piece)
        if record.rank and (found := _TP.search(record.rank)):
            # Replicas number their processes alike: such a number names nobody.
            known = self._tags.setdefault(f"rank{found[1]}", record.rank)
            if known != record.rank:
                self._tags[f"rank{found[1]}"] = None
        if record.headed:
            self._age(record)
            self._begin(record)
        elif not record.message.strip():
            self._blank(record)
            self._tally.saw(record.line, blank=True)
        else:
            self._unheaded(record)
        return self._finished()

    def take_tally(self) -> tuple[int, int, Counter[str]]:
        """Blank lines, recognised lines and unknown texts since the last call."""
        return self._tally.take()

    def flush(self) -> list[Event]:
        """The events that were still open at the end of the input."""
        for item in list(self._open):
            self._close(item)
        done = list(self._waiting)
        self._waiting.clear()
        self._tally.turn(-1)
        return done

    def peek(self) -> list[Event]:
        """The events that `flush` would give now; they may still grow."""
        return list(self._waiting)

    def _begin(self, record: Record) -> Event:
        event = self._reader.event(record, self._source)
        if record.torn:
            event.fields["global_rank"] = int(record.torn.removeprefix("rank"))
            event.rank = event.rank or self._tags.get(record.torn)
        self.tracker.mark(event, record.early)
        self._waiting.append(event)
        known = self._grammar.understands(event.kind)
        self._tally.saw(record.line, known=known, text=record.message)
        self.framed += (record.own and event.kind != OTHER) or _is_unmistakable(event)
        self.anchors += self._grammar.tells(event.kind)
        if record.message.rstrip().endswith(BEGIN):
            self._open_traceback(event, record)
        return event

    def _open_traceback(self, event: Event, record: Record) -> None:
        builder = TracebackBuilder(record.line)
        event.traceback = builder.traceback
        self._open.append(_Open(event, builder, record.torn))

    def _unheaded(self, record: Record) -> None:
        text = record.message.rstrip()
        if owner := self._owner(record, text):
            builder = owner.builder
            if not builder.complete or builder.chains(text) or not self._stands_alone(text):
                self._join(owner, record)
                return
            self._close(owner)
        if text.lstrip().startswith(BEGIN) or "Exception Group Traceback" in text:
            self._traceback(record)
        elif self._continues(record, text):
            last = self._waiting[-1]
            last.end_line = record.line
            known = self._grammar.understands(last.kind)
            self._tally.saw(record.line, known=known, text=record.message)
            if len(last.text) < _LONGEST_TEXT:
                last.text = f"{last.text}\n{record.text}"
        else:
            self._alone(record, text)

    def _alone(self, record: Record, text: str) -> None:
        """A line without a head that begins a record of its own."""
        event = self._begin(record)
        if event.kind == OTHER and is_exception_line(text):
            builder = TracebackBuilder(record.line)
            builder.traceback.chain[0].type, _ = split_exception(text)
            event.kind = "exception"
            self._tally.saw(record.line, known=True)
            self._add(builder, text, record.line)
            event.traceback = builder.traceback
            self._open.append(_Open(event, builder, record.torn))

    def _traceback(self, record: Record) -> None:
        last = self._waiting[-1] if self._waiting else None
        if (
            last is not None
            and last.traceback is None
            and record.node in (None, last.node)  # a container's prefix may be lost on this line
            and record.torn is None
            and record.line - last.end_line <= 2
            and last.kind not in _NEVER_ANNOUNCE
            and _ANNOUNCES.search(last.text[-_ANNOUNCED_IN:])
            and (last.kind != OTHER or last.level in (None, "ERROR", "CRITICAL"))
        ):
            self._open_traceback(last, record)
            last.end_line = record.line
            self._tally.saw(record.line, known=True)
            return
        event = self._begin(record)
        event.kind = "traceback"
        self._tally.saw(record.line, known=True)
        self.tracker.mark(event)
        if event.traceback is None:
            self._open_traceback(event, record)

    def _blank(self, record: Record) -> None:
        for item in reversed(self._open):
            if item.event.node == record.node and item.torn == record.torn:
                item.builder.add("", record.line)
                return

    def _owner(self, record: Record, text: str) -> _Open | None:
        """The open traceback that a line without a head belongs to."""
        near = [
            item
            for item in self._open
            if item.event.node == record.node
            and item.torn == record.torn
            and item.builder.takes(text)
        ]
        if len(near) < 2:
            return near[0] if near else None
        for item in near:
            item.event.uncertain = True
        follower = near[-1]
        for leader in near[:-1]:
            done = follower.builder.lines
            ahead = leader.builder.lines
            if len(ahead) > len(done) and ahead[len(done)] == text[:200]:
                return follower
        return near[0] if not near[0].builder.complete else follower

    def _join(self, owner: _Open, record: Record) -> None:
        self._add(owner.builder, record.message, record.line)
        self._tally.saw(record.line, known=True)
        owner.event.end_line = record.line
        owner.event.uncertain = owner.event.uncertain or owner.age > 0
        owner.age = 0

    def _add(self, builder: TracebackBuilder, text: str, line: int) -> None:
        """Hand a line to a traceback; an exception's message is known as soon as it is read."""
        builder.add(text, line)
        raised = builder.traceback.chain[-1]
        said = raised.message.split("\n")[0] if raised.line == line else ""
        if said and (match := self._grammar.match(said)):
            raised.kind, raised.fields = match.kind, dict(match.fields)

    def _stands_alone(self, text: str) -> bool:
        return not text[:1].isspace() and self._named(text)

    def _named(self, text: str) -> bool:
        """Whether a rule knows a line without a head for what it is, not by its topic."""
        match = self._grammar.match(text)
        return match is not None and self._grammar.understands(match.kind)

    def _continues(self, record: Record, text: str) -> bool:
        last = self._waiting[-1] if self._waiting else None
        if last is None or last.node != record.node or last.kind == OTHER:
            return False
        if record.line - last.end_line > 2 or record.torn or self._named(text):
            return False
        return text[:1].isspace() or bool(MULTILINE.search(last.kind))

    def _age(self, record: Record) -> None:
        for item in list(self._open):
            item.age += 1
            same = item.event.node == record.node
            if (item.builder.complete and same) or item.age > _PATIENCE:
                self._close(item)

    def _close(self, item: _Open) -> None:
        self._open.remove(item)
        if item.builder.traceback.frames:
            self.anchors += len(item.builder.lines)

    def _finished(self) -> list[Event]:
        done: list[Event] = []
        if len(self._waiting) < 2:
            return done
        busy = {id(item.event) for item in self._open}
        while len(self._waiting) > 1 and id(self._waiting[0]) not in busy:
            done.append(self._waiting.popleft())
        return done


def _is_unmistakable(event: Event) -> bool:
    """Whether a record needs no head to show what wrote it."""
    if event.kind in _REFUSALS:
        return "launch_server" in event.text or "sglang" in event.text
    return event.kind in _UNMISTAKABLE
