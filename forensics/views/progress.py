"""A progress bar on standard error, for readings that take longer than a second."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

PATIENCE_S = 1.0
"""Seconds before a bar is shown."""

_EVERY_S = 0.1


class ReadingProgress:
    """Called with the bytes read and the bytes in all (None: unknown); draws a bar when slow.

    A context manager: the bar is gone when it ends. Nothing is drawn unless standard error is a
    terminal.
    """

    def __init__(self, quiet: bool = False) -> None:
        self._wanted = not quiet and sys.stderr.isatty()
        self._next = time.monotonic() + PATIENCE_S
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> ReadingProgress:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar:
            self._bar.stop()

    def __call__(self, done: int, total: int | None) -> None:
        """Notes how far the reading is."""
        if not self._wanted or time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _EVERY_S
        if self._bar is None:
            self._start()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, total=total)

    def _start(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TaskProgressColumn,
            TextColumn,
            TimeElapsedColumn,
        )

        columns = (
            TextColumn("reading"),
            BarColumn(),
            TaskProgressColumn(),
            DownloadColumn(),
            TimeElapsedColumn(),
        )
        self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task("reading", total=None)
        self._bar.start()
