"""Secrets are never kept, so a plan that goes on must be given them again."""

from __future__ import annotations

import pytest

from forensics.reproduce.choosing import PlanError
from forensics.reproduce.model import ReproductionPlan, TrialPlan
from forensics.reproduce.resuming import completed

COMMAND = ["python3", "-m", "sglang.launch_server", "--api-key", "[redacted]", "--port", "1"]
JOINED = ["sglang", "serve", "--admin-api-key=[redacted]", "--tp", "2"]


def plan_with(command: list[str], env: dict[str, str] | None = None) -> ReproductionPlan:
    control = TrialPlan(
        name="control", role="control", command=command, env=env or {}, expects="fails"
    )
    fix = control.model_copy(update={"name": "fix", "role": "fix", "expects": "passes"})
    return ReproductionPlan(logs=[], trials=[control, fix])


@pytest.mark.parametrize(
    ("command", "given", "is_run"),
    [
        (COMMAND, "api_key=s3", [*COMMAND[:4], "s3", *COMMAND[5:]]),
        (COMMAND, "--api-key=s=3", [*COMMAND[:4], "s=3", *COMMAND[5:]]),
        (JOINED, "admin_api_key=s3", ["sglang", "serve", "--admin-api-key", "s3", "--tp", "2"]),
    ],
)
def test_a_flag_gets_its_secret_back(command: list[str], given: str, is_run: list[str]) -> None:
    plan = completed(plan_with(command), (), {}, [given], {})
    assert [trial.command for trial in plan.trials] == [is_run, is_run]


def test_a_variable_gets_its_secret_back() -> None:
    plan = completed(plan_with(["x"], {"HF_TOKEN": "[redacted]"}), (), {"HF_TOKEN": "t"}, (), {})
    assert [trial.env for trial in plan.trials] == [{"HF_TOKEN": "t"}] * 2


def test_a_variable_that_is_set_here_need_not_be_given() -> None:
    plan = plan_with(["x"], {"HF_TOKEN": "[redacted]"})
    assert completed(plan, (), {}, (), {"HF_TOKEN": "t"}) == plan


def test_what_is_missing_is_named() -> None:
    plan = plan_with(COMMAND, {"HF_TOKEN": "[redacted]"})
    with pytest.raises(PlanError, match=r"again HF_TOKEN with --env, api_key with --with$"):
        completed(plan, (), {}, (), {})
    with pytest.raises(PlanError, match=r"again api_key with --with$"):
        completed(plan, ("control",), {"HF_TOKEN": "t"}, (), {})


def test_nothing_is_asked_where_all_is_done() -> None:
    plan = plan_with(COMMAND, {"HF_TOKEN": "[redacted]"})
    assert completed(plan, ("control", "fix"), {}, (), {}) == plan


@pytest.mark.parametrize(
    ("env", "settings"), [({"PATH": "/x"}, ()), ({}, ["tp_size=4"]), ({}, ["api_key"])]
)
def test_a_plan_that_is_fixed_takes_nothing_else(env: dict[str, str], settings: list[str]) -> None:
    with pytest.raises(PlanError):
        completed(plan_with(COMMAND), (), env, settings, {"PATH": "/bin"})


def test_a_secret_of_no_known_flag_cannot_be_put_back() -> None:
    plan = plan_with([*COMMAND[:3], "--of-nobody-secret", "[redacted]"])
    with pytest.raises(PlanError, match="plan it anew"):
        completed(plan, (), {}, (), {})
