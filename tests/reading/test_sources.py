"""Which files a command line names."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from forensics.reading import InputError, find_sources

LINE = b"[2025-07-29 18:14:43 TP0] Load weight begin. avail mem=78.50 GB\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "b.log").write_bytes(LINE)
    (tmp_path / "a.txt").write_bytes(LINE)
    (tmp_path / "node1").mkdir()
    (tmp_path / "node1" / "server.log.1").write_bytes(LINE)
    return tmp_path


def names(paths: list[str]) -> list[str]:
    return [Path(source.path).name for source in find_sources(paths)[0]]


def test_a_file_keeps_its_path_as_given(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    sources, skipped = find_sources(["./b.log"])
    assert [(source.index, source.path) for source in sources] == [(0, "./b.log")]
    assert skipped == []


def test_files_keep_the_order_of_the_command_line(folder: Path) -> None:
    assert names([str(folder / "b.log"), str(folder / "a.txt")]) == ["b.log", "a.txt"]


def test_a_folder_gives_its_logs_sorted_and_recursively(folder: Path) -> None:
    assert names([str(folder)]) == ["a.txt", "b.log", "server.log.1"]


def test_a_pattern_that_no_shell_expanded_is_expanded(folder: Path) -> None:
    assert names([str(folder / "*.log")]) == ["b.log"]


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(folder: Path) -> None:
    (folder / "run[1].log").write_bytes(LINE)
    assert names([str(folder / "run[1].log")]) == ["run[1].log"]


def test_nothing_is_read_twice(folder: Path) -> None:
    (folder / "link.log").symlink_to(folder / "b.log")
    paths = [str(folder / "b.log"), str(folder), str(folder / "link.log"), "-", "-"]
    assert names(paths) == ["b.log", "a.txt", "server.log.1", "-"]


def test_a_loop_of_links_ends(folder: Path) -> None:
    (folder / "node1" / "up").symlink_to(folder, target_is_directory=True)
    assert names([str(folder)]) == ["a.txt", "b.log", "server.log.1"]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        (".hidden", LINE, "hidden"),
        ("core", b"\x7fELF\x02\x01\x01" + bytes(64), "binary"),
        ("expected.toml", b"a = 1\n", ".toml is no log"),
        ("old.tar.gz", b"\x1f\x8b", ".gz is no log"),
        ("empty.log", b"", "empty"),
    ],
)
def test_a_folder_skips_what_is_no_log_and_says_so(
    folder: Path, name: str, content: bytes, reason: str
) -> None:
    (folder / name).write_bytes(content)
    sources, skipped = find_sources([str(folder)])
    assert len(sources) == 3
    assert skipped == [f"{folder / name}: skipped, {reason}"]


def test_a_file_that_is_named_is_never_skipped(folder: Path) -> None:
    (folder / "core").write_bytes(b"\x7fELF" + bytes(64))
    assert names([str(folder / "core")]) == ["core"]


def test_a_pipe_can_be_named(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert names([str(tmp_path / "pipe")]) == ["pipe"]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("missing.log", "no such file"),
        ("*.nothing", "no file matches"),
        ("empty", "no log in this folder"),
        ("socket", "a socket or a device"),
        ("dangling", "a link to a file that is missing"),
        ("", "an empty path"),
        ("nul\0byte", "null byte"),
        ("x" * 5000, "too long"),
        ("/dev/null", "a device, not a log"),
    ],
)
def test_what_cannot_be_read_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    (tmp_path / "dangling").symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        with pytest.raises(InputError, match=message) as caught:
            find_sources([path])
    assert "\n" not in str(caught.value)


def test_a_file_without_permission_is_an_input_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(InputError, match="no permission"):
        find_sources([str(folder / "b.log")])


def test_nothing_named_is_an_input_error() -> None:
    with pytest.raises(InputError, match="nothing to read"):
        find_sources([])
