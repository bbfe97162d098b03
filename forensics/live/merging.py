"""Two streams of one command in one log: whole lines, in the order in which they ended."""

from __future__ import annotations

import time
from typing import BinaryIO

_LONGEST = 1 << 16
_PATIENCE_S = 0.5


class LineMerger:
    """Writes the bytes of several streams to one file without tearing lines apart.

    An unfinished line of one stream waits while another writes: a progress bar and a log line
    that were written at the same time stay two lines. Alone, or when it waits for long, it is
    written as it comes.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._open: dict[str, bytes] = {}
        self._since: dict[str, float] = {}
        self._torn: str | None = None
        """The stream whose unfinished line stands at the end of the file."""

    def write(self, stream: str, data: bytes) -> bytes:
        """Take bytes of a stream; returns what was written to the file."""
        data = self._open.pop(stream, b"") + data
        whole, newline, rest = data.rpartition(b"\n")
        written = b""
        if newline:
            written += self._end_torn(stream) + whole + newline
            self._torn = None
        if rest:
            if len(rest) > _LONGEST:
                written += self._end_torn(stream) + rest
                self._torn = stream
            else:
                self._open[stream] = rest
                self._since[stream] = time.monotonic()
        self._put(written)
        return written

    def release(self, *, everything: bool = False) -> bytes:
        """Write the unfinished lines that have waited for long; returns what was written."""
        written = b""
        for stream in list(self._open):
            if everything or time.monotonic() - self._since[stream] >= _PATIENCE_S:
                written += self._end_torn(stream) + self._open.pop(stream)
                self._torn = stream
        self._put(written)
        return written

    def _end_torn(self, stream: str) -> bytes:
        return b"\n" if self._torn not in (None, stream) else b""

    def _put(self, data: bytes) -> None:
        if data:
            self._file.write(data)
            self._file.flush()
