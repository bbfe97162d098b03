"""Which files a command line names: files, globs, folders and standard input."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from forensics.reading.archives import looks_binary

STDIN = "-"

_OTHER_FORMATS = frozenset(
    f".{ending}"
    for ending in re.findall(
        r"\w+",
        """
        7z avif bin bz c cc cfg conf cpp css csv cu db diff gguf gif h htm html ico ini ipynb jinja
        jpeg jpg js json lark lock md mp4 npy npz onnx parquet patch pdf pickle pkl png proto pt pth
        py pyc pyi rar rst safetensors sh so sqlite svg tar tgz toml ts tsv webp whl xlsx xml yaml
        yml zip
        """,
    )
)
"""Endings that a log never has. Only used inside folders; a file that is named is always read."""

_TAR_ENDINGS = (".tar.gz", ".tar.xz", ".tar.bz2", ".tar.zst")
_STREAM_FOLDERS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
_HEAD_BYTES = 8192


class InputError(Exception):
    """The input cannot be read; the text is one clear line for the user."""


@dataclass(frozen=True, slots=True)
class Source:
    """One log to read: its place in the order of reading and its path as given (`-` is stdin)."""

    index: int
    path: str
    size: int | None = None
    """Bytes as it is stored; None where that is not known before it is read."""


@dataclass(slots=True)
class _Search:
    """What has been found so far, without anything twice."""

    paths: dict[str, int | None] = field(default_factory=dict)
    """Path to size."""
    skipped: list[str] = field(default_factory=list)
    seen: set[tuple[int, int] | str] = field(default_factory=set)

    def add(self, path: str, status: os.stat_result | None) -> None:
        regular = status is not None and stat.S_ISREG(status.st_mode)
        key = (status.st_dev, status.st_ino) if status is not None and regular else path
        if key not in self.seen:
            self.seen.add(key)
            self.paths[path] = status.st_size if status is not None and regular else None

    def skip(self, path: str, reason: str) -> None:
        self.skipped.append(f"{path}: skipped, {reason}")


def find_sources(paths: Sequence[str]) -> tuple[list[Source], list[str]]:
    """Expand files, globs, folders and `-` into sources; the second list says what was skipped.

    Nothing is read twice, and a file that is named is never skipped. Raises `InputError` for what
    is missing, cannot be read, holds no log, or is no file.
    """
    if not paths:
        raise InputError("nothing to read: give a log file, a folder, or - for standard input")
    search = _Search()
    for path in paths:
        if path == STDIN:
            search.add(path, None)
        elif not os.path.lexists(path) and glob.has_magic(path):
            _add_glob(search, path)
        else:
            _add_named(search, path)
    found = enumerate(search.paths.items())
    return [Source(index, path, size) for index, (path, size) in found], search.skipped


def _add_named(search: _Search, path: str) -> None:
    status = _status(path)
    if stat.S_ISDIR(status.st_mode):
        _add_folder(search, path)
        return
    if stat.S_ISSOCK(status.st_mode) or stat.S_ISBLK(status.st_mode):
        raise InputError(f"{path}: a socket or a device, not a log")
    if stat.S_ISCHR(status.st_mode) and not path.startswith(_STREAM_FOLDERS):
        raise InputError(f"{path}: a device, not a log")
    if not os.access(path, os.R_OK):
        raise InputError(f"{path}: no permission to read it")
    search.add(path, status)


def _status(path: str) -> os.stat_result:
    if not path:
        raise InputError("an empty path was given")
    if "\0" in path:
        raise InputError(f"{path!r}: a path with a null byte")
    try:
        return os.stat(path)
    except FileNotFoundError as error:
        hint = "a link to a file that is missing" if os.path.islink(path) else "no such file"
        raise InputError(f"{path}: {hint}") from error
    except PermissionError as error:
        raise InputError(f"{path}: no permission to read it") from error
    except OSError as error:
        raise InputError(f"{path!r}: {error.strerror}") from error


def _add_glob(search: _Search, pattern: str) -> None:
    matches = sorted(glob.glob(pattern, recursive=True))
    if not matches:
        raise InputError(f"{pattern}: no file matches")
    before = len(search.seen)
    known = 0
    for path in matches:
        status = _status_or_none(path)
        if status is not None and stat.S_ISDIR(status.st_mode):
            known += _walk(search, path, set())
        else:
            known += _offer(search, path)
    if not known and len(search.seen) == before:
        raise InputError(f"{pattern}: no log among {len(matches)} matches")


def _add_folder(search: _Search, folder: str) -> None:
    try:
        os.listdir(folder)
    except PermissionError as error:
        raise InputError(f"{folder}: no permission to read this folder") from error
    before = len(search.skipped)
    if not _walk(search, folder, set()):
        passed = len(search.skipped) - before
        detail = f" ({passed} other files skipped)" if passed else ""
        raise InputError(f"{folder}: no log in this folder{detail}")


def _walk(search: _Search, folder: str, visited: set[tuple[int, int]]) -> int:
    """Offer what the folder holds, in order; returns how many logs there are."""
    status = _status_or_none(folder)
    if status is None or (status.st_dev, status.st_ino) in visited:
        return 0
    visited.add((status.st_dev, status.st_ino))
    found = 0
    for path, is_folder in _entries(search, folder):
        found += _walk(search, path, visited) if is_folder else _offer(search, path)
    return found


def _entries(search: _Search, folder: str) -> Iterator[tuple[str, bool]]:
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        search.skip(folder, error.strerror or "cannot be read")
        return
    for name in names:
        path = os.path.join(folder, name)
        if name.startswith("."):
            search.skip(path, "hidden")
        else:
            yield path, os.path.isdir(path)


def _offer(search: _Search, path: str) -> int:
    """Take a file that was found, not named, if it can be a log."""
    status = _status_or_none(path)
    reason = "cannot be read" if status is None else _unfit(path, status)
    if reason:
        search.skip(path, reason)
        return 0
    search.add(path, status)
    return 1


def _unfit(path: str, status: os.stat_result) -> str | None:
    """Why a file inside a folder is not taken for a log."""
    if not stat.S_ISREG(status.st_mode):
        return "not a regular file"
    if status.st_size == 0:
        return "empty"
    name = path.lower()
    ending = os.path.splitext(name)[1]
    if ending in _OTHER_FORMATS or name.endswith(_TAR_ENDINGS):
        return f"{ending} is no log"
    try:
        with open(path, "rb") as file:
            return "binary" if looks_binary(file.read(_HEAD_BYTES)) else None
    except OSError as error:
        return error.strerror or "cannot be read"


def _status_or_none(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None
