"""The plan: which launches, what changes, what is expected; read from genuine and invented logs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from forensics import pipeline
from forensics.reproduce.choosing import PlanError
from forensics.reproduce.machine import Found
from forensics.reproduce.model import Gpu, Machine, ReproductionPlan
from forensics.reproduce.plan import Wishes, make_plan
from forensics.reproduce.preflight import Preflight
from forensics.reproduce.subject import Subject, of_file, of_log, with_python

RULES = Path(__file__).parents[1] / "rules"
GENUINE = Path(__file__).parents[2] / "fixtures" / "genuine"
HERE = Found(
    Machine(gpus=[Gpu(index=0, name="A", total_gib=140.4, free_gib=139.9)]), free_port=4711
)

Plan = Callable[..., ReproductionPlan]


def subject(log: Path, run: int | None = None, launch: Path | None = None) -> Subject:
    return of_log(pipeline.analyze([str(log)]), [str(log)], run, launch)


def plan(log: Path, run: int | None = None, **wishes: Any) -> ReproductionPlan:
    return make_plan(Wishes(**wishes), Preflight(subject(log, run), HERE))


def told(made: ReproductionPlan) -> list[tuple[str, object, object]]:
    """Name, old and new value of what the fix changes."""
    fix = next(trial for trial in made.trials if trial.role == "fix")
    return [(change.name, change.from_, change.to) for change in fix.changes]


def hit(rule: str) -> Path:
    return RULES / rule / "hit.log"


def test_a_capture_without_memory_is_made_again_then_with_a_lower_fraction() -> None:
    made = plan(GENUINE / "h200-capture-failed.log")
    names = [(t.name, t.role, t.expects, t.goal) for t in made.trials]
    assert names == [
        ("control", "control", "fails", "ready"),
        ("fix", "fix", "passes", "ready"),
        ("confirmation-1", "confirmation", "passes", "ready"),
    ]
    assert made.failure is not None
    assert made.failure.class_ == "graph_capture_oom"
    assert told(made) == [("mem_fraction_static", 0.9775, 0.93)]
    control, fix, again = (trial.command for trial in made.trials)
    assert control[control.index("--mem-fraction-static") + 1] == "0.9775"
    assert fix == [word if word != "0.9775" else "0.93" for word in control]
    assert again == fix
    assert [line for line in made.diff if line[0] != " "] == [
        "---mem-fraction-static 0.9775",
        "+--mem-fraction-static 0.93",
    ]


def test_figures_are_predicted_by_the_formula_of_the_remedy() -> None:
    """C(f') = B (1 - f') - U: at the log's own fraction it is what the log shows."""
    control, fix, _ = (t.predicted for t in plan(GENUINE / "h200-capture-failed.log").trials)
    assert control.free_gib_at_capture == 1.05
    assert control.kv_tokens == 991002
    assert fix.free_gib_at_capture == pytest.approx(7.66, abs=0.01)


def test_the_prediction_meets_what_the_fixed_launch_measured() -> None:
    """The genuine pair ran at 0.9775 and at 0.9; within 0.3 GiB, as the plan promises."""
    failed, fixed = GENUINE / "h200-capture-failed.log", subject(GENUINE / "h200-capture-fixed.log")
    fraction = fixed.launch.flags["mem_fraction_static"]
    made = plan(failed, settings=[f"mem_fraction_static={fraction}"])
    predicted, measured = made.trials[1].predicted, fixed.figures
    assert predicted.free_gib_at_capture == pytest.approx(measured.free_gib_at_capture, abs=0.3)
    assert predicted.kv_tokens == pytest.approx(measured.kv_tokens, rel=0.01)


def test_on_larger_cards_the_figures_move_by_what_the_fraction_leaves() -> None:
    looked = Preflight(subject(GENUINE / "h200-capture-failed.log"), HERE)
    assert looked.subject.figures.baseline_gib is not None
    looked.baseline_gib = looked.subject.figures.baseline_gib + 40
    control, fix, _ = make_plan(Wishes(), looked).trials
    assert control.predicted.free_gib_at_capture == pytest.approx(
        1.05 + 40 * (1 - 0.9775), abs=0.01
    )
    assert fix.predicted.free_gib_at_capture == pytest.approx(7.66 + 40 * (1 - 0.93), abs=0.01)


