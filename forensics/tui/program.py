"""Runs the timeline as a program: from the first paint to the exit code."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator
from types import FrameType

from forensics.tui.app import Make, TimelineApp

_ENDING = (signal.SIGTERM, signal.SIGHUP)


def show(make: Make, greeting: str) -> TimelineApp:
    """Show the timeline until the user leaves.

    Raises:
        Exception: whatever the engine could not go on with; for the caller to tell in a line.
    """
    app = TimelineApp(make, greeting)
    with _leaving(app):
        app.run()
    if app.error is not None:
        raise app.error
    return app


@contextlib.contextmanager
def _leaving(app: TimelineApp) -> Iterator[None]:
    """A request to end leaves the program in good order, and with it what it started."""

    def leave(number: int, frame: FrameType | None) -> None:
        app.call_later(app.exit, 128 + number)

    before = {number: signal.signal(number, leave) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
