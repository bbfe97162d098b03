"""Files that grow, rotate and shrink: nothing is lost, nothing is read twice."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from forensics.live.follow import FileFollower, PipeFollower


def read(follower: FileFollower | PipeFollower) -> bytes:
    return b"".join(heard.data for heard in follower.look())


def test_a_file_may_come_later(tmp_path: Path) -> None:
    log = tmp_path / "log"
    follower = FileFollower(str(log))
    assert read(follower) == b""
    log.write_bytes(b"one\n")
    assert read(follower) == b"one\n"
    assert read(follower) == b""


def test_a_rotated_file_is_read_to_its_end_first(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"one\n")
    follower = FileFollower(str(log))
    assert read(follower) == b"one\n"
    with log.open("ab") as writer:
        log.rename(tmp_path / "log.1")
        assert read(follower) == b""
        writer.write(b"two\n")
    log.write_bytes(b"three\n")
    heard = list(follower.look())
    assert [h.data for h in heard if h.data] == [b"two\n", b"three\n"]
    assert [bool(h.begins_anew) for h in heard] == [False, True, False]


def test_a_truncated_file_begins_anew(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"one one one\n")
    follower = FileFollower(str(log))
    read(follower)
    log.write_bytes(b"two\n")
    assert read(follower) == b"two\n"


def test_a_file_that_was_cut_and_has_outgrown_the_old_place_is_noticed(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"one\n")
    follower = FileFollower(str(log))
    read(follower)
    log.write_bytes(b"quite another beginning\n")
    assert read(follower) == b"quite another beginning\n"


def test_what_a_copy_took_away_is_read_from_the_copy(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"one\n")
    follower = FileFollower(str(log))
    read(follower)
    with log.open("ab") as writer:
        writer.write(b"two\n")
        writer.flush()
        (tmp_path / "log.1").write_bytes(log.read_bytes())
        os.truncate(log, 0)
        writer.write(b"3\n")
    assert read(follower) == b"two\n3\n"


def test_a_replaced_file_is_followed(tmp_path: Path) -> None:
    log, new = tmp_path / "log", tmp_path / "new"
    log.write_bytes(b"one\n")
    follower = FileFollower(str(log))
    read(follower)
    new.write_bytes(b"two\n")
    new.replace(log)
    assert read(follower) == b"two\n"


def test_a_deleted_file_is_still_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb", buffering=0) as writer:
        follower = FileFollower(str(log))
        read(follower)
        log.unlink()
        writer.write(b"last words\n")
        assert read(follower) == b"last words\n"


def test_a_pipe_ends() -> None:
    reading, writing = os.pipe()
    follower = PipeFollower(reading)
    assert list(follower.look()) == []
    os.write(writing, b"one\n")
    assert read(follower) == b"one\n"
    os.close(writing)
    assert [heard.ended for heard in follower.look()] == [True]
    os.close(reading)


def test_rotation_under_fire_loses_nothing(tmp_path: Path) -> None:
    log = tmp_path / "log"
    lines = 4000
    got = bytearray()
    at: list[tuple[int, int] | None] = []

    def write() -> None:
        writer = log.open("ab", buffering=0)
        for number in range(lines):
            writer.write(b"line %d\n" % number)
            if number % 500 == 499:
                log.rename(tmp_path / f"log.{number}")
                writer.close()
                writer = log.open("wb", buffering=0)
                # Of two rotations between two looks the first file could not be found again.
                begun = os.fstat(writer.fileno())
                while at != [(begun.st_dev, begun.st_ino)]:
                    time.sleep(0.001)
        writer.close()

    log.touch()
    follower = FileFollower(str(log))
    read(follower)
    thread = threading.Thread(target=write)
    thread.start()
    while thread.is_alive():
        got += read(follower)
        at[:] = [follower.file]
        time.sleep(0.001)
    got += read(follower)
    assert got == b"".join(b"line %d\n" % number for number in range(lines))
