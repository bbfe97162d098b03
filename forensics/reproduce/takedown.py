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

from forensics.live.proc_table import DEAD, PROC, Entry, entry_of, everyone

MARK = "FORENSICS_TRIAL"
"""Variable that all processes of a trial inherit; its value is the trial's own."""

_VALUE = re.compile(r"[0-9a-f]{32}")
_TICK_S = 0.05
_LAST_S = 10.0
"""How long killed processes may take to be gone: a driver gives back memory first."""


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
        table = everyone()
        ours = {pid for pid, born in self._seen.items() if _born(table, pid) == born}
        for pid, entry in table.items():
            if self.root in (entry.group, entry.session) or (marks and self._is_marked(pid)):
                ours.add(pid)
        children: dict[int, list[int]] = {}
        for pid, entry in table.items():
            children.setdefault(entry.parent, []).append(pid)
        waiting = list(ours)
        while waiting:
            for child in children.get(waiting.pop(), ()):
                if child not in ours:
                    ours.add(child)
                    waiting.append(child)
        ours.discard(os.getpid())
        self._seen = {pid: table[pid].born for pid in ours}
        return [pid for pid in sorted(ours) if table[pid].state not in DEAD]

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
            return self._sign in (PROC / str(pid) / "environ").read_bytes().split(b"\0")
        except OSError:
            return False

    def _signal(self, pids: list[int], number: int) -> None:
        if not PROC.is_dir() and self.root is not None:
            with contextlib.suppress(OSError):
                os.killpg(self.root, number)
        for pid in pids:
            entry = entry_of(pid)
            if entry is not None and entry.born == self._seen.get(pid):
                with contextlib.suppress(OSError):
                    os.kill(pid, number)


def _born(table: dict[int, Entry], pid: int) -> int | None:
    entry = table.get(pid)
    return entry.born if entry else None
