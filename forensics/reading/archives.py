"""Bytes that are not plain text: compressed streams, recognised by magic, and binaries."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import BinaryIO, Protocol

import zstandard

from forensics.reading.encodings import guess_utf16

HEAD_BYTES = 8192
"""How much of a stream is looked at to tell what it is."""

DAMAGE = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, zstandard.ZstdError, OSError)
"""What the decompressors raise for a stream that is cut short or damaged."""

_PART_BYTES = 1 << 20
_ZSTD_INPUT_BYTES = 2048
"""Small, since one byte of a zstd stream can stand for a great many."""

_BINARY_MAGIC = (
    b"\x7fELF",
    b"\x89PNG",
    b"PK\x03\x04",
    b"\xff\xd8\xff",
    b"GIF8",
    b"%PDF-",
    b"\xcf\xfa\xed\xfe",
    b"SQLite format 3\x00",
    b"PAR1",
    b"\x93NUMPY",
    b"GGUF",
    b"\x80\x02",
    b"\x80\x04\x95",
    b"7z\xbc\xaf",
    b"Rar!",
    b"\x00asm",
    b"MZ\x90",
    b"OggS",
    b"\x1aE\xdf\xa3",
)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\b\a\x1b")) + b"\x7f"
_TEXT_BOMS = (b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")
_BINARY_SHARE = 0.05


class _Readable(Protocol):
    def read1(self, size: int = ..., /) -> bytes: ...


def _gunzip(file: BinaryIO) -> _Readable:
    return gzip.GzipFile(fileobj=file)


_READERS: dict[str, Callable[[BinaryIO], _Readable]] = {
    "gzip": _gunzip,
    "xz": lzma.LZMAFile,
    "bzip2": bz2.BZ2File,
}


def archive_kind(head: bytes) -> str | None:
    """Name the compression that these first bytes announce, None for none."""
    if head.startswith(b"\x1f\x8b"):
        return "gzip"
    if head.startswith(b"\xfd7zXZ\x00"):
        return "xz"
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return "zstd"
    if head.startswith(b"BZh") and head[4:10] in (b"1AY&SY", b"\x17rE8P\x90"):
        return "bzip2"
    return None


def is_tar(head: bytes) -> bool:
    """Tell a tar archive from the mark in its first header."""
    return head[257:262] == b"ustar"


def looks_binary(head: bytes) -> bool:
    """Whether these first bytes belong to a binary file rather than to a log.

    A few NUL bytes do not make a log binary, nor does a hole of NULs at its start. What can be
    decompressed is not binary.
    """
    if archive_kind(head) or head.startswith(_TEXT_BOMS):
        return False
    if head.startswith(_BINARY_MAGIC) or is_tar(head) or head[7:10] == b'\x00{"':
        return True
    if guess_utf16(head):
        return False
    text = head.lstrip(b"\x00")
    return len(text) - len(text.translate(None, _CONTROLS)) > _BINARY_SHARE * len(text)


def decompress(kind: str, file: BinaryIO) -> Iterator[bytes]:
    """Decompress piece by piece, through all members; raises one of `DAMAGE` where it breaks off.

    Whatever could be decompressed before the damage has been delivered by then.
    """
    if kind == "zstd":
        yield from _zstd(file)
        return
    stream = _READERS[kind](file)
    while part := stream.read1(_PART_BYTES):
        yield part


def _zstd(file: BinaryIO) -> Iterator[bytes]:
    decompressor = zstandard.ZstdDecompressor()
    frame = decompressor.decompressobj()
    begun = False
    while given := file.read(_ZSTD_INPUT_BYTES):
        while given:
            if frame.eof:
                frame, begun = decompressor.decompressobj(), False
            begun = True
            if part := frame.decompress(given):
                yield part
            given = frame.unused_data if frame.eof else b""
    if begun and not frame.eof:
        raise EOFError("the last zstd frame is not complete")


class Peeked(io.RawIOBase):
    """A stream whose first bytes were read already, to be read again from the start."""

    def __init__(self, head: bytes, file: BinaryIO) -> None:
        super().__init__()
        self._head = memoryview(head)
        self._file = file

    def readable(self) -> bool:
        """Always true."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill the buffer from the head, then from the file."""
        if self._head:
            size = min(len(self._head), len(buffer))
            buffer[:size] = self._head[:size]
            self._head = self._head[size:]
            return size
        part = self._file.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)
