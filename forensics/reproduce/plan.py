"""The plan: which launches are made, and what is expected of each, fixed before any runs."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from forensics.launch import diff
from forensics.reproduce.advised import of_remedies
from forensics.reproduce.choosing import Choice, PlanError
from forensics.reproduce.consent import consents
from forensics.reproduce.expectation import figures_of_control, figures_of_fix, judged
from forensics.reproduce.model import Consent, Goal, ReproductionPlan, TrialPlan
from forensics.reproduce.preflight import Preflight
from forensics.reproduce.search_ask import SearchWish, asked, sentence_of, start_of
from forensics.reproduce.subject import Subject
from forensics.reproduce.transport import Transport
from forensics.reproduce.wished import of_words

LOAD = 32
"""Requests of a burst where the log does not show how many ran at once."""
MOST_LOAD = 512

LEAST_TIMEOUT_S, MOST_TIMEOUT_S = 1800.0, 4 * 3600.0
"""Limits of a trial's time, where the user names none."""


Rewrite = Callable[[Sequence[TrialPlan]], list[TrialPlan]]


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user asks for; what is None or empty is chosen here."""

    remedy: int | None = None
    settings: Sequence[str] = ()
    """`flag=value` or `VARIABLE=value`."""
    unset: Sequence[str] = ()
    goal: Goal | None = None
    load: int | None = None
    confirmations: int = 1
    skip_control: bool = False
    timeout_s: float | None = None
    search: str | None = None
    known_good: float | None = None
    margin_gib: float = 0.0
    everywhere: Sequence[str] = ()
    """What every trial has different from the log, as `settings`."""
    own_env: dict[str, str] = field(default_factory=dict)
    on: str | None = None
    """Where to run, as `--on` has it."""
    scale: bool = False
    """Scaled down to the machine at hand."""


def make_plan(
    wishes: Wishes, preflight: Preflight, rewrite: Rewrite | None = None
) -> ReproductionPlan:
    """The plan for the launch of a preflight, on the machine that it looked at.

    `rewrite` has the last word on the trials, such as another size of everything.
    Raises PlanError where there is nothing to reproduce, or nothing to change.
    """
    subject = preflight.subject
    transport = None if wishes.on is None else Transport.parse(wishes.on)
    choice = _choice(subject, wishes, preflight.found.free_port)
    ask = None
    if wishes.search is not None:
        goal = wishes.goal or _goal(subject, wishes)
        wanted = SearchWish(wishes.search, wishes.known_good, wishes.margin_gib, goal)
        ask = asked(wanted, subject, choice)
        if not (wishes.settings or wishes.remedy):
            choice = start_of(ask) if _skips_control(subject, wishes) else None
    trials = _trials(subject, wishes, choice, preflight.baseline_gib)
    trials = rewrite(trials) if rewrite else trials
    _reached(trials, transport)
    return ReproductionPlan(
        logs=subject.logs,
        run=subject.run,
        failure=subject.failure,
        trials=trials,
        diff=_diff(subject, choice),
        judged=judged(trials, subject.failure, choice, sentence_of(ask) if ask else None),
        notes=subject.notes,
        machine=preflight.found.machine,
        differences=preflight.differences,
        consents=_consents(subject, trials, wishes),
        transport=transport.prefix() if transport else [],
        on=wishes.on,
        cwd=None if transport else os.getcwd(),
        search=ask,
        limits=_limits(subject, trials),
    )


def _choice(subject: Subject, wishes: Wishes, free_port: int | None) -> Choice | None:
    """What the fix changes; None where only a search is asked for."""
    if wishes.settings or wishes.unset:
        if wishes.remedy is not None:
            raise PlanError("--remedy does not go with --set and --unset: they name the change")
        return of_words(wishes.settings, wishes.unset, subject.launch)
    root = subject.report.root_cause if subject.report else None
    if subject.failure is None and wishes.remedy is None:
        if wishes.search:
            return None
        where = " ".join(subject.logs) or "the launch"
        what = "did not fail: there is nothing to reproduce" if subject.logs else "has no log"
        raise PlanError(f"{where} {what}; --set names a change to try")
    if root is None:
        if wishes.search:
            return None
        raise PlanError("no rule knows the cause: --set names a change to try")
    try:
        return of_remedies(root, subject.launch, wishes.remedy, free_port)
    except PlanError:
        if wishes.search:
            return None
        raise


def _trials(
    subject: Subject, wishes: Wishes, choice: Choice | None, baseline_gib: float | None
) -> list[TrialPlan]:
    goal = wishes.goal or _goal(subject, wishes)
    load = (wishes.load or _load(subject)) if goal == "load" else None
    shown = figures_of_control(subject.figures, subject.launch, baseline_gib)
    control = TrialPlan(
        name="control",
        role="control",
        command=subject.argv,
        env=dict(subject.env),
        unset_env=list(subject.unset),
        expects="fails",
        goal=goal,
        load=load,
        timeout_s=wishes.timeout_s or _timeout_s(subject),
        predicted=shown,
    )
    trials = [] if _skips_control(subject, wishes) else [control]
    if choice is None:
        return trials
    fix = _fix(subject, choice, control).model_copy(
        update={"predicted": figures_of_fix(subject.figures, subject.launch, choice, baseline_gib)}
    )
    again = [
        fix.model_copy(update={"name": f"confirmation-{number}", "role": "confirmation"})
        for number in range(1, (0 if wishes.search else wishes.confirmations) + 1)
    ]
    return [*trials, fix, *again]


def _reached(trials: Sequence[TrialPlan], transport: Transport | None) -> None:
    """Refuse to plan a probe of a server that is not reached from here."""
    if transport is None or transport.is_local_network:
        return
    if asked := [trial.goal for trial in trials if trial.goal not in ("capture", "ready")]:
        raise PlanError(
            f"a server {transport.describe()} is not asked from here, so that the goal {asked[0]} "
            "is out of reach: --goal ready"
        )


def _skips_control(subject: Subject, wishes: Wishes) -> bool:
    """Without a failure in its log a control has nothing to show."""
    return wishes.skip_control or (subject.failure is None and bool(subject.logs))


def _fix(subject: Subject, choice: Choice, control: TrialPlan) -> TrialPlan:
    """The control with the choice applied; raises PlanError where that changes nothing."""
    command = choice.applied(subject.launch).argv()
    env, unset = dict(control.env), [*control.unset_env]
    for name, value in choice.env.items():
        env.pop(name, None)
        unset = [one for one in unset if one != name]
        if value is None:
            unset.append(name)
        else:
            env[name] = value
    same = (command, env, unset) == (control.command, control.env, control.unset_env)
    if same and not choice.is_start:
        names = ", ".join([*choice.flags, *choice.env])
        raise PlanError(f"the launch has {names} like that already: the fix would change nothing")
    return control.model_copy(
        update={
            "name": "fix",
            "role": "fix",
            "command": command,
            "env": env,
            "unset_env": unset,
            "changes": choice.changes(subject.launch),
            "expects": "passes",
        }
    )


def _diff(subject: Subject, choice: Choice | None) -> list[str]:
    if choice is None:
        return []
    before = dataclasses.replace(subject.launch, env=dict(subject.env))
    gone = [n for n, value in choice.env.items() if value is None and n not in subject.env]
    return [f"-{name}" for name in gone] + [
        f"{one.sign}{one.text}" for one in diff(before, choice.applied(before))
    ]


def _goal(subject: Subject, wishes: Wishes) -> Goal:
    """How far it must come: to where it failed; what failed while it served, under load."""
    if wishes.load is not None:
        return "load"
    if subject.failure is not None and subject.failure.phase in ("serving", "shutdown"):
        return "load"
    return "ready"


def _timeout_s(subject: Subject) -> float:
    """Twice as long as the launch of the log took to be ready, or to fail before that."""
    run = subject.report.run if subject.report else None
    if run is None or run.started_at is None:
        return LEAST_TIMEOUT_S
    end = run.ready.time if run.ready is not None else run.ended_at
    took = (end - run.started_at).total_seconds() if end is not None else 0.0
    return min(max(2 * took, LEAST_TIMEOUT_S), MOST_TIMEOUT_S)


def _load(subject: Subject) -> int:
    """As many requests at once as the log shows, within reason."""
    serving = subject.report.run.serving if subject.report else None
    most = serving["running"].max() if serving is not None and not serving.is_empty() else None
    return min(max(int(most), 1), MOST_LOAD) if isinstance(most, int | float) else LOAD


def _consents(subject: Subject, trials: Sequence[TrialPlan], wishes: Wishes) -> list[Consent]:
    found: dict[str, Consent] = {}
    launches: list[tuple[list[str], dict[str, str]]] = [(t.command, t.env) for t in trials]
    for command, env in launches or [(subject.argv, subject.env)]:
        own = {**wishes.own_env, **dict(w.split("=", 1) for w in wishes.settings if "=" in w)}
        for consent in consents(command, subject.launch, subject.release, env, own):
            found.setdefault(consent.what, consent)
    return list(found.values())


def _limits(subject: Subject, trials: Sequence[TrialPlan]) -> list[str]:
    said: list[str] = []
    if not any(trial.role == "control" for trial in trials):
        said.append("Without a control it is not shown that the change is what helps.")
    if subject.launch.truncated:
        said.append("The dump in the log is cut: flags behind the cut are at their defaults here.")
    return said
