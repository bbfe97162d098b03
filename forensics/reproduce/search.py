"""The best value of a numeric flag: which launch to try next, and what the trials say so far.

The search narrows a bracket between a value that holds and one that does not. Where to try next
follows from the ledger that a trial measured, so that two or three are enough; where ledgers
tell nothing, or after a few that told wrong, it halves the bracket. Only decided trials count:
one that was cut, or that failed for another reason than memory, moves no boundary.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from forensics.reproduce.boundary import FRACTION, Reading, boundaries
from forensics.reproduce.figures import predicted
from forensics.reproduce.flag_values import snapped, step_at, typed, value_in, with_value
from forensics.reproduce.model import (
    Change,
    Failure,
    Figures,
    ReproductionPlan,
    SearchAsk,
    TrialPlan,
    TrialResult,
)

MODEL_TRIALS = 3
"""After so many trials by the ledger every other one halves the bracket instead."""
MOST_UNDECIDED = 2
WHOLE_SHARE = 0.05
"""Whole numbers are near enough when they differ by this share."""
HIGHEST_FRACTION = 0.99
_MEMORY = frozenset(
    {"mem_fraction_too_low", "weights_do_not_fit", "kv_pool_undersized", "allocator_fragmentation"}
)


@dataclass(frozen=True, slots=True)
class Bracket:
    """The best value that held and the nearest one that did not."""

    good: float | None
    bad: float | None
    believed: float | None
    """What the search was told to hold, tried or not."""
    upward: bool

    def inside(self, value: float) -> bool:
        """Whether a value lies between what is known or believed to hold and what does not."""
        good = self.believed if self.good is None else self.good
        return (good is None or self.further(value, good)) and (
            self.bad is None or self.further(self.bad, value)
        )

    def further(self, one: float, other: float) -> bool:
        """Whether one value asks more than another."""
        return one > other if self.upward else one < other


def next_trial(
    plan: ReproductionPlan, results: Sequence[TrialResult], ask: SearchAsk
) -> TrialPlan | None:
    """The next launch of a search: a value to try, then a confirmation of the best; None: done.

    The caller adds it to the plan's trials, runs it, and asks again with its result.
    """
    readings = _readings(plan, results, ask)
    bracket = _bracket(readings, ask)
    searched = [r for r in results if r.role == "search"]
    undecided = sum(_holds(r, ask) is None for r in searched)
    if undecided >= MOST_UNDECIDED:
        return None
    if len(searched) < ask.trials:
        value = _next_value(readings, bracket, ask, len(searched) - undecided)
        if value is not None:
            return _trial(plan, readings, ask, value, f"search-{len(searched) + 1}")
    held = [r for r in readings if r.holds and r.value == bracket.good]
    if bracket.good is None or len(held) > 1:
        return None
    taken = {trial.name for trial in plan.trials} | {result.name for result in results}
    name = next(f"confirmation-{n}" for n in range(1, 99) if f"confirmation-{n}" not in taken)
    return _trial(plan, readings, ask, bracket.good, name)


def best(
    plan: ReproductionPlan, results: Sequence[TrialResult], ask: SearchAsk | None = None
) -> dict[str, Any]:
    """What the search found: `name`, `value`, `known_good`, `known_bad`, `command`; {} if nothing.

    `value` is one that held in a trial and failed in none.
    """
    ask = ask or plan.search
    if ask is None:
        return {}
    bracket = _bracket(_readings(plan, results, ask), ask)
    if bracket.good is None:
        return {}
    return {
        "name": ask.name,
        "value": _number(bracket.good, ask),
        "known_good": _number(bracket.good, ask),
        "known_bad": None if bracket.bad is None else _number(bracket.bad, ask),
        "command": with_value(_base(plan, ask).command, ask.name, bracket.good),
    }


def _next_value(
    readings: list[Reading], bracket: Bracket, ask: SearchAsk, decided: int
) -> float | None:
    """The value to try next; None when the search is done."""
    good = bracket.good
    if good is not None and bracket.bad is not None:
        room = WHOLE_SHARE * bracket.bad if ask.whole else ask.resolution
        step = step_at(bracket.bad, name=ask.name, whole=ask.whole)
        if abs(bracket.bad - good) <= max(room, step if ask.whole else 0.0) + 1e-9:
            return None
    found = _by_ledger(readings, bracket, ask)
    if found is not None and (decided < MODEL_TRIALS or decided % 2 == 0):
        careful, furthest = found
        if bracket.inside(careful):
            return careful
        if good is not None and abs(furthest - good) <= ask.resolution and not ask.whole:
            return None
        return _middle(bracket, ask, limit=furthest)
    return _middle(bracket, ask, limit=None)


def _by_ledger(
    readings: list[Reading], bracket: Bracket, ask: SearchAsk
) -> tuple[float, float] | None:
    """The boundary as it would be typed, and the furthest it can be.

    By the trial that is nearest to it, first by those that are not contradicted by now.
    """
    highest = HIGHEST_FRACTION if ask.name == FRACTION else math.inf
    found: list[tuple[bool, float, float, float]] = []
    for reading in readings:
        for place, limit in enumerate(boundaries(reading, ask, upward=bracket.upward)):
            careful = snapped(limit.careful, name=ask.name, whole=ask.whole, up=not bracket.upward)
            careful = min(careful, highest)
            far = place + abs(limit.careful - reading.value)
            found.append((not bracket.inside(careful), far, careful, min(limit.furthest, highest)))
    if not found:
        return None
    _, _, careful, furthest = min(found)
    return careful, furthest


def _middle(bracket: Bracket, ask: SearchAsk, limit: float | None) -> float | None:
    """A value between good and bad (or the furthest that can hold); None if none is left."""
    good = bracket.believed if bracket.good is None else bracket.good
    bad = bracket.bad
    closer = limit is not None and (bad is None or bracket.further(bad, limit))
    if limit is not None and closer and (good is None or bracket.further(limit, good)):
        bad = limit
    if bad is None:
        bad = None if good is None else HIGHEST_FRACTION if not ask.whole else 2 * good
    if bad is None:
        return None
    if good is None:
        middle = bad - 0.05 if not ask.whole else bad / 2
    else:
        middle = math.sqrt(good * bad) if ask.whole and 0 < 4 * good < bad else (good + bad) / 2
    for up in (not bracket.upward, bracket.upward):
        value = snapped(middle, name=ask.name, whole=ask.whole, up=up)
        if value > 0 and bracket.inside(value):
            return value
    untried = bracket.good is None and bracket.believed is not None
    return bracket.believed if untried and bracket.believed != bracket.bad else None


def _bracket(readings: list[Reading], ask: SearchAsk) -> Bracket:
    upward = ask.good is None or ask.bad is None or ask.good < ask.bad
    pick_bad, pick_good = (min, max) if upward else (max, min)
    failed = [r.value for r in readings if not r.holds]
    bad = pick_bad([*failed, *([] if ask.bad is None else [ask.bad])], default=None)
    held = [
        r.value
        for r in readings
        if r.holds and (bad is None or (r.value < bad if upward else r.value > bad))
    ]
    good = pick_good(held, default=None)
    believed = ask.good
    if believed is not None and bad is not None:
        still = believed < bad if upward else believed > bad
        believed = believed if still else None
    return Bracket(good, bad, believed, upward)


def _readings(
    plan: ReproductionPlan, results: Sequence[TrialResult], ask: SearchAsk
) -> list[Reading]:
    """The decided trials that differ from the search's launches in this flag alone."""
    base = _base(plan, ask)
    planned = {trial.name: trial for trial in plan.trials}
    found = []
    for result in results:
        trial = planned.get(result.name)
        command = trial.command if trial else result.command
        alike = trial is None or _alike(trial, base, ask.name)
        value, holds = value_in(command, ask.name), _holds(result, ask)
        if not alike or value is None or holds is None:
            continue
        running = value_in(command, "max_running_requests")
        found.append(
            Reading(
                value,
                holds,
                result.outcome == "passed",
                result.measured,
                None if running is None else int(running),
            )
        )
    return found


