"""Runs a plan: its trials in order, until the verdict stands; and goes on where it was cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from forensics import __version__
from forensics.redact import redact, redact_argv
from forensics.reproduce.folder import RunFolder
from forensics.reproduce.model import (
    Reproduction,
    ReproductionPlan,
    TrialPlan,
    TrialResult,
)
from forensics.reproduce.notices import Notice, Over, Settled, Tell, TrialBegan, TrialEnded, nobody
from forensics.reproduce.trial import Terms, run_trial
from forensics.reproduce.verdict import Ruling, proven, verdict

NextSearch = Callable[[ReproductionPlan, Sequence[TrialResult]], TrialPlan | None]
"""The next trial of a search, None when it is done."""

Complete = Callable[[ReproductionPlan], ReproductionPlan]

Best = Callable[[ReproductionPlan, Sequence[TrialResult]], dict[str, Any]]


@dataclass(slots=True)
class Extras:
    """What a run may have beside its plan."""

    next_search: NextSearch | None = None
    best: Best | None = None
    """What the search found so far, for the verdict."""
    terms: Terms = field(default_factory=Terms)


def run_plan(
    plan: ReproductionPlan, folder: Path, tell: Tell = nobody, extras: Extras | None = None
) -> Reproduction:
    """Run a plan in a new folder and say what came of it.

    Whatever ends it (the user, a crash of this program), no launch is left running and `resume`
    goes on from the last finished trial.

    Raises:
        FolderError: the folder is in use or holds another plan.
        OSError: it cannot be written to.
    """
    with RunFolder(folder).held() as held:
        held.begin(plan)
        return _Course(plan, held, tell, extras or Extras()).run()


def resume(
    folder: Path,
    tell: Tell = nobody,
    extras: Extras | None = None,
    complete: Complete = lambda plan: plan,
) -> Reproduction:
    """Go on with the plan of a folder; finished trials are not run again. Raises as `run_plan`.

    `complete` puts back what the folder does not keep.
    """
    with RunFolder(folder).held() as held:
        return _Course(complete(held.plan()), held, tell, extras or Extras()).run()


class _Course:
    """The course of one plan."""

    def __init__(
        self, plan: ReproductionPlan, folder: RunFolder, tell: Tell, extras: Extras
    ) -> None:
        self._plan, self._folder, self._extras = plan, folder, extras
        self._tell = _surely(tell)
        self._terms = replace(extras.terms, tell=self._tell)
        self._began = datetime.now().astimezone()
        self._results: list[TrialResult] = []
        self._obstacle: str | None = None

    def run(self) -> Reproduction:
        with self._terms.stop.on_signals():
            for number, trial in enumerate(list(self._plan.trials), start=1):
                if not self._goes_on():
                    break
                self._make(trial, number)
            self._search()
            reproduction = self._reproduction()
            self._folder.keep_reproduction(reproduction)
        self._tell(Over(reproduction))
        return reproduction

    def _goes_on(self) -> bool:
        if self._obstacle or self._terms.stop.requested:
            return False
        ruling = verdict(self._plan, self._results)
        if not ruling.settled or ruling.word in ("confirmed", "fix-holds"):
            return True
        done = {result.name for result in self._results}
        left = tuple(trial.name for trial in self._plan.trials if trial.name not in done)
        if left:
            self._tell(Settled(ruling.because, left))
        return False

    def _make(self, trial: TrialPlan, number: int) -> None:
        if (kept := self._folder.result(trial.name)) is not None:
            self._results.append(kept)
            self._tell(TrialEnded(kept, kept=True))
            return
        folder = self._folder.trial_folder(trial)
        self._tell(TrialBegan(trial, number, len(self._plan.trials), str(folder / "log")))
        result = run_trial(trial, folder, self._plan.failure, self._terms)
        self._folder.keep_result(result)
        self._results.append(result)
        self._tell(TrialEnded(result))
        if not result.cleaned_up:
            self._obstacle = f"processes of {trial.name} could not be ended"

    def _search(self) -> None:
        """Ask for trials of the search until there are none; each joins the plan before it runs."""
        ask = self._extras.next_search
        while ask is not None and self._goes_on():
            trial = ask(self._plan, self._results)
            if trial is None:
                return
            self._plan = self._plan.model_copy(update={"trials": [*self._plan.trials, trial]})
            self._folder.keep_plan(self._plan)
            self._make(trial, len(self._plan.trials))

    def _reproduction(self) -> Reproduction:
        ruling = self._ruling()
        best = self._extras.best(self._plan, self._results) if self._extras.best else {}
        command = proven(self._plan, ruling)
        if command and self._is_confirmed(best.get("command")):
            command = best["command"]
        return Reproduction(
            verdict=ruling.word,
            because=redact(ruling.because),
            exit_code=ruling.exit_code,
            tool=f"forensics {__version__}",
            created_at=self._began,
            plan=self._plan,
            trials=self._results,
            best=best,
            command=redact_argv(command) if command else None,
        )

    def _is_confirmed(self, command: list[str] | None) -> bool:
        again = {t.name for t in self._plan.trials if t.command == command}
        passed = [r for r in self._results if r.name in again and r.outcome == "passed"]
        return any(result.role == "confirmation" for result in passed)

    def _ruling(self) -> Ruling:
        ruling = verdict(self._plan, self._results)
        if self._obstacle and not ruling.settled:
            return Ruling("inconclusive", f"Stopped early: {self._obstacle}")
        if self._terms.stop.requested and ruling.word == "inconclusive":
            said = f"Stopped by {self._terms.stop.by} before it was decided; it can be resumed"
            return Ruling("inconclusive", said)
        return ruling


def _surely(tell: Tell) -> Tell:
    """Tells as long as somebody listens: a closed pipe or terminal ends no trial."""
    heard = True

    def maybe(notice: Notice) -> None:
        nonlocal heard
        if heard:
            try:
                tell(notice)
            except OSError:
                heard = False

    return maybe
