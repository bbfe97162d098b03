"""The engine of a log that grows: the session of `watch`, told to the timeline as it goes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from forensics.diagnosis import Diagnosis
from forensics.events import Event
from forensics.live.follow import Follower, PipeFollower, follower_of
from forensics.live.loop import follow
from forensics.live.notices import Notice, Remark, Verdict
from forensics.live.processes import WriterVigil
from forensics.live.session import Enrich, Session
from forensics.live.watch import Goal, Watch
from forensics.reading import Source
from forensics.rules import Settings
from forensics.tui.engine import Arrived, Broke, News, Post, Stopped
from forensics.tui.model import loaded_from
from forensics.tui.news import news_of, verdict_news
from forensics.tui.store import EventStore

_NEWS_EVERY_S = 0.5
_DRAW_EVERY_S = 0.3
_DRAW_SILENT_S = 2.0
_OVER = ("failed", "hung", "stopped")


class ToldSession(Session):
    """A session that hands its bytes to the store as well, and keeps its last diagnosis."""

    def __init__(
        self,
        paths: Sequence[str],
        settings: Settings,
        store: EventStore,
        enrich: Enrich | None = None,
    ) -> None:
        super().__init__(paths, settings, enrich)
        self.latest: Diagnosis | None = None
        self._store = store

    def feed(self, source: int, data: bytes) -> list[Event]:
        """See `Session`."""
        self._store.feed(source, data)
        return super().feed(source, data)

    def snapshot(self) -> Diagnosis:
        """See `Session`."""
        self.latest = super().snapshot()
        return self.latest


@dataclass(slots=True)
class Teller:
    """Tells the app what a watch comes to: drawn no more often than one can look at."""

    session: ToldSession
    watch: Watch
    post: Post
    verdict: Verdict | None = None
    """What the waiting came to, once it did."""
    _drawn: Diagnosis | None = None
    _clock: tuple[datetime, float] | None = None
    """The last time in the log, and when it was first seen, in seconds of a steady clock."""
    _next_draw: float = 0.0
    _next_news: float = 0.0
    _drawn_at: float = 0.0

    def tell(self, *, at_once: bool = False) -> None:
        """Post what is new. Called in the thread that feeds the session, between two feeds."""
        now = time.monotonic()
        latest = self.session.latest
        fresh = latest is not self._drawn and (now >= self._next_draw or at_once)
        if latest is not None and (fresh or self._lags(now)):
            self._drawn, self._next_draw = latest, now + _DRAW_EVERY_S
            self._drawn_at = now
            self.post(Arrived(loaded_from(latest, live=True, until=self._until(latest, now))))
        if now >= self._next_news or at_once:
            self._next_news = now + _NEWS_EVERY_S
            self.post(self._news())

    def judged(self, verdict: Verdict) -> None:
        """The waiting came to something."""
        if self.verdict is None or verdict.run != self.verdict.run:
            self.verdict = verdict
            self.tell(at_once=True)

    def _lags(self, now: float) -> bool:
        """A launch goes on without a line, and its lanes have not been drawn for a while."""
        report = self.watch.report
        going = report is not None and report.run.outcome not in _OVER and self._clock is not None
        return going and self.verdict is None and now - self._drawn_at >= _DRAW_SILENT_S

    def _until(self, latest: Diagnosis, now: float) -> datetime | None:
        """The present in the log's clock: its last time, and what has passed since."""
        run = latest.reports[-1].run if latest.reports else None
        if run is None or run.ended_at is None or run.outcome in _OVER:
            return None
        if self._clock is None or self._clock[0] != run.ended_at:
            self._clock = (run.ended_at, now)
        return run.ended_at + timedelta(seconds=now - self._clock[1])

    def _news(self) -> News:
        report = self.watch.report
        if self.verdict is not None and (report is None or report.run.number == self.verdict.run):
            return News(*verdict_news(self.verdict))
        return News(*news_of(self.watch.state()))


class FollowedWatch(Watch):
    """A watch that goes on when it has come to a verdict: the log may go on as well."""

    on_verdict: Callable[[Verdict], None]

    def step(self) -> Verdict | None:
        """See `Watch`; always None."""
        verdict = super().step()
        if verdict is not None:
            self.on_verdict(verdict)
        return None


class LogFollower:
    """Follows growing logs until the user leaves. `-` is read from the descriptor given."""

    live = True
    runs_command = False

    def __init__(self, paths: Sequence[str], settings: Settings, pipe: int | None = None) -> None:
        self._paths, self._settings, self._pipe = list(paths), settings, pipe
        self._stop = threading.Event()
        self.store = EventStore([Source(i, p) for i, p in enumerate(self._paths)], live=True)
        self._teller: Teller | None = None

    def start(self, post: Post) -> None:
        """See `Engine`."""
        self.store.start()
        threading.Thread(target=self._work, args=(post,), name="follow", daemon=True).start()

    def stop(self) -> None:
        """See `Engine`."""
        self._stop.set()
        threading.Thread(target=self.store.close, daemon=True).start()

    def wait(self) -> Verdict | None:
        """See `Engine`; None where the user left before there was a verdict."""
        return self._teller.verdict if self._teller else None

    def _work(self, post: Post) -> None:
        try:
            session = ToldSession(self._paths, self._settings, self.store)
            vigil = WriterVigil()
            watch = FollowedWatch(session, Goal("failed", None), _quiet(post), vigil=vigil)
            teller = self._teller = Teller(session, watch, post)
            watch.on_verdict = teller.judged

            def each_round() -> None:
                if self._stop.is_set():
                    raise Stopped
                teller.tell()

            verdict = follow(self._paths, session, watch, vigil, each_round, self._followers())
            for source in range(len(self._paths)):
                self.store.end(source)
            teller.verdict = None
            teller.judged(verdict)
        except Stopped:
            return
        except Exception as error:
            post(Broke(error))

    def _followers(self) -> list[Follower]:
        return [
            PipeFollower(self._pipe)
            if path == "-" and self._pipe is not None
            else follower_of(path)
            for path in self._paths
        ]


def _quiet(post: Post) -> Callable[[Notice], None]:
    """Of the notices the timeline says what concerns the following itself; it draws the rest."""

    def tell(notice: Notice) -> None:
        if isinstance(notice, Remark):
            post(News(notice.text))

    return tell
