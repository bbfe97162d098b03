"""What a kept plan lacks before it can go on: the secrets of its launches, which are never kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from forensics.launch.arguments import groups
from forensics.redact import REDACTED
from forensics.releases import names_of
from forensics.reproduce.choosing import PlanError
from forensics.reproduce.flag_values import with_text
from forensics.reproduce.model import ReproductionPlan, TrialPlan


def completed(
    plan: ReproductionPlan,
    finished: Collection[str],
    env: Mapping[str, str],
    settings: Sequence[str],
    around: Mapping[str, str],
) -> ReproductionPlan:
    """The plan with its secrets put back, so that what is left of it runs as what is done did.

    `finished` are trials that do not run again; `env` and `settings` (`flag=value`) are what the
    user gives; `around` is the environment, whose own value of a masked variable stays in force.
    Raises PlanError where a secret is missing, or something else is given: the plan is fixed.
    """
    flags = dict(_flag_and_value(text) for text in settings)
    variables, options = _masked_variables(plan.trials), _masked_options(plan.trials)
    for name in env:
        if name not in variables:
            raise PlanError(f"--env {name}: the plan is fixed; it hides no such variable")
    for name in flags:
        if not any(name in names_of(option) for option in options):
            raise PlanError(f"--with {name}: the plan is fixed; it hides no such flag")
    told = {option: flags[n] for option in options for n in names_of(option) if n in flags}
    rest = [trial for trial in plan.trials if trial.name not in finished]
    missing = [f"{n} with --env" for n in _masked_variables(rest) if n not in {**around, **env}]
    missing += [f"{name} with --with" for name in _masked_options(rest) if name not in told]
    if missing:
        raise PlanError(f"a plan keeps no secrets; give again {', '.join(missing)}")
    return plan.model_copy(update={"trials": [_filled(t, env, told) for t in plan.trials]})


def _flag_and_value(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise PlanError(f"--with {name}: give it as FLAG=VALUE")
    return name.removeprefix("--").replace("-", "_"), value


def _masked_variables(trials: Sequence[TrialPlan]) -> list[str]:
    found = [n for trial in trials for n, text in trial.env.items() if REDACTED in text]
    return list(dict.fromkeys(found))


def _masked_options(trials: Sequence[TrialPlan]) -> list[str]:
    """Fields of which a value is masked. Raises PlanError where it is no flag's that is known."""
    found: list[str] = []
    for trial in trials:
        for group in groups(list(trial.command), None):
            if not any(REDACTED in token for token in group.tokens):
                continue
            if group.field is None:
                raise PlanError(
                    f"{trial.name} holds a secret that is no known flag's: plan it anew, since "
                    "a plan keeps no secrets"
                )
            found.append(group.field)
    return list(dict.fromkeys(found))


def _filled(trial: TrialPlan, env: Mapping[str, str], told: Mapping[str, str]) -> TrialPlan:
    masked = _masked_options([trial])
    words = list(trial.command)
    for name in masked:
        if name in told:
            words = with_text(words, name, told[name])
    given = {name: env.get(name, text) for name, text in trial.env.items()}
    return trial.model_copy(update={"command": words, "env": given})
