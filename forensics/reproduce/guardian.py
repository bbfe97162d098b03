"""Ends a trial's processes when the tool that started them dies, be it by SIGKILL.

A small process of its own session holds the read end of a pipe. The kernel closes the other end
with the tool; without a farewell before that, the guardian takes the trial down.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from forensics.reproduce.takedown import MARK, Herd

_LOOK_EVERY_S = 1.0
"""Processes are remembered while they can be told: later their parents may be gone."""

_GRACE_S = 5.0
_FAREWELL = b"farewell\n"


class Guardian:
    """Guards one trial from before it starts: `guard` it, `dismiss` when it is down."""

    def __init__(self, mark: str) -> None:
        self._dismissed = False
        root = str(Path(__file__).resolve().parents[2])
        env = {name: value for name, value in os.environ.items() if name != MARK}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "forensics.reproduce.guardian", mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={**env, "PYTHONPATH": root},
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The guardian's own process."""
        return self._process.pid

    def guard(self, root: int) -> None:
        """Tell which process leads the trial's group and session."""
        self._write(f"{root}\n".encode())

    def dismiss(self) -> None:
        """The trial has been taken down; the guardian has nothing left to do."""
        self._write(_FAREWELL)
        self._dismissed = True

    def __enter__(self) -> Guardian:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the pipe: a guardian that was not dismissed takes the trial down now."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        if self._dismissed:
            self._process.wait()

    def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # somebody ended the guardian; the tool lives
            os.write(self._process.stdin.fileno(), data)


def main(mark: str, pipe: int = 0) -> None:
    """Wait for the farewell; without it, take the trial down."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_IGN)
    herd = Herd(mark)
    told = b""
    while True:
        if not select.select([pipe], [], [], _LOOK_EVERY_S)[0]:
            if herd.root is not None:
                herd.look(marks=False)
            continue
        data = os.read(pipe, 4096)
        told += data
        if _FAREWELL in told:
            return
        if herd.root is None and b"\n" in told:
            herd.root = int(told.split(b"\n", 1)[0])
        if not data:
            herd.end(_GRACE_S)
            return


if __name__ == "__main__":
    main(sys.argv[1])
