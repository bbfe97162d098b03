"""Follows growing files: not there yet, rotated, truncated, replaced; and pipes.

By polling, which works on every file system; one look at a file costs microseconds. A file is
read to its end before its successor is begun, and what a copy took away before a truncation is
read from the copy, if it can be found.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass

POLL_S, SERVING_POLL_S = 0.05, 0.2
"""Pause between two looks, while a launch starts and while it serves."""

_PORTION = 1 << 20
_MOST_PORTIONS = 8
_TAIL_BYTES = 64


@dataclass(frozen=True, slots=True)
class Heard:
    """What one look at a source brought."""

    data: bytes = b""
    begins_anew: str = ""
    """Why the file begins anew behind this data, in words; empty if it does not."""
    ended: bool = False
    """Nothing more can come."""


class FileFollower:
    """Follows one path, which need not exist yet."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._fd: int | None = None
        self._offset = 0
        self._tail = b""
        """The last bytes that were read: they must still be there when the file has grown."""
        self._changed_at = (-1, -1)

    @property
    def file(self) -> tuple[int, int] | None:
        """Device and inode of the file that is open."""
        if self._fd is None:
            return None
        status = os.fstat(self._fd)
        return status.st_dev, status.st_ino

    def look(self) -> Iterator[Heard]:
        """Everything that came since the last look, in portions."""
        if self._fd is None and not self._open():
            return
        yield from self._grown()
        if self._rotated():
            yield from self._grown()  # what was written while the file was given up
            yield Heard(begins_anew="it was replaced by a new file")
            self.close()
            if self._open():
                yield from self._grown()

    def age_s(self) -> float:
        """Seconds since the file was last written to; 0 where it is not there."""
        if self._fd is None:
            return 0.0
        return max(time.time() - os.fstat(self._fd).st_mtime, 0.0)

    def close(self) -> None:
        """Give the file up."""
        if self._fd is not None:
            os.close(self._fd)
        self._fd, self._offset, self._tail, self._changed_at = None, 0, b"", (-1, -1)

    def _open(self) -> bool:
        try:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        return True

    def _grown(self) -> Iterator[Heard]:
        assert self._fd is not None
        try:
            status = os.fstat(self._fd)
            now = (status.st_size, status.st_mtime_ns)
            if now == self._changed_at:
                return
            if status.st_size < self._offset or not self._same_tail():
                yield from self._truncated()
            self._changed_at = now
            for _ in range(_MOST_PORTIONS):
                data = os.pread(self._fd, _PORTION, self._offset)
                if not data:
                    return
                self._took(data)
                yield Heard(data)
            self._changed_at = (-1, -1)  # there is more than one look may read
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
            self._reopen()

    def _took(self, data: bytes) -> None:
        self._offset += len(data)
        self._tail = (self._tail + data)[-_TAIL_BYTES:]

    def _same_tail(self) -> bool:
        """Whether the file still holds what was read last: it may have been cut and grown again."""
        assert self._fd is not None
        begin = self._offset - len(self._tail)
        return os.pread(self._fd, len(self._tail), begin) == self._tail

    def _truncated(self) -> Iterator[Heard]:
        """The file was cut: what came before that and was not read may be in a copy."""
        for data in _rest_of_copy(self.path, self._offset, self._tail):
            yield Heard(data)
        yield Heard(begins_anew="it was truncated")
        self._offset, self._tail = 0, b""

    def _rotated(self) -> bool:
        """Whether the path names another file by now; a path without a file means: not yet."""
        assert self._fd is not None
        try:
            there = os.stat(self.path)
        except OSError:
            return False
        return (there.st_dev, there.st_ino) != self.file

    def _reopen(self) -> None:
        """A network file system lost our handle: go on at the same place of the same path."""
        offset, tail = self._offset, self._tail
        self.close()
        if self._open():
            self._offset, self._tail = offset, tail


class PipeFollower:
    """Reads a pipe, a terminal or a named pipe as it comes."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        os.set_blocking(fd, False)

    file: tuple[int, int] | None = None

    def look(self) -> Iterator[Heard]:
        """Everything that came since the last look, in portions."""
        for _ in range(_MOST_PORTIONS * 8):
            try:
                data = os.read(self._fd, _PORTION)
            except BlockingIOError:
                return
            if not data:
                yield Heard(ended=True)
                return
            yield Heard(data)

    def age_s(self) -> float:
        """What is in a pipe is new."""
        return 0.0

    def close(self) -> None:
        """Leave the pipe in the state in which others expect it."""
        os.set_blocking(self._fd, True)


Follower = FileFollower | PipeFollower


def follower_of(path: str) -> Follower:
    """How a path is to be followed; `-` is standard input. Raises OSError."""
    if path == "-":
        return PipeFollower(0)
    if os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode):
        # Opened for writing too, it does not end when one of several writers closes it.
        return PipeFollower(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
    return FileFollower(path)


def _rest_of_copy(path: str, offset: int, tail: bytes) -> Iterator[bytes]:
    """What a copy of the file (`log.1`, `log-20260218`) has behind the place that was reached."""
    if not tail:
        return
    for copy in _copies(path):
        try:
            with open(copy, "rb") as file:
                file.seek(offset - len(tail))
                if file.read(len(tail)) != tail:
                    continue
                while data := file.read(_PORTION):
                    yield data
                return
        except OSError:
            continue


def _copies(path: str) -> list[str]:
    """Files beside the log whose names begin with its name, the newest first."""
    folder, name = os.path.split(os.path.abspath(path))
    found = []
    for entry in os.scandir(folder):
        if entry.name != name and entry.name.startswith(name) and entry.is_file():
            found.append((entry.stat().st_mtime, entry.path))
    return [copy for _, copy in sorted(found, reverse=True)[:4]]
