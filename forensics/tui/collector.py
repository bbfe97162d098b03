"""Keeps Python's garbage collector out of the way of the user.

A collection of all that a large log left in memory takes a third of a second, in which no key is
answered. What was read is kept until the program ends, so there is little to find in it.
"""

from __future__ import annotations

import gc

_YOUNG, _MIDDLE = 20_000, 10
_NEVER = 1_000_000


def calm() -> None:
    """Collect young objects only from now on; call it once, before anything is read."""
    gc.set_threshold(_YOUNG, _MIDDLE, _NEVER)
