"""The kernel's table of processes (Linux, `/proc`; elsewhere empty). Standard library alone."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
DEAD = frozenset("ZX")
"""States of processes that have ended."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What the kernel says of a process; `born` tells it from a later one of the same number."""

    pid: int
    name: str
    state: str
    """One letter."""
    parent: int
    group: int
    session: int
    born: int


def pids() -> list[int]:
    """The numbers of all processes."""
    try:
        return [int(name) for name in os.listdir(PROC) if name.isdigit()]
    except OSError:
        return []


def entry_of(pid: int) -> Entry | None:
    """A process by its number, None if there is none."""
    try:
        text = (PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    # A name may hold blanks and brackets.
    name, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    if len(fields) < 20:
        return None
    parent, group, session = (int(field) for field in fields[1:4])
    return Entry(pid, name, fields[0], parent, group, session, born=int(fields[19]))


def everyone() -> dict[int, Entry]:
    """All processes by their numbers."""
    return {pid: entry for pid in pids() if (entry := entry_of(pid)) is not None}
