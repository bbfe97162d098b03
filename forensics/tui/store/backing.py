"""Where the text of the lines is: the log itself, or a spool for what cannot be read twice.

Files are read with `pread`, not mapped: a log that is cut while it is shown must not end the
program. Archives, pipes and other encodings go through a spool: an unnamed temporary file of
compressed pieces, of which the last few used are kept in memory.
"""

from __future__ import annotations

import os
import tempfile
import threading
from bisect import bisect_right
from collections import OrderedDict
from typing import Protocol

import zstandard

_PIECE_BYTES = 1 << 20
_KEPT_PIECES = 8
_LEVEL = 1


class Backing(Protocol):
    """The bytes of a source, to be read again at any place."""

    def read(self, offset: int, size: int) -> bytes:
        """At most `size` bytes from an offset; fewer at the end, or where the file was cut."""

    def close(self) -> None:
        """Give the file up; later reads find nothing."""


class FileBytes:
    """A plain file on disk."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def read(self, offset: int, size: int) -> bytes:
        """See `Backing`."""
        if self._fd < 0:
            return b""
        parts: list[bytes] = []
        while size > 0 and (part := os.pread(self._fd, size, offset)):
            parts.append(part)
            offset += len(part)
            size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """See `Backing`."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Spool:
    """Bytes put away as they come; at most `_KEPT_PIECES` MiB of them are in memory."""

    def __init__(self) -> None:
        self.size = 0
        """Bytes taken so far."""
        self._file = tempfile.TemporaryFile(prefix="forensics-")  # noqa: SIM115 (open as long as it)
        self._starts: list[int] = []
        self._places: list[tuple[int, int]] = []
        self._stored = 0
        self._tail = bytearray()
        self._recent: OrderedDict[int, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def append(self, data: bytes) -> int:
        """Take more bytes; gives the offset at which they begin."""
        with self._lock:
            begin = self.size
            self._tail += data
            self.size += len(data)
            while len(self._tail) >= _PIECE_BYTES:
                self._put(bytes(self._tail[:_PIECE_BYTES]))
                del self._tail[:_PIECE_BYTES]
            return begin

    def read(self, offset: int, size: int) -> bytes:
        """See `Backing`."""
        parts: list[bytes] = []
        with self._lock:
            while size > 0 and offset < self.size and not self._file.closed:
                piece, start = self._piece(offset)
                part = piece[offset - start : offset - start + size]
                parts.append(part)
                offset += len(part)
                size -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def close(self) -> None:
        """See `Backing`."""
        with self._lock:
            self._file.close()

    def _put(self, piece: bytes) -> None:
        stored = zstandard.ZstdCompressor(level=_LEVEL).compress(piece)
        os.pwrite(self._file.fileno(), stored, self._stored)
        self._starts.append(self.size - len(self._tail))
        self._places.append((self._stored, len(stored)))
        self._stored += len(stored)

    def _piece(self, offset: int) -> tuple[bytes, int]:
        """The piece that holds an offset, and where it begins."""
        begin_of_tail = self.size - len(self._tail)
        if offset >= begin_of_tail:
            return bytes(self._tail), begin_of_tail
        number = bisect_right(self._starts, offset) - 1
        if number not in self._recent:
            at, size = self._places[number]
            stored = os.pread(self._file.fileno(), size, at)
            self._recent[number] = zstandard.ZstdDecompressor().decompress(stored)
            if len(self._recent) > _KEPT_PIECES:
                self._recent.popitem(last=False)
        self._recent.move_to_end(number)
        return self._recent[number], self._starts[number]
