"""What comes out of a physical line, and the parts of lines that wait for their rest."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime

from forensics.reading.glued import split_glued, starts_record
from forensics.reading.wrapper_kinds import Wrapper

_MAX_PARTS = 1024
"""Parts come in 16 KiB or so; more than this is no line that anyone wrote."""

_REPEATED = re.compile(r" ?\[repeated (\d{1,9})x across cluster\](?: \(Ray deduplicates .*)?$")


@dataclass(slots=True)
class Piece:
    """One stretch of text that a program wrote, with what its wrappers told.

    `time` is the wrapper's clock, aware if it names a zone; a time in the text itself is better.
    """

    line: int
    text: str
    time: datetime | None = None
    node: str | None = None
    """Service, pod, host, task or actor that wrote it; the innermost if several are named."""
    stream: str | None = None
    repeated: int = 1
    """How many equal lines Ray folded into this one, as far as it says so."""
    glued: bool = False
    """It began in the middle of a line, right behind other text."""


@dataclass(slots=True)
class Line:
    """A line on its way through the wrappers."""

    number: int
    text: str
    stack: tuple[Wrapper, ...] = ()
    time: str | None = None
    node: str | None = None
    stream: str | None = None
    part: bool | None = None
    """It is a part whose rest follows (true) or the last part (false), if parts are marked."""

    def sibling(self, text: str, stack: tuple[Wrapper, ...]) -> Line:
        """Other text of the same physical line, which keeps what the wrappers told."""
        return Line(self.number, text, stack, self.time, self.node, self.stream)


class Parts:
    """Lines that a container runtime wrote in parts; each node and stream has its own."""

    def __init__(self) -> None:
        self._open: dict[tuple[str | None, str | None], list[Line]] = {}

    def join(self, line: Line) -> Line | None:
        """Hold a part, or complete the parts held; returns parts that turn out not to go on."""
        key = (line.node, line.stream)
        if not line.part and key not in self._open:
            return None
        parts = self._open.pop(key, [])
        cut_off = None
        if parts and starts_record(line.text):
            # What a program left unfinished when it died; this line is of its next start.
            cut_off, parts = _joined(parts), []
        parts.append(replace(line, part=None))
        if line.part and len(parts) < _MAX_PARTS:
            self._open[key] = parts
            return cut_off
        whole = _joined(parts)
        line.number, line.time, line.text, line.part = whole.number, whole.time, whole.text, False
        return cut_off

    def release(self) -> list[Line]:
        """Give what is still held, in the order of the lines."""
        held = sorted(map(_joined, self._open.values()), key=lambda line: line.number)
        self._open = {}
        return held


def _joined(parts: list[Line]) -> Line:
    return replace(parts[0], text="".join(part.text for part in parts))


def columns(text: str) -> list[str]:
    r"""What `\r` separates; a terminal would show only the last."""
    if "\r" not in text:
        return [text]
    return [part for part in text.split("\r") if part.strip()] or [""]


def finish(line: Line) -> list[Piece]:
    """The pieces of a line whose wrappers are off."""
    text, repeated = line.text, 1
    if "x across cluster]" in text and (match := _REPEATED.search(text)):
        text, repeated = text[: match.start()], int(match[1])
    time = _parse_time(line.time) if line.time else None
    return [
        Piece(line.number, part, time, line.node, line.stream, repeated, place > 0)
        for place, part in enumerate(split_glued(text))
    ]


def _parse_time(text: str) -> datetime | None:
    try:
        if text[0].isalpha():
            return datetime.strptime(text, "%a %b %d %H:%M:%S %Y")
        return datetime.fromisoformat(text)
    except ValueError:
        return None