def test_what_cannot_be_priced_is_not_predicted() -> None:
    made = plan(GENUINE / "h200-capture-failed.log", settings=["tp_size=2"])
    assert made.trials[1].predicted.free_gib_at_capture is None


def test_a_taken_port_is_changed_for_a_free_one() -> None:
    made = plan(GENUINE / "cpu-port-in-use.log")
    assert told(made) == [("port", 31010, 4711)]


def test_a_context_that_the_pool_does_not_hold() -> None:
    made = plan(hit("kv-pool-under-context.typed-limit"))
    assert told(made) == [("max_total_tokens", 16384, None)]
    assert "--max-total-tokens" not in made.trials[1].command


def test_a_flag_that_the_release_does_not_know_is_spelled_right_with_its_value() -> None:
    made = plan(hit("refused-arguments"))
    control, fix, _ = (trial.command for trial in made.trials)
    assert control[-2:] == ["--cuda-graph-max-bs", "64"]
    assert fix == [*control[:-2], "--cuda-graph-max-bs-decode", "64"]


def test_a_failure_while_serving_is_looked_for_under_load(fixtures: Path) -> None:
    made = plan(fixtures / "sglang-glm5-c.log")
    assert {trial.goal for trial in made.trials} == {"load"}
    assert all(trial.load for trial in made.trials)
    assert plan(fixtures / "sglang-glm5-c.log", goal="generate").trials[0].goal == "generate"
    assert plan(fixtures / "sglang-glm5-c.log", load=7).trials[0].load == 7


def test_of_several_launches_the_last_that_failed_or_the_numbered_one(fixtures: Path) -> None:
    log = fixtures / "sglang-glm5-abc.log"
    assert plan(log).run == 3
    assert told(plan(log, run=2)) == [("mem_fraction_static", 0.95, 0.88)]
    with pytest.raises(PlanError, match="the input has 3 launches"):
        plan(log, run=4)


