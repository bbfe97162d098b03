"""What a followed launch is doing, in a few words for the top line."""

from __future__ import annotations

from forensics.live.notices import Verdict
from forensics.live.progress import RunState
from forensics.views.live.words import (
    GOOD,
    bar_words,
    foresee,
    late_words,
    silence_words,
    verdict_word,
)
from forensics.views.words import DOING

Said = tuple[str, str]
"""Words and their tone: `bad`, `warn`, `good` or empty."""

_WORTH_SAYING_S = 3.0


def news_of(state: RunState | None) -> Said:
    """The launch at this moment; what is gravest alone."""
    if state is None:
        return "waiting for the first lines of a launch", ""
    if state.alarm is not None:
        grave = state.alarm.severity == "critical"
        return foresee(state.alarm), "bad" if grave else "warn"
    if late := late_words(state):
        return late, "warn"
    if state.unusual_silence:
        return silence_words(state), "warn"
    if state.outcome in GOOD:
        return state.outcome.upper(), "good"
    doing = DOING.get(state.phase, state.phase)
    if state.bar:
        return f"{doing}: {bar_words(state.bar)}", ""
    silent = f", {silence_words(state)}" if state.silent_s >= _WORTH_SAYING_S else ""
    return f"{doing}{silent}", ""


def verdict_news(verdict: Verdict) -> Said:
    """How it ended: the trail says why."""
    good = verdict.exit_code == 0 and verdict.outcome in GOOD
    because = "" if verdict.outcome == "failed" else f": {verdict.because}"
    return f"{verdict_word(verdict)}{because}", "good" if good else "bad"
