"""Runs the user's command for each finding, with the finding as JSON on its standard input.

The command is an argument list; a finding's text comes from an untrusted log and never becomes
part of a command line. The hook runs in a thread, one finding after the other.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Callable, Sequence
from queue import Queue

TIMEOUT_S = 10.0
"""After so long a hook is ended."""

_MOST_WAITING = 100


class FindingHook:
    """Calls a command for findings; what goes wrong is reported and never fatal."""

    def __init__(
        self, command: Sequence[str], report: Callable[[str], None], timeout_s: float = TIMEOUT_S
    ) -> None:
        self._command = list(command)
        self._report = report
        self._timeout_s = timeout_s
        self._queue: Queue[str | None] = Queue(_MOST_WAITING)
        self._thread = threading.Thread(target=self._work, name="on-finding", daemon=True)
        self._thread.start()

    def call(self, document: str) -> None:
        """Hand over one finding, as JSON text."""
        if self._queue.full():
            self._report(f"hook {self._command[0]}: too slow, a finding was not handed over")
            return
        self._queue.put(document)

    def close(self) -> None:
        """Wait for the findings handed over, for as long as one may take."""
        self._queue.put(None)
        self._thread.join(self._timeout_s + 1.0)

    def _work(self) -> None:
        while (document := self._queue.get()) is not None:
            if problem := self._run(document):
                self._report(f"hook {self._command[0]}: {problem}")

    def _run(self, document: str) -> str | None:
        """Run the command; returns what went wrong."""
        try:
            done = subprocess.run(
                self._command,
                input=document.encode(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=self._timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"ended after {self._timeout_s:g} s"
        except OSError as error:
            return error.strerror or str(error)
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            return f"exit status {done.returncode}" + (f": {said[-1][:200]}" if said else "")
        return None
