"""Where live events go: standard output, standard error, the user's own command."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from forensics.cli.options import LiveFormat

if TYPE_CHECKING:
    from forensics.live.notices import Notice
    from forensics.views.console import ColorWhen
    from forensics.views.live.lines import LineView
    from forensics.views.live.ndjson import NdjsonView
    from forensics.views.live.screen import Screen


@contextlib.contextmanager
def watch_view(
    format: LiveFormat, quiet: bool, color: ColorWhen
) -> Iterator[NdjsonView | LineView | Screen]:
    """The view of `watch`: a screen on a terminal, else lines."""
    from forensics.views.console import console_for
    from forensics.views.live.lines import LineView
    from forensics.views.live.ndjson import NdjsonView
    from forensics.views.live.screen import Screen

    if format is LiveFormat.ndjson:
        yield NdjsonView(sys.stdout, quiet=quiet)
        return
    console = console_for(sys.stdout, color)
    if quiet or not console.is_terminal or console.is_dumb_terminal:
        yield LineView(console, quiet=quiet)
        return
    with Screen(console) as screen:
        yield screen


def run_view(format: LiveFormat, quiet: bool, color: ColorWhen) -> Callable[[Notice], None]:
    """The view of `run`: events on standard output, or remarks beside the command's own output."""
    from forensics.views.console import console_for
    from forensics.views.live.lines import LineView
    from forensics.views.live.ndjson import NdjsonView

    if format is LiveFormat.ndjson:
        return NdjsonView(sys.stdout, quiet=quiet).tell
    console = console_for(sys.stderr, color)
    return LineView(console, quiet=quiet, brief=True, lead="forensics: ").tell


def sinks(format: LiveFormat, quiet: bool) -> dict[str, Callable[[bytes], None]]:
    """Where the command's output goes, byte by byte."""
    if quiet:
        return {"stdout": lambda data: None, "stderr": lambda data: None}
    errors = _sink(sys.stderr.fileno())
    return {"stdout": errors if format is LiveFormat.ndjson else _sink(1), "stderr": errors}


def _sink(fd: int) -> Callable[[bytes], None]:
    """Writes to a descriptor; when its reader is gone, the command goes on all the same."""
    open_: list[bool] = [True]

    def write(data: bytes) -> None:
        try:
            while data and open_:
                data = data[os.write(fd, data) :]
        except OSError:
            open_.clear()

    return write


@contextlib.contextmanager
def hook(words: list[str] | None) -> Iterator[Callable[[Notice], None]]:
    """Hands new and graver findings to the user's command."""
    command = shlex.split(words[0]) if words and len(words) == 1 else words
    if not command:
        yield lambda notice: None
        return
    from forensics.live.hook import FindingHook
    from forensics.live.notices import FindingNotice
    from forensics.views.console import error_line
    from forensics.views.live.ndjson import finding_json

    running = FindingHook(command, error_line)

    def hand_over(notice: Notice) -> None:
        grave = {"severity", "role"}
        if isinstance(notice, FindingNotice) and (
            not notice.updated or grave & set(notice.changed)
        ):
            running.call(finding_json(notice.finding))

    try:
        yield hand_over
    finally:
        running.close()
