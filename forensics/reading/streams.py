"""Reads a source ahead of its consumer, in blocks of whole lines, decompressed if need be."""

from __future__ import annotations

import contextlib
import io
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from queue import Empty, Full, Queue
from typing import BinaryIO, cast

from forensics.reading.archives import (
    DAMAGE,
    HEAD_BYTES,
    Peeked,
    archive_kind,
    decompress,
    is_tar,
    looks_binary,
)
from forensics.reading.lines import Block, LineCutter
from forensics.reading.sources import STDIN, InputError, Source

__all__ = ["Block", "LineCutter", "head_lines", "looks_binary", "read_blocks"]

_AHEAD = 2
_POLL_S = 0.1
_LINE_BYTES = 1 << 16
"""Within so many bytes a line's end is looked for."""


def read_blocks(
    source: Source, *, block_bytes: int = 12 << 20, notices: list[str]
) -> Iterator[Block]:
    """Yield the source's lines in blocks; a thread reads and decompresses ahead.

    `notices` receives what the user should know: an archive cut short, a line cut, a binary that
    was not read (it gives no block). Raises `InputError`, at the first block or later.
    """
    queue: Queue[Block | BaseException | None] = Queue(_AHEAD)
    stop = threading.Event()

    def put(item: Block | BaseException | None) -> bool:
        while not stop.is_set():
            with contextlib.suppress(Full):
                queue.put(item, timeout=_POLL_S)
                return True
        return False

    def fill() -> None:
        try:
            for block in _blocks(source, block_bytes, notices):
                if not put(block):
                    return
            put(None)
        except BaseException as error:  # it is raised again where the blocks are used
            put(error)

    reader = threading.Thread(target=fill, name=f"read {source.path}", daemon=True)
    reader.start()
    try:
        while (item := queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stop.set()
        with contextlib.suppress(Empty):
            while True:
                queue.get_nowait()
        # A read of a silent pipe cannot be interrupted; the thread is a daemon for that case.
        reader.join(2 * _POLL_S)


def head_lines(blocks: Iterator[Block], count: int) -> tuple[list[str], Iterator[Block]]:
    """The first `count` lines of a source, and all its blocks again, those read included.

    What is detected from these lines does not depend on where the blocks were cut.
    """
    lines: list[str] = []
    read: list[Block] = []
    for block in blocks:
        read.append(block)
        lines += block.lines()[: count - len(lines)]
        if len(lines) >= count:
            break
    return lines, chain(read, blocks)


def _blocks(source: Source, block_bytes: int, notices: list[str]) -> Iterator[Block]:
    cutter = LineCutter()
    damage = _Damage()
    with contextlib.ExitStack() as opened:
        try:
            file = _open(source, opened)
            parts = _parts(file, block_bytes, damage, regular=source.size is not None)
            first = next(parts, b"")
            if looks_binary(first[:HEAD_BYTES]):
                what = "a tar archive, unpack it first" if is_tar(first) else "binary data"
                notices.append(f"{source.path}: {what}; not read as a log")
                return
            for part in chain([first], parts):
                if block := cutter.feed(part):
                    block.stored = file.tell() if source.size is not None else None
                    yield block
        except OSError as error:
            raise InputError(f"{source.path}: {error.strerror or error}") from error
    if block := cutter.flush():
        block.stored = source.size
        damage.lines += not block.data.endswith(b"\n")
        yield block
    if damage.error is not None:
        _report(source, damage.error, damage.lines, notices)


@dataclass(slots=True)
class _Damage:
    """Why an archive ends early, and how many lines it gave until then."""

    error: Exception | None = None
    lines: int = 0


def _open(source: Source, opened: contextlib.ExitStack) -> BinaryIO:
    if source.path == STDIN:
        if sys.stdin is None:
            raise InputError("standard input is closed")
        return sys.stdin.buffer
    return cast(BinaryIO, opened.enter_context(open(source.path, "rb", buffering=0)))


def _parts(file: BinaryIO, block_bytes: int, damage: _Damage, *, regular: bool) -> Iterator[bytes]:
    """The plain bytes in portions of about `block_bytes`; `damage` receives why they end early."""
    head = b""
    while len(head) < HEAD_BYTES and (part := file.read(HEAD_BYTES - len(head))):
        head += part
    kind = archive_kind(head)
    if kind is None and regular:
        yield head + _up_to_a_newline(file, max(block_bytes - len(head), 0))
        while part := _up_to_a_newline(file, block_bytes):
            yield part
        return
    stream = cast(BinaryIO, io.BufferedReader(Peeked(head, file)))
    if kind is None:
        while part := stream.read(block_bytes):
            yield part
        return
    gathered: list[bytes] = []
    size = 0
    try:
        for part in decompress(kind, stream):
            gathered.append(part)
            size += len(part)
            damage.lines += part.count(b"\n")
            if size >= block_bytes:
                yield b"".join(gathered)
                gathered, size = [], 0
    except DAMAGE as error:
        damage.error = error
    if gathered:
        yield b"".join(gathered)


def _up_to_a_newline(file: BinaryIO, size: int) -> bytes:
    """About so many bytes, up to the end of a line where one is near.

    Nothing is left over then that would have to be put together with what follows: a copy of each
    block, made while every other thread waits.
    """
    begin = file.tell()
    file.seek(begin + size)
    newline = file.read(_LINE_BYTES).find(b"\n")
    file.seek(begin)
    return file.read(size + newline + 1)


def _report(source: Source, damage: Exception, lines: int, notices: list[str]) -> None:
    """Say that an archive ends early, or that there is nothing in it at all."""
    if not lines:
        raise InputError(f"{source.path}: damaged archive, no line could be read")
    how = "ends early" if isinstance(damage, EOFError) else "is damaged"
    notices.append(f"{source.path}: archive {how} after {lines} lines")
