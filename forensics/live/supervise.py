"""Runs a launch itself: passes its output on, keeps its log, forwards signals, watches it.

The command is an argument list and never sees a shell. It gets a session of its own, so that it
can be ended with all its children, and a signal reaches it once.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import BinaryIO, Protocol

from forensics.live.merging import LineMerger
from forensics.live.notices import PRECURSOR, TIMED_OUT, Verdict
from forensics.live.processes import GroupVigil, Vigil, members

FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

_PORTION = 1 << 16
_TICK_S = 0.05
_PIPES_AFTER_S = 2.0
"""Grandchildren may keep the pipes open; after the command's end they are read so much longer."""
_LEADER_S = 6.0
_STUCK_AFTER_S = 20.0

Sink = Callable[[bytes], None]


class Watching(Protocol):
    """What judges the output: a `Watch`, or something around one."""

    vigil: Vigil | None

    def heard(self, source: int, data: bytes) -> None:
        """Bytes came."""

    def caught_up(self) -> None:
        """All that was there before was heard."""

    def step(self) -> Verdict | None:
        """A verdict if the waiting is over; asked often."""

    def finish(self, because: str, *, gone: bool = False) -> Verdict:
        """The verdict when the command has ended."""

    def remark(self, text: str) -> None:
        """Tell something about the watching itself."""


@dataclass(slots=True)
class Plan:
    """What to run and how."""

    command: Sequence[str]
    log: str
    env: Mapping[str, str]
    grace_s: float = 15.0
    """Between the request to end (SIGTERM) and the order (SIGKILL)."""
    stop_when_reached: bool = False
    """End the command once it has come to what is waited for."""
    stop_when_failed: bool = False
    """End the command when its launch has failed or hangs, should it not end by itself."""
    hurry: Callable[[], bool] | None = None
    """Set for a trial: any verdict ends the command, signals are its owner's, and the grace ends
    when this says so."""
    leader_first: Callable[[], bool] | None = None
    """Whether to ask only the command itself at first, with SIGINT. A server that is ready ends its
    children in order then (SGLang 0.5.16: in 2 s; in 6 to 7 s of a SIGTERM, which it takes for a
    crash when its children get it too). One that still loads would not listen for minutes."""


