"""Trials while they run: a line for each, renewed in place on a terminal, lines elsewhere."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

from rich.console import Console
from rich.live import Live
from rich.text import Text

from forensics.live.notices import FindingNotice, PhaseNotice, ProgressNotice
from forensics.reproduce.notices import (
    Decided,
    Heard,
    Notice,
    ProbeBegan,
    Settled,
    TrialBegan,
    TrialEnded,
)
from forensics.views.clean import one_line
from forensics.views.live.words import bar_words
from forensics.views.reproduce.words import outcome_words
from forensics.views.words import PHASE, duration

_STYLE = {"passed": "green", "failed": "red"}


class TrialsView:
    """Tells the course of a reproduction; use it in a `with`."""

    def __init__(
        self, console: Console, *, quiet: bool = False, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._console, self._quiet, self._clock = console, quiet, clock
        self._moving = console.is_terminal and not console.is_dumb_terminal
        self._live: Live | None = None
        self._name, self._doing, self._began = "", "", 0.0

    def __enter__(self) -> TrialsView:
        return self

    def __exit__(self, *error: object) -> None:
        self._rest()

    def tell(self, notice: Notice) -> None:
        """Tell one notice."""
        if self._quiet:
            return
        match notice:
            case TrialBegan(trial, number, of, log):
                self._name, self._began = trial.name, self._clock()
                self._line(Text(f"{trial.name} ({number} of {max(number, of)}) started; log {log}"))
                self._do("starting")
            case Heard(_, PhaseNotice(_, phase, _)):
                self._do(PHASE.get(phase, phase), say=not self._moving)
            case Heard(_, ProgressNotice(state)) if state.bar is not None:
                self._do(bar_words(state.bar))
            case Heard(_, FindingNotice(_, finding, changed)) if not changed:
                if finding.severity == "critical":
                    said = f"{self._name}: {finding.rule}: {one_line(finding.title)}"
                    self._line(Text(said, style="yellow"))
            case ProbeBegan(_, goal):
                self._do(f"ready; asking it ({goal})", say=not self._moving)
            case Decided(_, outcome, because):
                self._do(f"{outcome}: {because}; ending it", say=not self._moving)
            case TrialEnded(result, kept):
                self._rest()
                took = (result.ended_at - result.started_at).total_seconds()
                head = Text(f"{result.name} ", style="bold")
                head.append(outcome_words(result), style=_STYLE.get(result.outcome, "yellow"))
                tail = "kept from before" if kept else f"after {duration(took)}"
                self._line(head.append(f" {tail}: {one_line(result.because)}", style="not bold"))
            case Settled(because, left_out):
                names = ", ".join(left_out)
                self._line(Text(f"left out, since the verdict stands: {names} ({because})"))

    def _do(self, what: str, *, say: bool = False) -> None:
        """What the trial at work does now."""
        self._doing = one_line(what)
        if say:
            self._line(Text(f"{self._name}: {self._doing}", style="dim"))
        elif self._moving:
            if self._live is None:
                self._live = Live(
                    get_renderable=self._now,
                    console=self._console,
                    transient=True,
                    refresh_per_second=2,
                )
                self._live.start()
            else:
                self._live.refresh()

    def _now(self) -> Text:
        spent = duration(self._clock() - self._began)
        line = Text(f"{self._name}: {self._doing}  {spent}", style="dim")
        line.truncate(self._console.width, overflow="ellipsis")
        return line

    def _line(self, text: Text) -> None:
        clean = Text(one_line(text.plain))
        clean.spans = text.spans if clean.plain == text.plain else []
        clean.style = text.style
        self._console.print(clean, soft_wrap=True)

    def _rest(self) -> None:
        if self._live is not None:
            with contextlib.suppress(OSError):
                self._live.stop()
            self._live = None
