"""Reading a source in blocks, plain and compressed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import tarfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from forensics.reading import InputError, Source, head_lines, looks_binary, read_blocks

TEXT = b"".join(b"[2025-07-29 18:14:43 TP%d] line %d\n" % (n % 8, n) for n in range(20000))
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}


def read(path: Path, block_bytes: int = 100_000) -> tuple[bytes, list[str]]:
    notices: list[str] = []
    blocks = read_blocks(Source(0, str(path)), block_bytes=block_bytes, notices=notices)
    return b"".join(block.data for block in blocks), notices


def test_a_plain_file_comes_in_blocks_of_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(TEXT)
    blocks = list(read_blocks(Source(0, str(path)), block_bytes=100_000, notices=[]))
    assert len(blocks) > 3
    assert b"".join(block.data for block in blocks) == TEXT
    assert all(block.data.endswith(b"\n") for block in blocks)


@pytest.mark.parametrize("kind", PACKERS)
def test_archives_are_told_by_content_and_read_through_all_members(
    tmp_path: Path, kind: str
) -> None:
    path = tmp_path / "log"
    path.write_bytes(PACKERS[kind](TEXT[:50_000]) + PACKERS[kind](TEXT[50_000:]))
    assert read(path) == (TEXT, [])


@pytest.mark.parametrize("kind", PACKERS)
def test_an_archive_cut_short_is_read_as_far_as_it_goes(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(PACKERS[kind](TEXT[:200_000]) + PACKERS[kind](TEXT[200_000:])[:-100])
    data, notices = read(path)
    assert TEXT.startswith(data)
    assert len(data) >= 200_000
    lines = data.count(b"\n") + (not data.endswith(b"\n"))
    assert notices == [f"{path}: archive ends early after {lines} lines"]


def test_a_damaged_archive_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "log.gz"
    path.write_bytes(gzip.compress(TEXT[:200_000]) + b"garbage, no member")
    data, notices = read(path)
    assert data == TEXT[:200_000]
    assert "archive is damaged after" in notices[0]


@pytest.mark.parametrize("kind", PACKERS)
def test_an_archive_without_a_line_is_an_input_error(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "log"
    path.write_bytes(PACKERS[kind](TEXT)[:10])
    with pytest.raises(InputError, match="no line could be read"):
        read(path)


@pytest.mark.parametrize("kind", ["plain", *PACKERS])
def test_standard_input_is_read_alike(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    packed = PACKERS.get(kind, bytes)(TEXT)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed)))
    assert read(Path("-")) == (TEXT, [])


def test_a_binary_gives_no_block_but_a_notice(tmp_path: Path) -> None:
    path = tmp_path / "core"
    path.write_bytes(b"\x7fELF" + bytes(10_000))
    assert read(path) == (b"", [f"{path}: binary data; not read as a log"])


def test_a_tar_archive_must_be_unpacked_first(tmp_path: Path) -> None:
    path = tmp_path / "logs.tar.gz"
    (tmp_path / "a.log").write_bytes(TEXT)
    with tarfile.open(path, "w:gz") as archive:
        archive.add(tmp_path / "a.log")
    data, notices = read(path)
    assert data == b""
    assert "unpack it first" in notices[0]


def test_an_empty_file_gives_nothing(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    assert read(tmp_path / "log") == (b"", [])


def test_a_file_that_vanished_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        read(tmp_path / "gone")


def test_closing_early_stops_the_reader(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(TEXT)
    blocks = read_blocks(Source(0, str(path)), block_bytes=1000, notices=[])
    next(blocks)
    blocks.close()  # type: ignore[attr-defined]
    deadline = time.monotonic() + 5
    while any(thread.name == f"read {path}" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("block_bytes", [100, 1000, 1_000_000])
def test_head_lines_do_not_depend_on_blocks_and_lose_nothing(
    tmp_path: Path, block_bytes: int
) -> None:
    path = tmp_path / "log"
    path.write_bytes(TEXT[:50_000])
    head, blocks = head_lines(
        read_blocks(Source(0, str(path)), block_bytes=block_bytes, notices=[]), 10
    )
    assert head == TEXT.decode().split("\n")[:10]
    assert b"".join(block.data for block in blocks) == TEXT[:50_000]


@pytest.mark.parametrize(
    "head",
    [
        b"\x7fELF\x02\x01",
        b"\x89PNG\r\n\x1a\n",
        b"PK\x03\x04\x14\x00",
        b"\x40\x00\x00\x00\x00\x00\x00\x00" + b'{"__metadata__":{}}',
        bytes(range(256)) * 4,
    ],
)
def test_binaries_are_recognised(head: bytes) -> None:
    assert looks_binary(head)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        TEXT[:8192],
        TEXT[:4000] + b"\0\0\0" + TEXT[4000:8000],
        bytes(4000) + TEXT[:4000],
        b"\x1b[36m(A pid=1)\x1b[0m \rbar\r" * 50,
        "[2025-07-29 18:14:43] log".encode("utf-16"),
        "[2025-07-29 18:14:43] log".encode("utf-16-le"),
        "caf\xe9 ".encode("latin-1") * 100,
        gzip.compress(TEXT),
    ],
)
def test_logs_are_not_binary(head: bytes) -> None:
    assert not looks_binary(head)
