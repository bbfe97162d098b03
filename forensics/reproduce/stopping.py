"""The user's wish to stop: once, and the trial ends in order; twice, and it ends at once."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_SIGNALS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")


class Stop:
    """Counts the requests to stop; `ask` may be called from any thread."""

    def __init__(self) -> None:
        self._asked = 0
        self.by = ""
        """What asked first: the name of a signal, or what the caller said."""

    def ask(self, by: str = "the user") -> None:
        """Stop, or stop faster."""
        self.by = self.by or by
        self._asked += 1

    @property
    def requested(self) -> bool:
        """Whether to stop."""
        return self._asked > 0

    @property
    def hurried(self) -> bool:
        """Whether to stop without waiting for anybody."""
        return self._asked > 1

    @contextlib.contextmanager
    def on_signals(self) -> Iterator[None]:
        """Take signals as requests, but for those that are ignored (`nohup`, `&` in a script)."""

        def ask(number: int, frame: FrameType | None) -> None:
            self.ask(signal.Signals(number).name)

        before: dict[int, object] = {}
        if threading.current_thread() is threading.main_thread():
            for name in _SIGNALS:
                number = getattr(signal, name, None)
                if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
                    before[number] = signal.signal(number, ask)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)  # type: ignore[arg-type]
