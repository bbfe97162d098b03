"""What the operating system says of the processes behind a log (Linux, `/proc`; else nothing)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from forensics.live.proc_table import DEAD, PROC, entry_of, everyone, pids

_STOPPED = frozenset("Tt")
_CHECK_EVERY_S = 2.0
_SCAN_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class Process:
    """A process: its number, its name, and its state as one letter."""

    pid: int
    name: str
    state: str


@dataclass(frozen=True, slots=True)
class Vitals:
    """What is known of the processes of a launch."""

    stopped: tuple[Process, ...] = ()
    """Stopped at two checks in a row."""
    gone: bool = False
    """There were processes, and there are none any more."""


class Vigil(Protocol):
    """Looks after the processes of a launch."""

    def check(self, now: float) -> Vitals:
        """Their state; cheap enough to ask often."""


class _Checker:
    """Remembers who was stopped at the last check, since a debugger stops a process for moments."""

    def __init__(self) -> None:
        self._stopped: frozenset[int] = frozenset()

    def stopped(self, alive: list[Process]) -> tuple[Process, ...]:
        now = {process.pid: process for process in alive if process.state in _STOPPED}
        lasting = tuple(now[pid] for pid in sorted(self._stopped & now.keys()))
        self._stopped = frozenset(now)
        return lasting


class GroupVigil:
    """Looks after a process group that this program started."""

    def __init__(self, group: int) -> None:
        self._group = group
        self._checker = _Checker()
        self._next = 0.0
        self._vitals = Vitals()

    def check(self, now: float) -> Vitals:
        """Their state, looked up every two seconds."""
        if now >= self._next:
            self._next = now + _CHECK_EVERY_S
            self._vitals = Vitals(self._checker.stopped(members(self._group)))
        return self._vitals


class WriterVigil:
    """Looks after the processes that have log files open for writing.

    Processes of other users, containers and machines are not seen: then nothing is said.
    """

    def __init__(self) -> None:
        self.files: list[tuple[int, int]] = []
        """Device and inode of the files that are followed."""
        self._writers: set[int] = set()
        self._checker = _Checker()
        self._next_check = self._next_scan = 0.0
        self._vitals = Vitals()

    def check(self, now: float) -> Vitals:
        """Their state: known writers every two seconds, others every ten."""
        if now < self._next_check or not self.files:
            return self._vitals
        self._next_check = now + _CHECK_EVERY_S
        alive = self._alive()
        if now >= self._next_scan or (self._writers and not alive):
            self._next_scan = now + _SCAN_EVERY_S
            found = writers(frozenset(self.files))
            had, self._writers = bool(self._writers), self._writers | found
            alive = self._alive()
            self._vitals = Vitals(self._checker.stopped(alive), gone=had and not found)
        else:
            self._vitals = Vitals(self._checker.stopped(alive))
        return self._vitals

    def _alive(self) -> list[Process]:
        found = [process for pid in self._writers if (process := process_of(pid))]
        return [process for process in found if process.state not in DEAD]


def members(group: int) -> list[Process]:
    """The living processes of a process group."""
    return [
        Process(entry.pid, entry.name, entry.state)
        for entry in everyone().values()
        if entry.group == group and entry.state not in DEAD
    ]


def process_of(pid: int) -> Process | None:
    """A process by its number, None if there is none."""
    entry = entry_of(pid)
    return Process(pid, entry.name, entry.state) if entry else None


def writers(files: frozenset[tuple[int, int]]) -> set[int]:
    """The processes that have one of these files (device, inode) open for writing."""
    return {pid for pid in pids() if pid != os.getpid() and _writes(pid, files)}


def _writes(pid: int, files: frozenset[tuple[int, int]]) -> bool:
    folder = f"{PROC}/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    for name in names:
        try:
            status = os.stat(f"{folder}/{name}")
            if (status.st_dev, status.st_ino) not in files:
                continue
            info = Path(f"{PROC}/{pid}/fdinfo/{name}").read_text()
            flags = next(line for line in info.splitlines() if line.startswith("flags:"))
            if int(flags.split()[1], 8) & (os.O_WRONLY | os.O_RDWR):
                return True
        except (OSError, ValueError, StopIteration):
            continue
    return False
