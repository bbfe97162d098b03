"""Keeps the UI loop ahead of the threads that read, and Python's collector out of its way.

A collection of all that a large log left in memory takes a third of a second, in which no key is
answered. What was read is kept until the program ends, so there is little to find in it.
"""

from __future__ import annotations

import gc
import sys

_YOUNG, _MIDDLE = 20_000, 10
_NEVER = 1_000_000

_SWITCH_S = 0.001
"""For so long a thread may keep the interpreter when another wants it."""


def calm() -> None:
    """Collect young objects only, and let threads take turns often; once, before reading."""
    gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)
    sys.setswitchinterval(_SWITCH_S)
