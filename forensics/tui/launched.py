"""The engine of a launch that the program starts itself: the supervision of `run`."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import replace

from forensics.live.notices import PRECURSOR, TIMED_OUT, Verdict
from forensics.live.session import Enrich
from forensics.live.supervise import Plan, Supervisor
from forensics.live.watch import Goal, Watch
from forensics.reading import Source
from forensics.rules import Settings
from forensics.tui.engine import Broke, News, Post
from forensics.tui.following import Teller, ToldSession
from forensics.tui.news import Said, verdict_news
from forensics.tui.store import EventStore

INTERNAL = 70


class LaunchedWatch(Watch):
    """A watch that ends the command when the user leaves, or when its plan says so.

    An error in the watching ends the watching, not the command.
    """

    plan: Plan
    teller: Teller
    left: threading.Event
    broken = False

    def heard(self, source: int, data: bytes) -> None:
        """See `Watch`."""
        if not self.broken:
            with self._surviving():
                super().heard(source, data)

    def step(self) -> Verdict | None:
        """A verdict if the command is to be ended."""
        if self.left.is_set():
            return Verdict("stopped", "shutdown", 0, "you quit")
        verdict = None
        if not self.broken:
            with self._surviving():
                verdict = self._stepped()
        return verdict

    def finish(self, because: str, *, gone: bool = False) -> Verdict:
        """See `Watch`."""
        if self.broken:
            return Verdict("unknown", "init", INTERNAL, "watching had to be given up")
        return super().finish(because, gone=gone)

    @contextlib.contextmanager
    def _surviving(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            self.broken = True
            words = f"internal error, the command goes on unwatched: {error!r}"
            self.teller.post(News(words, "bad"))

    def _stepped(self) -> Verdict | None:
        verdict = super().step()
        self.teller.tell()
        if verdict is not None and not self._ends(verdict):
            self.teller.judged(verdict)
            return None
        return verdict

    def _ends(self, verdict: Verdict) -> bool:
        if verdict.exit_code in (PRECURSOR, TIMED_OUT):
            return True
        if verdict.exit_code == 0:
            return self.plan.stop_when_reached and verdict.outcome in ("ready", "serving")
        return self.plan.stop_when_failed


class Launched:
    """Starts a command, keeps its log, and follows it. Raises OSError if it cannot be started."""

    live = True

    def __init__(
        self, plan: Plan, goal: Goal, settings: Settings, enrich: Enrich | None = None
    ) -> None:
        self.store = EventStore([Source(0, plan.log)], live=True)
        self._left = threading.Event()
        self._thread: threading.Thread | None = None
        self._verdict: Verdict | None = None
        session = ToldSession([plan.log], settings, self.store, enrich)
        self._post: Post = lambda message: None
        watch = LaunchedWatch(session, goal, lambda notice: None)
        watch.plan, watch.left = plan, self._left
        self._teller = watch.teller = Teller(session, watch, self._post)
        # With `hurry` the signals are ours: they come to the terminal program, in its own thread.
        mine = replace(plan, hurry=lambda: False)
        nowhere = {"stdout": lambda data: None, "stderr": lambda data: None}
        self._supervisor = Supervisor(mine, watch, nowhere)

    @property
    def runs_command(self) -> bool:
        """See `Engine`."""
        return self._thread is not None and self._thread.is_alive()

    def start(self, post: Post) -> None:
        """See `Engine`."""
        self._teller.post = post
        self.store.start()
        self._thread = threading.Thread(target=self._work, name="run", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """See `Engine`; the command is asked to end, and ended if it does not."""
        self._left.set()
        self._teller.post = lambda message: None

    def wait(self) -> Verdict | None:
        """Until the command has ended; its verdict."""
        if self._thread is not None:
            self._thread.join()
        self.store.close()
        return self._verdict

    def _work(self) -> None:
        try:
            self._verdict = self._supervisor.run()
        except Exception as error:
            self._teller.post(Broke(error))
            return
        self.store.end(0)
        self._teller.verdict = None
        self._teller.judged(self._verdict)
        if self._verdict.command_status is not None:
            self._teller.post(News(*_ended(self._verdict)))


def _ended(verdict: Verdict) -> Said:
    words, tone = verdict_news(verdict)
    return f"{words} (exit status of the command: {verdict.command_status})", tone
