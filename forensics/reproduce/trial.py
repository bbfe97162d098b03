"""One trial: a launch as the plan has it, followed to the line that decides, and taken down."""

from __future__ import annotations

import os
import platform
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TextIO

from forensics.diagnosis import RunReport
from forensics.launch.redact import redact_named
from forensics.live.notices import Notice, Remark
from forensics.live.session import Session
from forensics.live.supervise import Plan, Supervisor
from forensics.live.surroundings import Surroundings, surroundings_of
from forensics.live.watch import Goal, Watch
from forensics.redact import REDACTED, redact, redact_argv
from forensics.reproduce import gpu_memory
from forensics.reproduce.deciding import Decision, TrialWatch
from forensics.reproduce.figures import measured
from forensics.reproduce.folder import ENVIRONMENT, LOG, write
from forensics.reproduce.guardian import Guardian
from forensics.reproduce.model import Failure, Figures, TrialPlan, TrialResult
from forensics.reproduce.notices import Decided, Heard, ProbeBegan, Tell, nobody
from forensics.reproduce.probe_requests import Answer, Probe, Target, target_of
from forensics.reproduce.stopping import Stop
from forensics.reproduce.takedown import MARK, Herd
from forensics.rules import Settings
from forensics.views.json import dumps
from forensics.views.live.ndjson import NdjsonView

GRACE_S = 15.0
"""Between the request to end and the order; SGLang takes two seconds when it is well."""

_REST_GRACE_S = 3.0
"""The same for what is still there when the command itself has ended."""


@dataclass(slots=True)
class Terms:
    """What is the same for all trials of a plan."""

    wrap: Callable[[TrialPlan, Mapping[str, str]], list[str]] | None = None
    """Of a transport: the words to run here for a trial there, and for variables that the launch
    must have there beside its own. None: the trial's command is run here."""
    gpus_here: bool = True
    """Whether the launch takes memory of the GPUs of this machine."""
    reach: Callable[[Target], Target | None] = lambda target: target
    """Where a server is reached from here; None: not at all, which a transport may mean."""
    env: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    settings: Settings | None = None
    tell: Tell = nobody
    stop: Stop = field(default_factory=Stop)
    grace_s: float = GRACE_S


def run_trial(
    trial: TrialPlan, folder: Path, expected: Failure | None, terms: Terms | None = None
) -> TrialResult:
    """Make one launch and say what it came to; nothing of it is left running.

    `folder` is the trial's own: its log, events and environment are kept there. `expected` is the
    failure that the plan is about. Raises OSError if the folder cannot be written to.
    """
    running = _Running(trial, folder, expected, terms or Terms())
    return running.run()


