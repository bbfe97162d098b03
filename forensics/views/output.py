"""Where a result goes: standard output, or a file that is whole or not there."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

STDOUT = "-"


@contextmanager
def destination(path: str | None) -> Iterator[TextIO]:
    """Text output to standard output (None or `-`) or to a file.

    A reader of standard output that leaves early is no error: the rest is dropped.
    """
    if path in (None, STDOUT):
        try:
            yield sys.stdout
            sys.stdout.flush()
        except BrokenPipeError:
            abandon_stdout()
        return
    with whole_file(str(path)) as part, part.open("w", encoding="utf-8", newline="") as out:
        yield out


def abandon_stdout() -> None:
    """Sends what is still written to standard output nowhere: Python flushes when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def whole_file(path: str) -> Iterator[Path]:
    """A path to write to, which takes the file's place at the end if nothing went wrong.

    What is not a regular file (`/dev/null`, a pipe) is written to as it is. Raises OSError.
    """
    target = Path(path).resolve() if os.path.islink(path) else Path(path)
    if target.exists() and not target.is_file():
        yield target
        return
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(target)
    except OSError as error:
        if error.filename in (part, str(part)):
            error.filename = path
        raise
    finally:
        part.unlink(missing_ok=True)
