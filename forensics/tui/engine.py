"""What feeds the timeline, in threads of its own: a reader of finished logs, or one that follows.

An engine tells the app by messages, which Textual takes from any thread. It is stopped by a flag
that its thread looks at: the program ends when the user says so, not when a log is read.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol

from textual.message import Message

from forensics import pipeline
from forensics.diagnosis import Diagnosis
from forensics.live.notices import Verdict
from forensics.reading import find_sources
from forensics.rules import Settings
from forensics.tui.model import Loaded, loaded_from
from forensics.tui.store import EventStore

Post = Callable[[Message], object]


class Progress(Message):
    """So many bytes are read, of so many if that is known."""

    def __init__(self, done: int, total: int | None) -> None:
        super().__init__()
        self.done = done
        self.total = total


class Arrived(Message):
    """There is something to show, or more of it."""

    def __init__(self, loaded: Loaded) -> None:
        super().__init__()
        self.loaded = loaded


class Broke(Message):
    """The engine cannot go on."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


class News(Message):
    """What a followed launch is doing, in a few words."""

    def __init__(self, text: str, tone: str = "") -> None:
        super().__init__()
        self.text = text
        self.tone = tone


class Engine(Protocol):
    """What the app asks of an engine."""

    store: EventStore
    live: bool
    """It follows something that may still grow."""

    def start(self, post: Post) -> None:
        """Begin; at once, in threads."""

    def stop(self) -> None:
        """End; returns at once."""

    @property
    def runs_command(self) -> bool:
        """A command is running that the engine started and would leave behind."""

    def wait(self) -> Verdict | None:
        """Until everything it started has ended; how a followed launch ended, if it did."""


class Stopped(Exception):
    """Ends the thread of an engine; no error."""


class Reader:
    """Reads finished logs: the lines for the store, and the diagnosis beside it.

    Raises `InputError` for inputs that are missing or cannot be read.
    """

    live = False
    runs_command = False

    def __init__(self, paths: Sequence[str], settings: Settings) -> None:
        self._paths, self._settings = list(paths), settings
        self.diagnosis: Diagnosis | None = None
        """What was read, once it is."""
        self._stop = threading.Event()
        self._post: Post = lambda message: None
        sources, _ = find_sources(self._paths)
        self.store = EventStore(sources)

    def start(self, post: Post) -> None:
        """See `Engine`."""
        self._post = post
        self.store.start()
        threading.Thread(target=self._read, name="analyze", daemon=True).start()

    def stop(self) -> None:
        """See `Engine`."""
        self._stop.set()
        self._post = lambda message: None
        threading.Thread(target=self.store.close, daemon=True).start()

    def wait(self) -> Verdict | None:
        """See `Engine`; what it reads can be left."""
        return None

    def _read(self) -> None:
        try:
            self.diagnosis = pipeline.analyze(self._paths, self._settings, self._progress)
            loaded = loaded_from(self.diagnosis)
        except Stopped:
            return
        except Exception as error:
            self._post(Broke(error))
        else:
            self._post(Arrived(loaded))

    def _progress(self, done: int, total: int | None) -> None:
        if self._stop.is_set():
            raise Stopped
        self._post(Progress(done, total))
