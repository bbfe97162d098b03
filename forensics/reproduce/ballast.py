"""Holds GPU memory while a command runs, so that it finds a card of another size.

    python ballast.py LEAVE_GIB COMMAND...

Of every visible GPU all but LEAVE_GIB is taken, by plain allocations through the driver; then the
command runs, and its end is this program's. It is started by its path with the launch's own
Python, so it needs neither PyTorch nor this package.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys

GIB = 2**30
NOT_HELD = 125
"""Exit status where the memory cannot be taken."""
_PIECE = 2 * 2**20


class BallastError(Exception):
    """The memory cannot be taken; the text is one line."""


class Driver:
    """The few calls of the CUDA driver that this takes."""

    def __init__(self) -> None:
        try:
            self._cuda = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise BallastError(f"no CUDA driver here: {error}") from None
        self._call("cuInit", 0)

    def count(self) -> int:
        """Visible GPUs."""
        count = ctypes.c_int()
        self._call("cuDeviceGetCount", ctypes.byref(count))
        return count.value

    def use(self, index: int) -> None:
        """Make a GPU the one that is meant from here on."""
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self._call("cuDeviceGet", ctypes.byref(device), index)
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._call("cuCtxSetCurrent", context)

    def free_bytes(self) -> int:
        """Free memory of that GPU."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def take(self, size: int) -> None:
        """Take memory of that GPU until this process ends."""
        place = ctypes.c_uint64()
        self._call("cuMemAlloc_v2", ctypes.byref(place), ctypes.c_size_t(size))

    def _call(self, name: str, *arguments: object) -> None:
        status = getattr(self._cuda, name)(*arguments)
        if status != 0:
            raise BallastError(f"{name} failed with CUDA error {status}")


def hold(driver: Driver, leave_gib: float) -> list[float]:
    """Take all but so much of every GPU; GiB taken of each. Raises BallastError."""
    taken = []
    for index in range(driver.count()):
        driver.use(index)
        size = (driver.free_bytes() - int(leave_gib * GIB)) // _PIECE * _PIECE
        if size > 0:
            driver.take(size)
        taken.append(max(size, 0) / GIB)
    if not taken:
        raise BallastError("no GPU is visible")
    return taken


def main(words: list[str]) -> int:
    """Hold, run, and end as the command did."""
    try:
        taken = hold(Driver(), float(words[0]))
    except (BallastError, IndexError, ValueError) as error:
        print(f"ballast: {error}", file=sys.stderr, flush=True)
        return NOT_HELD
    held = ", ".join(f"{gib:.2f}" for gib in taken)
    print(f"ballast: holding {held} GiB", file=sys.stderr, flush=True)
    try:
        child = subprocess.Popen(words[1:])
    except OSError as error:
        print(f"ballast: {words[1:2]}: {error.strerror}", file=sys.stderr, flush=True)
        return NOT_HELD
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda caught, _: child.send_signal(caught))
    status = child.wait()
    if status < 0:
        signal.signal(-status, signal.SIG_DFL) if -status != signal.SIGKILL else None
        os.kill(os.getpid(), -status)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
