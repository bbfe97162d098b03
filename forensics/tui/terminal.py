"""The terminal when standard input is a pipe."""

from __future__ import annotations

import os


def keyboard_beside_pipe() -> int:
    """Standard input carries a log: give its descriptor away and take keys from the terminal.

    Raises OSError where there is no terminal.
    """
    pipe = os.dup(0)
    terminal = os.open("/dev/tty", os.O_RDWR)
    os.dup2(terminal, 0)
    os.close(terminal)
    return pipe
