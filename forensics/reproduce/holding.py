"""Runs a command whose standard input stays open as long as somebody here wants it to run.

What it reaches elsewhere (through ssh, docker, kubectl) takes the end of its input for the order
to end, so that it ends whichever way this side goes: asked, interrupted or killed. Standard library
alone, since it is run as a file: `python holding.py COMMAND ...`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from types import FrameType

_ASKED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def hold(command: list[str]) -> int:
    """Run a command to its end; a signal to us closes its input. Exit status as a shell has it.

    Raises OSError if the command cannot be started.
    """
    reading, writing = os.pipe()
    open_ends = [writing]

    def let_go(_signal: int, _frame: FrameType | None) -> None:
        while open_ends:
            with contextlib.suppress(OSError):
                os.close(open_ends.pop())

    for number in _ASKED:
        signal.signal(number, let_go)
    # A session of its own: it is told through its input, and can still say how it ended.
    child = subprocess.Popen(command, stdin=reading, start_new_session=True)
    os.close(reading)
    status = child.wait()
    return status if status >= 0 else 128 - status


def main(argv: list[str]) -> int:
    """Hold the command in the arguments; 127 where it cannot be started."""
    try:
        return hold(argv)
    except OSError as error:
        print(f"{argv[0]} cannot be started: {error.strerror or error}", file=sys.stderr)
        return 127


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
