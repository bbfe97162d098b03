"""Takes a launch down completely, whatever its processes did to get away.

SGLang's workers overwrite their environment with their titles (setproctitle), and a process can
leave its parent's group and session. So processes are known by four signs: group and session of
the command, descent, the mark in the environment, and having been seen with one of these before.
Standard library alone, since the guardian runs it too. Linux; elsewhere the group alone is known.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MARK = "FORENSICS_TRIAL"
"""Variable that all processes of a trial inherit; its value is the trial's own."""

_VALUE = re.compile(r"[0-9a-f]{32}")
_PROC = Path("/proc")
_TICK_S = 0.05
_LAST_S = 10.0
"""How long killed processes may take to be gone: a driver gives back memory first."""


@dataclass(frozen=True, slots=True)
class _Stat:
    """What the kernel says of a process; `born` tells it from a later one of the same number."""

    state: str
    parent: int
    group: int
    session: int
    born: int


class Herd:
    """The processes of one launch. `root` leads its group and session; None: not started yet."""

    def __init__(self, mark: str, root: int | None = None) -> None:
        if not _VALUE.fullmatch(mark):
            raise ValueError("a mark is 32 hexadecimal digits")
        self.root = root
        self._sign = f"{MARK}={mark}".encode()
        self._seen: dict[int, int] = {}

    def look(self, *, marks: bool = True) -> list[int]:
        """The living processes; `marks` reads environments too, which costs more."""
        everyone = _everyone()
        ours = {pid for pid, born in self._seen.items() if _born(everyone, pid) == born}
        for pid, stat in everyone.items():
            if self.root in (stat.group, stat.session) or (marks and self._is_marked(pid)):
                ours.add(pid)
        children: dict[int, list[int]] = {}
        for pid, stat in everyone.items():
            children.setdefault(stat.parent, []).append(pid)
        waiting = list(ours)
        while waiting:
            for child in children.get(waiting.pop(), ()):
                if child not in ours:
                    ours.add(child)
                    waiting.append(child)
        ours.discard(os.getpid())
        self._seen = {pid: everyone[pid].born for pid in ours}
        return [pid for pid in sorted(ours) if everyone[pid].state not in "ZX"]

    def end(self, grace_s: float, hurry: Callable[[], bool] = lambda: False) -> bool:
        """Ask all to end, then make them; whether none is left. `hurry` cuts the grace short."""
        living = self.look()
        self._signal(living, signal.SIGTERM)
        self._signal(living, signal.SIGCONT)  # a stopped process cannot obey
        deadline = time.monotonic() + grace_s
        while living and time.monotonic() < deadline and not hurry():
            time.sleep(_TICK_S)
            living = self.look(marks=False)
        deadline = time.monotonic() + _LAST_S
        while (living := self.look()) and time.monotonic() < deadline:
            self._signal(living, signal.SIGKILL)
            time.sleep(_TICK_S)
        return not living

    def _is_marked(self, pid: int) -> bool:
        try:
            return self._sign in (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
        except OSError:
            return False

    def _signal(self, pids: list[int], number: int) -> None:
        if not _PROC.is_dir() and self.root is not None:
            with contextlib.suppress(OSError):
                os.killpg(self.root, number)
        for pid in pids:
            stat = _stat(pid)
            if stat is not None and stat.born == self._seen.get(pid):
                with contextlib.suppress(OSError):
                    os.kill(pid, number)


def _born(everyone: dict[int, _Stat], pid: int) -> int | None:
    stat = everyone.get(pid)
    return stat.born if stat else None


def _everyone() -> dict[int, _Stat]:
    try:
        pids = [int(name) for name in os.listdir(_PROC) if name.isdigit()]
    except OSError:
        return {}
    return {pid: stat for pid in pids if (stat := _stat(pid)) is not None}


def _stat(pid: int) -> _Stat | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # a name may hold blanks and brackets
    if len(fields) < 20:
        return None
    return _Stat(fields[0], int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))