class Supervisor:
    """One supervised command. Raises OSError if it cannot be started or its log not written."""

    def __init__(self, plan: Plan, watch: Watching, sinks: Mapping[str, Sink]) -> None:
        self._plan, self._watch, self._sinks = plan, watch, sinks
        self._verdict: Verdict | None = None
        self._signalled = False
        self._kill_at: float | None = None
        self._ask_at: float | None = None
        self._killed_at: float | None = None
        self._broken = False
        self._log = open(plan.log, "wb", buffering=0)  # noqa: SIM115 - closed by `run`
        try:
            self._child = subprocess.Popen(
                list(plan.command),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(plan.env),
                start_new_session=True,
            )
        except OSError:
            self._log.close()
            raise
        self._merger = LineMerger(self._log)
        watch.vigil = GroupVigil(self._child.pid)

    @property
    def group(self) -> int:
        """The command's process group."""
        return self._child.pid

    def run(self) -> Verdict:
        """Until the command has ended, with all it started."""
        self._watch.caught_up()
        with self._log, self._forwarding(), selectors.DefaultSelector() as selector:
            for name, pipe in (("stdout", self._child.stdout), ("stderr", self._child.stderr)):
                assert pipe is not None
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe, selectors.EVENT_READ, name)
            self._pump(selector)
            self._hear(self._merger.release(everything=True))
        self._end_rest()
        return self._final()

    def _pump(self, selector: selectors.BaseSelector) -> None:
        ended_at: float | None = None
        while selector.get_map() and not self._is_stuck():
            for key, _ in selector.select(_TICK_S):
                self._read(selector, key.fileobj, str(key.data))  # type: ignore[arg-type]
            self._hear(self._merger.release())
            self._step()
            if self._child.poll() is not None:
                ended_at = ended_at if ended_at is not None else time.monotonic()
                if time.monotonic() - ended_at > _PIPES_AFTER_S:
                    return
        while self._child.poll() is None and not self._is_stuck():
            time.sleep(_TICK_S)
            self._step()

    def _read(self, selector: selectors.BaseSelector, pipe: BinaryIO, name: str) -> None:
        try:
            data = os.read(pipe.fileno(), _PORTION)
        except BlockingIOError:
            return
        if not data:
            selector.unregister(pipe)
            pipe.close()
            return
        written = self._merger.write(name, data)
        self._sinks[name](data)
        self._hear(written)

    def _hear(self, data: bytes) -> None:
        """Hand bytes to the watch; whatever happens there, the command goes on."""
        if not data or self._broken:
            return
        try:
            self._watch.heard(0, data)
        except Exception as error:
            self._break(error)

    def _step(self) -> None:
        if self._kill_at is not None and (time.monotonic() >= self._kill_at or self._hurried()):
            self._kill_at, self._killed_at = None, time.monotonic()
            self._signal(signal.SIGKILL)
        if self._ask_at is not None and time.monotonic() >= self._ask_at:
            self._ask_all()
        if self._verdict is not None or self._broken:
            return
        try:
            verdict = self._watch.step()
        except Exception as error:
            self._break(error)
            return
        if verdict is not None and self._ends(verdict):
            self._verdict = verdict
            self._watch.remark(f"ending the command: {verdict.because}")
            self._terminate()

    def _ends(self, verdict: Verdict) -> bool:
        """Whether a verdict is a reason to end the command."""
        if self._plan.hurry is not None:
            return True
        if verdict.exit_code in (PRECURSOR, TIMED_OUT):
            return True
        if verdict.exit_code == 0:
            return self._plan.stop_when_reached and verdict.outcome in ("ready", "serving")
        return self._plan.stop_when_failed

    def _is_stuck(self) -> bool:
        """Killed and still there: it waits for a device that does not answer."""
        return self._killed_at is not None and time.monotonic() - self._killed_at > _STUCK_AFTER_S

    def _hurried(self) -> bool:
        return self._plan.hurry is not None and self._plan.hurry()

    def _terminate(self) -> None:
        now = time.monotonic()
        self._kill_at = now + self._plan.grace_s
        if self._plan.leader_first is not None and self._plan.leader_first():
            self._ask_at = now + min(_LEADER_S, self._plan.grace_s / 2)
            self._child.send_signal(signal.SIGINT)
        else:
            self._ask_all()

    def _ask_all(self) -> None:
        self._ask_at = None
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)  # a stopped process cannot obey

    def _signal(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.group, number)

    @contextlib.contextmanager
    def _forwarding(self) -> Iterator[None]:
        def forward(number: int, frame: FrameType | None) -> None:
            self._signalled = True
            self._signal(number)

        numbers = FORWARDED if self._plan.hurry is None else ()
        before = {number: signal.signal(number, forward) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end_rest(self) -> None:
        """End what the command left behind."""
        if not members(self.group):
            return
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + min(self._plan.grace_s, 5.0)
        while members(self.group) and time.monotonic() < deadline and not self._hurried():
            time.sleep(_TICK_S)
        self._signal(signal.SIGKILL)

    def _final(self) -> Verdict:
        status = self._child.returncode
        if self._broken:
            verdict = Verdict("unknown", "init", 70, "watching had to be given up")
        elif self._verdict is not None:
            verdict = self._verdict
        else:
            asked = self._signalled
            how = f"the command ended with {_in_words(status)}"
            killed = status < 0 or status > 128  # a shell adds the signal to 128
            verdict = self._watch.finish(how, gone=killed and not asked)
            verdict = _settled(verdict, status, asked)
        verdict.command_status, verdict.log = status, self._plan.log
        return verdict

    def _break(self, error: Exception) -> None:
        self._broken = True
        if self._plan.hurry is None:
            self._watch.remark(f"internal error, the command goes on unwatched: {error!r}")
        else:
            self._watch.remark(f"internal error, the command is ended: {error!r}")
            self._terminate()


def _settled(verdict: Verdict, status: int, asked: bool) -> Verdict:
    """The verdict of a command that ended by itself, or because the user asked it to."""
    if verdict.outcome in ("failed", "hung", "degraded"):
        return verdict
    if status == 0 or asked:
        verdict.outcome = "stopped" if verdict.outcome != "unknown" or asked else "unknown"
        verdict.exit_code = 0 if asked or verdict.outcome == "stopped" else 1
    else:
        verdict.outcome, verdict.exit_code = "failed", 1
    return verdict


def _in_words(status: int) -> str:
    if status >= 0:
        return f"exit status {status}"
    try:
        return f"signal {signal.Signals(-status).name}"
    except ValueError:
        return f"signal {-status}"
