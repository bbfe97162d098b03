"""Fills the index of one source: from a plain file, from what must be unpacked, or as it comes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator

from forensics.reading import Block, InputError, LineCutter, Source, read_blocks
from forensics.reading.archives import HEAD_BYTES, archive_kind, looks_binary
from forensics.reading.encodings import encoding_of
from forensics.tui.store.backing import FileBytes, Spool
from forensics.tui.store.index import MOST_READ_BYTES, SourceIndex

_FIRST_BYTES = 256 << 10
"""The first block is small, so that there is something to see at once."""

_BLOCK_BYTES = 4 << 20
_SETTLE_S = 0.2
"""After such a pause what is still open is shown as far as it is known."""


def is_plain(source: Source) -> bool:
    """Whether a source is a file whose bytes are its text, so that it can be read at any place."""
    if source.size is None:
        return False
    with open(source.path, "rb") as file:
        head = file.read(HEAD_BYTES)
    if archive_kind(head) or looks_binary(head):
        return False
    encoding = encoding_of(head, final=True)
    return encoding is None or encoding[0] == "utf-8"


def fill(source: Source, index: SourceIndex, stop: threading.Event) -> None:
    """Read a source to its end; what cannot be read becomes the notice of the index."""
    notices: list[str] = []
    try:
        if is_plain(source):
            index.backing = file = FileBytes(source.path)
            for block, raw in _file_blocks(file):
                if stop.is_set():
                    return
                index.add(block.data, block.offset, raw)
                index.stored = block.offset + len(raw)
        else:
            index.backing = spool = Spool()
            for block in read_blocks(source, block_bytes=_BLOCK_BYTES, notices=notices):
                if stop.is_set():
                    return
                _put_away(block.data, index, spool)
                index.stored = block.stored or 0
    except (InputError, OSError) as error:
        notices.append(str(error))
    except Exception as error:  # a thread has nobody to tell: what was read so far stays usable
        notices.append(f"{source.path}: reading stopped: {error!r}")
    index.finish("; ".join(notices))


class Feed:
    """Takes the bytes of a live source from any thread and indexes them in its own."""

    def __init__(self, index: SourceIndex, spool: Spool) -> None:
        self._index = index
        self._spool = spool
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._cutter = LineCutter()

    def put(self, data: bytes | None) -> None:
        """Hand over the next bytes; None ends the source."""
        self._waiting.put(data)

    def work(self) -> None:
        """Index until the source ends."""
        settled = True
        while True:
            try:
                data = self._waiting.get(timeout=_SETTLE_S)
            except queue.Empty:
                if not settled:
                    self._index.settle()
                    settled = True
                continue
            block = self._cutter.flush() if data is None else self._cutter.feed(data)
            if block is not None:
                _put_away(block.data, self._index, self._spool)
                settled = False
            if data is None:
                self._index.finish()
                return


def _put_away(data: bytes, index: SourceIndex, spool: Spool) -> None:
    """Spool lines and index them, the first of a source in a smaller portion."""
    cut = len(data)
    if index.lines == 0 and len(data) > _FIRST_BYTES:
        cut = data.find(b"\n", _FIRST_BYTES) + 1 or len(data)
    for part in (data[:cut], data[cut:]):
        if part:
            index.add(part, spool.append(part), part)


def _file_blocks(file: FileBytes) -> Iterator[tuple[Block, bytes]]:
    """The lines of a plain file in blocks, with the bytes of the file that they are made of."""
    cutter = LineCutter()
    held: list[Block] = []
    at, size = 0, _FIRST_BYTES
    while data := file.read(at, size):
        at += len(data)
        size = _BLOCK_BYTES
        if block := cutter.feed(data):
            yield from _with_raw(file, block, held)
    if block := cutter.flush():
        yield from _with_raw(file, block, held)
    if held:
        yield held[0], _raw(file, held[0], at)


def _with_raw(file: FileBytes, block: Block, held: list[Block]) -> Iterator[tuple[Block, bytes]]:
    """Blocks as they are; where bytes were replaced, what stands in the file in their place.

    How far such a block reaches in the file is known when the next one begins.
    """
    if held:
        before = held.pop()
        yield before, _raw(file, before, block.offset)
    if block.repaired:
        held.append(block)
    else:
        yield block, block.data


def _raw(file: FileBytes, block: Block, end: int) -> bytes:
    return file.read(block.offset, min(end - block.offset, 2 * MOST_READ_BYTES))
