"""The engine of a launch that the program starts itself: the supervision of `run`."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forensics.live.notices import PRECURSOR, TIMED_OUT, Verdict
from forensics.live.session import Enrich
from forensics.live.supervise import Plan, Supervisor
from forensics.live.watch import Goal, Watch
from forensics.reading import Source
from forensics.rules import Settings
from forensics.tui.engine import Broke, News, Post
from forensics.tui.following import Teller, ToldSession
from forensics.tui.store import EventStore


@dataclass(frozen=True, slots=True)
class Launch:
    """What to run, what to wait for, and what ends it."""

    command: Sequence[str]
    log: str
    env: Mapping[str, str]
    goal: Goal
    grace_s: float = 15.0
    stop_when_reached: bool = False
    stop_when_failed: bool = False


class LaunchedWatch(Watch):
    """A watch that ends the command when the user leaves, or when its plan says so."""

    launch: Launch
    teller: Teller
    left: threading.Event

    def step(self) -> Verdict | None:
        """A verdict if the command is to be ended."""
        if self.left.is_set():
            return self.give_up(0, "you quit")
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
            return self.launch.stop_when_reached and verdict.outcome in ("ready", "serving")
        return self.launch.stop_when_failed


class Launched:
    """Starts a command, keeps its log, and follows it. Raises OSError if it cannot be started."""

    live = True

    def __init__(self, launch: Launch, settings: Settings, enrich: Enrich | None = None) -> None:
        self.store = EventStore([Source(0, launch.log)], live=True)
        self._left = threading.Event()
        self._thread: threading.Thread | None = None
        self._verdict: Verdict | None = None
        session = ToldSession([launch.log], settings, self.store, enrich)
        self._post: Post = lambda message: None
        watch = LaunchedWatch(session, launch.goal, lambda notice: None)
        watch.launch, watch.left = launch, self._left
        self._teller = watch.teller = Teller(session, watch, self._post)
        # With `hurry` the signals are ours: they come to the terminal program, in its own thread.
        plan = Plan(launch.command, launch.log, launch.env, launch.grace_s, hurry=lambda: False)
        nowhere = {"stdout": lambda data: None, "stderr": lambda data: None}
        self._supervisor = Supervisor(plan, watch, nowhere)

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


def _ended(verdict: Verdict) -> tuple[str, str]:
    from forensics.tui.news import verdict_news

    words, tone = verdict_news(verdict)
    return f"{words} (exit status of the command: {verdict.command_status})", tone