class _Running:
    """A trial at work."""

    def __init__(
        self, trial: TrialPlan, folder: Path, expected: Failure | None, terms: Terms
    ) -> None:
        self._trial, self._folder, self._expected, self._terms = trial, folder, expected, terms
        self._mark = uuid.uuid4().hex
        own = {"PYTHONUNBUFFERED": "1", MARK: self._mark}
        if terms.wrap is None:
            self._words = list(trial.command)
            self._env = environment_of(trial, terms.env) | own
        else:
            self._words = terms.wrap(trial, own)
            self._env = {**terms.env, MARK: self._mark}
        self._log = f"{trial.name}/{LOG}"
        self._status: int | None = None
        self._clean = True

    def run(self) -> TrialResult:
        began = datetime.now().astimezone()
        around = self._surroundings()
        self._keep_environment(around, began)
        before = gpu_memory.free_gib() if self._terms.gpus_here else None
        with (self._folder / "events.ndjson").open("w", encoding="utf-8") as events:
            decision, report = self._launch(around, events)
        returned = gpu_memory.is_returned(before, hurry=lambda: self._terms.stop.hurried)
        return TrialResult(
            name=self._trial.name,
            role=self._trial.role,
            command=redact_argv(self._words),
            started_at=began,
            ended_at=datetime.now().astimezone(),
            outcome=decision.outcome,
            phase=decision.phase,
            because=redact(decision.because),
            decided_line=decision.line,
            failure=decision.failure,
            status=self._status,
            cleaned_up=self._clean,
            gpu_returned=returned,
            predicted=self._trial.predicted,
            measured=measured(report.run) if report else Figures(),
            log=self._log,
        )

    def _surroundings(self) -> Surroundings:
        """What the launch runs in; elsewhere that is known no further than the plan says it."""
        if self._terms.wrap is None:
            return surroundings_of(self._words, self._env)
        return Surroundings(list(self._trial.command), dict(self._trial.env), {})

    def _launch(self, around: Surroundings, events: TextIO) -> tuple[Decision, RunReport | None]:
        herd = Herd(self._mark)
        stop = self._terms.stop
        with Guardian(self._mark) as guardian:
            try:
                return self._supervised(around, self._telling(events), herd, guardian)
            finally:
                self._clean = herd.end(_REST_GRACE_S, lambda: stop.hurried)
                if self._clean:
                    guardian.dismiss()

    def _supervised(
        self,
        around: Surroundings,
        tell: Callable[[Notice], None],
        herd: Herd,
        guardian: Guardian,
    ) -> tuple[Decision, RunReport | None]:
        session = Session([self._log], self._terms.settings, around.add_to)
        goal = Goal("failed", None, start_timeout_s=self._trial.timeout_s)
        watch = TrialWatch(
            Watch(session, goal, tell),
            self._trial,
            self._terms.stop,
            self._ask,
            lambda decision: self._decided(decision, herd),
            _seldom(lambda: herd.look(marks=False)),
            self._expected,
        )
        log, stop = str(self._folder / LOG), self._terms.stop
        plan = Plan(
            self._words,
            log,
            self._env,
            self._terms.grace_s,
            hurry=lambda: stop.hurried,
            leader_first=lambda: watch.is_serving and not stop.requested,
        )
        sinks: dict[str, Callable[[bytes], None]] = {"stdout": _nowhere, "stderr": _nowhere}
        try:
            supervisor = Supervisor(plan, watch, sinks)
        except OSError as error:
            said = f"{self._words[0]} cannot be started: {error.strerror or error}"
            return Decision("not-started", said), None
        herd.root = supervisor.group
        guardian.guard(supervisor.group)
        self._status = supervisor.run().command_status
        lost = Decision("interrupted", "watching the launch had to be given up: see events.ndjson")
        return watch.decision or lost, watch.report

    def _telling(self, events: TextIO) -> Callable[[Notice], None]:
        view = NdjsonView(events)

        def tell(notice: Notice) -> None:
            if not isinstance(notice, Remark):
                view.tell(notice)
            elif "internal error" in notice.text:
                events.write(dumps({"event": "remark", "text": notice.text}) + "\n")
            self._terms.tell(Heard(self._trial.name, notice))

        return tell

    def _decided(self, decision: Decision, herd: Herd) -> None:
        herd.look()  # who belongs to whom is lost as soon as parents end
        self._terms.tell(Decided(self._trial.name, decision.outcome, redact(decision.because)))

    def _ask(self, report: RunReport) -> Callable[[], Answer | None] | None:
        """Begin the probe; None where the server is not reached from here."""
        launch = report.run.launch
        target = target_of(self._trial.command, launch.flags, measured(report.run).context_len)
        reached = self._terms.reach(target)
        if reached is None:
            return None
        self._terms.tell(ProbeBegan(self._trial.name, self._trial.goal))
        probe = Probe(self._trial.goal, reached, self._trial.load)
        return lambda: probe.answer

    def _keep_environment(self, around: Surroundings, began: datetime) -> None:
        """What the launch ran in, without secrets; the mark finds what a lost tool left."""
        kept = {
            "mark": self._mark,
            "started_at": began.isoformat(),
            "command": redact_argv(self._words),
            "folder": os.getcwd(),
            "platform": platform.platform(),
            "set": {name: redact_named(name, text) for name, text in self._trial.env.items()},
            "unset": self._trial.unset_env,
            "env": {name: redact(text) for name, text in around.env.items()},
            "versions": around.versions,
        }
        write(self._folder / ENVIRONMENT, dumps(kept, indent=2) + "\n")


def environment_of(trial: TrialPlan, base: Mapping[str, str]) -> dict[str, str]:
    """The variables of a trial. A value that a log shows as redacted is left as it is here."""
    env = dict(base)
    for name in trial.unset_env:
        env.pop(name, None)
    return env | {name: text for name, text in trial.env.items() if REDACTED not in text}


def _seldom(act: Callable[[], object]) -> Callable[[], None]:
    """Does something four times a second, less often where it takes long."""
    due = 0.0

    def maybe() -> None:
        nonlocal due
        if (began := time.monotonic()) >= due:
            act()
            now = time.monotonic()
            due = now + max(0.25, 50 * (now - began))

    return maybe


def _nowhere(data: bytes) -> None:
    """The log has it."""