def _holds(result: TrialResult, ask: SearchAsk) -> bool | None:
    """Whether a trial's value holds; None where the trial does not say."""
    if result.outcome == "passed":
        left = result.measured.free_gib_after_capture
        if ask.margin_gib <= 0:
            return True
        return None if left is None else left >= ask.margin_gib
    return False if result.outcome == "failed" and _of_memory(result.failure) else None


def _of_memory(failure: Failure | None) -> bool:
    return failure is not None and (failure.class_.endswith("_oom") or failure.class_ in _MEMORY)


def _base(plan: ReproductionPlan, ask: SearchAsk) -> TrialPlan:
    """The launch whose flag is varied: the fix where it changes this flag, else the control."""
    fix = next((trial for trial in plan.trials if trial.role == "fix"), None)
    control = next((trial for trial in plan.trials if trial.role == "control"), None)
    if fix is not None and (control is None or any(c.name == ask.name for c in fix.changes)):
        return fix
    return control or plan.trials[0]


def _alike(one: TrialPlan, other: TrialPlan, name: str) -> bool:
    return with_value(one.command, name, 0) == with_value(other.command, name, 0) and (
        one.env == other.env
    )


def _trial(
    plan: ReproductionPlan, readings: list[Reading], ask: SearchAsk, value: float, name: str
) -> TrialPlan:
    base = _base(plan, ask)
    control = next((trial for trial in plan.trials if trial.role == "control"), base)
    before = value_in(control.command, ask.name)
    change = Change(
        kind="flag",
        name=ask.name,
        from_=None if before is None else _number(before, ask),
        to=_number(value, ask),
    )
    kept = [c for c in base.changes if c.name != ask.name] if base is not control else []
    return TrialPlan(
        name=name,
        role="search" if name.startswith("search") else "confirmation",
        command=with_value(base.command, ask.name, value),
        env=dict(base.env),
        unset_env=list(base.unset_env),
        changes=[*kept, change],
        expects="passes",
        goal=ask.goal,
        timeout_s=base.timeout_s,
        predicted=_predicted(readings, ask, value),
    )


def _predicted(readings: list[Reading], ask: SearchAsk, value: float) -> Figures:
    """What the nearest trial's ledger foretells for a value."""
    known = [r for r in readings if r.figures.free_gib_at_capture is not None]
    if ask.name != FRACTION or not known:
        return Figures()
    nearest = min(known, key=lambda r: abs(r.value - value))
    return predicted(nearest.figures, nearest.value, value, nearest.max_running_requests)


def _number(value: float, ask: SearchAsk) -> float | int:
    return int(value) if ask.whole else float(typed(value))