def test_a_remedy_by_its_number(fixtures: Path) -> None:
    made = plan(fixtures / "sglang-glm5.log", remedy=2)
    fix = made.trials[1]
    assert fix.env == {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    assert fix.command == made.trials[0].command
    assert made.diff[0] == "+PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
    with pytest.raises(PlanError, match="has 3 remedies"):
        plan(fixtures / "sglang-glm5.log", remedy=9)


@pytest.mark.parametrize(
    "wishes",
    [
        {"settings": ["page_size=2"], "unset": ["page_size"]},
        {"settings": ["NCCL_DEBUG=INFO"], "unset": ["NCCL_DEBUG"]},
        {"settings": ["page_size=2"], "remedy": 1},
    ],
)
def test_one_thing_is_changed_once(wishes: dict[str, Any], fixtures: Path) -> None:
    with pytest.raises(PlanError, match=r"both set and unset|does not go with"):
        plan(fixtures / "sglang-glm5.log", **wishes)


def test_a_package_is_left_to_the_user() -> None:
    with pytest.raises(PlanError, match=r"upgrade sgl-kernel.* yours to make.*--set"):
        plan(hit("package-too-old"))
    made = plan(hit("package-too-old"), settings=["attention_backend=triton"])
    assert [change.name for change in made.trials[1].changes] == ["attention_backend"]


def test_a_value_that_only_the_user_knows() -> None:
    with pytest.raises(PlanError, match="needs a value of yours"):
        plan(hit("interface-not-found"))


def test_a_healthy_log_has_nothing_to_reproduce() -> None:
    log = GENUINE / "cpu-healthy.log"
    with pytest.raises(PlanError, match="did not fail: there is nothing to reproduce; --set"):
        plan(log)
    made = plan(log, settings=["max_total_tokens=4096"])
    assert [trial.role for trial in made.trials] == ["fix", "confirmation"]
    assert made.failure is None
    assert any("Without a control" in limit for limit in made.limits)


def test_a_log_that_does_not_show_its_launch_asks_for_it(fixtures: Path, tmp_path: Path) -> None:
    log = fixtures / "sglang-glm5-a.log"
    with pytest.raises(PlanError, match="--launch"):
        plan(log)
    script = tmp_path / "serve.sh"
    script.write_text("python3 -m sglang.launch_server --model-path org/model --tp 8\n")
    mine = subject(log, launch=script)
    wishes = Wishes(settings=["SGLANG_X=1"])
    made = make_plan(wishes, Preflight(mine, HERE))
    assert made.failure is not None
    assert made.trials[0].command[-4:] == ["--model-path", "org/model", "--tp", "8"]


def test_a_launch_without_a_log(tmp_path: Path) -> None:
    script = tmp_path / "serve.sh"
    script.write_text("SGLANG_X=1 python3 -m sglang.launch_server --model-path m --tp 2\n")
    looked = Preflight(of_file(script), HERE)
    with pytest.raises(PlanError, match="--set names a change"):
        make_plan(Wishes(), looked)
    made = make_plan(Wishes(settings=["tp=4"]), looked)
    assert made.logs == []
    assert made.failure is None
    assert [trial.role for trial in made.trials] == ["control", "fix", "confirmation"]
    assert made.trials[0].env == {"SGLANG_X": "1"}
    assert told(made) == [("tp_size", 2, 4)]


def test_a_fix_that_changes_nothing_is_refused() -> None:
    with pytest.raises(PlanError, match="would change nothing"):
        plan(GENUINE / "h200-capture-failed.log", settings=["mem_fraction_static=0.9775"])


def test_several_changes_at_once_are_told_apart_from_one() -> None:
    made = plan(hit("kv-retraction"), settings=["tp=4", "port=1"])
    assert any("which of them matters is not learnt" in line for line in made.judged)


def test_confirmations_and_the_control_are_the_users_choice() -> None:
    log = GENUINE / "h200-capture-failed.log"
    names = [trial.name for trial in plan(log, confirmations=3, skip_control=True).trials]
    assert names == ["fix", "confirmation-1", "confirmation-2", "confirmation-3"]
    assert [t.name for t in plan(log, confirmations=0).trials] == ["control", "fix"]


def test_a_search_begins_between_the_log_and_the_remedy() -> None:
    log = GENUINE / "h200-capture-failed.log"
    made = plan(log, search="mem-fraction-static", margin_gib=0.5)
    assert made.search is not None
    assert (made.search.good, made.search.bad) == (0.93, 0.9775)
    assert (made.search.margin_gib, made.search.goal) == (0.5, "capture")
    assert [trial.name for trial in made.trials] == ["control"]


def test_a_search_without_a_control_begins_at_what_holds() -> None:
    log = GENUINE / "h200-capture-failed.log"
    made = plan(log, search="mem_fraction_static", known_good=0.9, skip_control=True)
    assert [(trial.name, trial.role) for trial in made.trials] == [("fix", "fix")]
    assert (
        made.trials[0].command[made.trials[0].command.index("--mem-fraction-static") + 1] == "0.9"
    )
    with pytest.raises(PlanError, match="--known-good"):
        plan(log, search="chunked_prefill_size", skip_control=True)
    with pytest.raises(PlanError, match="a number"):
        plan(log, search="served_model_name")


def test_the_interpreter_of_the_user_starts_the_launch() -> None:
    mine = subject(GENUINE / "h200-capture-failed.log")
    with_python(mine, "/opt/venv/bin/python")
    made = make_plan(Wishes(), Preflight(mine, HERE))
    assert {trial.command[0] for trial in made.trials} == {"/opt/venv/bin/python"}


def test_a_plan_survives_its_document() -> None:
    made = plan(GENUINE / "h200-capture-failed.log")
    assert ReproductionPlan.model_validate_json(made.model_dump_json(by_alias=True)) == made


def test_a_trial_has_twice_the_time_that_the_launch_took() -> None:
    mine = subject(GENUINE / "h200-capture-failed.log")
    assert mine.report is not None
    run = mine.report.run
    assert make_plan(Wishes(), Preflight(mine, HERE)).trials[0].timeout_s == 1800
    assert run.started_at is not None
    run.ended_at = run.started_at + timedelta(minutes=40)
    assert make_plan(Wishes(), Preflight(mine, HERE)).trials[0].timeout_s == 4800
    assert make_plan(Wishes(timeout_s=60), Preflight(mine, HERE)).trials[0].timeout_s == 60
