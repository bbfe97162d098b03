r"""Blocks of whole lines out of bytes that come in any portions.

Lines are counted by `\n` alone, as `sed -n` and editors do; `\r` is left in the text.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import dataclass

from forensics.reading.encodings import encoding_of

MAX_LINE_BYTES = 64 << 20
KEPT_LINE_BYTES = 1 << 20

Part = bytes | memoryview


@dataclass(frozen=True, slots=True)
class Cut:
    """A line that was too long to be kept whole."""

    place: int
    """Lines of its block before it."""
    size_bytes: int
    kept_bytes: int

    def notice(self, before: int) -> str:
        """What to tell the user, with so many lines before the block."""
        return (
            f"line {before + self.place + 1} is {self.size_bytes >> 20} MiB long: "
            f"only its first {self.kept_bytes >> 10} KiB were kept"
        )


@dataclass(slots=True)
class Block:
    """Whole lines in valid UTF-8; only the last line of a source may lack its newline.

    Its reader numbers the lines: counting them here would cost as much again.

    `offset` is the place of the first byte in the (decompressed) stream; for UTF-16 it counts the
    bytes as UTF-8. Offsets inside the block hold only if it was not `repaired`.
    """

    data: bytes
    offset: int
    repaired: bool = False
    """Bytes were replaced: invalid UTF-8, another encoding, or a line cut for its length."""
    stored: int | None = None
    """Bytes of the file that were read by then, compressed as it is; None for a pipe."""
    cut: tuple[Cut, ...] = ()
    """Lines of which only the beginning was kept."""

    def lines(self) -> list[str]:
        """The lines as text, without their newlines."""
        lines = self.data.decode().split("\n")
        if not lines[-1]:
            lines.pop()
        return lines


class LineCutter:
    """Turns portions of bytes into blocks; how the bytes are portioned never changes the lines.

    A line longer than `max_line_bytes` keeps its first `kept_line_bytes`, and its block says so.
    """

    def __init__(
        self,
        *,
        max_line_bytes: int = MAX_LINE_BYTES,
        kept_line_bytes: int = KEPT_LINE_BYTES,
    ) -> None:
        self._max = max_line_bytes
        self._kept = kept_line_bytes
        self._head: bytearray | None = bytearray()
        self._decoder: codecs.IncrementalDecoder | None = None
        self._offset = 0
        self._open: list[bytes] = []
        self._open_bytes = 0
        self._cuts: list[Cut] = []

    def feed(self, data: bytes) -> Block | None:
        """Take more bytes; returns the lines that they complete, if any."""
        if self._head is not None:
            self._head += data
            data = self._begin(final=False)
        if self._decoder is not None:
            data = self._decoder.decode(data).encode()
        return self._cut(data)

    def flush(self) -> Block | None:
        """End of the input: returns what is left, a last line without newline included."""
        data = self._begin(final=True) if self._head is not None else b""
        if self._decoder is not None:
            data = self._decoder.decode(data, final=True).encode()
        return self._cut(data, final=True)

    def _begin(self, *, final: bool) -> bytes:
        """Settle the encoding as soon as the first bytes tell it; until then nothing goes on."""
        head = bytes(self._head or b"")
        known = encoding_of(head, final=final)
        if known is None:
            return b""
        encoding, bom_bytes = known
        if encoding != "utf-8":
            self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        else:
            self._offset = bom_bytes
        self._head = None
        return head[bom_bytes:]

    def _cut(self, data: bytes, *, final: bool = False) -> Block | None:
        complete: list[Part] = []
        raw_bytes = 0
        # No slice is longer than a line may be, so only a line that spans slices can be too long.
        for start in range(0, len(data), self._max):
            part = data if len(data) <= self._max else data[start : start + self._max]
            raw_bytes += self._cut_part(part, complete)
        if final and self._open:
            raw_bytes += self._open_bytes
            complete.append(self._close_line(complete))
        return self._block(complete, raw_bytes) if complete else None

    def _cut_part(self, part: bytes, complete: list[Part]) -> int:
        """Move the whole lines of `part` to `complete`; returns how many raw bytes they took."""
        end = part.rfind(b"\n") + 1
        if not end:
            self._hold(part)
            return 0
        raw_bytes = self._open_bytes + end
        begin = 0
        if self._open:
            begin = part.find(b"\n") + 1
            self._hold(part[:begin])
            complete.append(self._close_line(complete, newline=b"\n"))
        if begin < end:
            # A view: the lines are copied once, when the block is put together.
            complete.append(memoryview(part)[begin:end] if end - begin < len(part) else part)
        if end < len(part):
            self._hold(part[end:])
        return raw_bytes

    def _hold(self, part: bytes) -> None:
        """Keep part of an unfinished line; of a line too long only its beginning."""
        within = self._open_bytes <= self._max
        self._open_bytes += len(part)
        if within:
            self._open.append(part)
            if self._open_bytes > self._max:
                self._open = [b"".join(self._open)[: self._kept]]

    def _close_line(self, before: Sequence[Part], newline: bytes = b"") -> bytes:
        line = b"".join(self._open)
        if self._open_bytes > self._max:
            line = line.decode("utf-8", "ignore").encode().removesuffix(b"\n") + newline
            place = sum(bytes(done).count(b"\n") for done in before)
            self._cuts.append(Cut(place, self._open_bytes, self._kept))
        self._open = []
        self._open_bytes = 0
        return line

    def _block(self, complete: Sequence[Part], raw_bytes: int) -> Block:
        only = complete[0] if len(complete) == 1 else None
        data = only if isinstance(only, bytes) else b"".join(complete)
        size = len(data)
        data, repaired = _valid(data)
        repaired = repaired or size != raw_bytes or self._decoder is not None
        block = Block(data, self._offset, repaired, cut=tuple(self._cuts))
        self._cuts = []
        self._offset += raw_bytes
        return block


def _valid(data: bytes) -> tuple[bytes, bool]:
    """The data in valid UTF-8, and whether that took a repair."""
    if data.isascii():
        return data, False
    try:
        data.decode()
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace").encode(), True
    return data, False
