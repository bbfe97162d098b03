"""A reproduction as it is shown: plan, trials at work, verdict, `report.md`."""

from __future__ import annotations

import io
import re
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest

from forensics.live.notices import PhaseNotice
from forensics.reproduce.model import (
    Change,
    Consent,
    Difference,
    Failure,
    Figures,
    Gpu,
    Machine,
    Reproduction,
    ReproductionPlan,
    TrialPlan,
    TrialResult,
    Word,
)
from forensics.reproduce.notices import Decided, Heard, Settled, TrialBegan, TrialEnded
from forensics.views.console import console_for
from forensics.views.reproduce.json import render
from forensics.views.reproduce.plan import show_plan
from forensics.views.reproduce.progress import TrialsView
from forensics.views.reproduce.report import render_report
from forensics.views.reproduce.verdict import show_verdict
from forensics.views.reproduce.words import VERDICT

BEGAN = datetime(2026, 2, 18, 12, tzinfo=UTC)
EVIL = "\x1b]0;x\x07\x1b[2J<script>alert(1)</script> ![i](http://x) | # h\n\n## own\u202e @who #1"
SERVER = ["python3", "-m", "sglang.launch_server", "--model-path", "m"]


def trial(name: str, *flags: str, **more: Any) -> TrialPlan:
    role = name.split("-")[0]
    expects = "fails" if role == "control" else "passes"
    given = {"name": name, "role": role, "command": [*SERVER, *flags], "expects": expects}
    return TrialPlan(**{**given, **more})


def plan(text: str = "plain") -> ReproductionPlan:
    change = Change(kind="flag", name="mem_fraction_static", from_=0.95, to=0.88)
    failure = Failure(
        rule="graph-capture-oom", class_="graph_capture_oom", phase="graph_capture", title=text
    )
    figures = Figures(free_gib_at_capture=8.32, kv_tokens=425250)
    fix = trial("fix", "--mem-fraction-static", "0.88", changes=[change], predicted=figures)
    control = trial("control", "--served-model-name", text, "--mem-fraction-static", "0.95")
    return ReproductionPlan(
        logs=[text],
        run=1,
        failure=failure,
        trials=[control, fix, fix.model_copy(update={"name": "confirmation-1"})],
        diff=[f" --served-model-name {text}", "---mem-fraction-static 0.95", "+--x 0.88"],
        judged=[text],
        notes=[text],
        machine=Machine(
            gpus=[Gpu(index=0, name=text, total_gib=80, free_gib=79, processes=[text])],
            versions={"sglang": text},
            python=text,
            notes=[text],
        ),
        differences=[Difference(what=text, in_log=text, here=text, weight="matters", because=text)],
        consents=[Consent(what=text, because=text)],
        limits=[text],
    )


def result(name: str, outcome: str, text: str = "plain", **more: Any) -> TrialResult:
    given = {
        "name": name,
        "role": name.split("-")[0],
        "command": SERVER,
        "started_at": BEGAN,
        "ended_at": BEGAN + timedelta(seconds=75),
        "outcome": outcome,
        "phase": "graph_capture",
        "because": text,
        "log": f"{name}/log",
    }
    return TrialResult(**{**given, **more})


def reproduction(text: str = "plain", word: Word = "confirmed") -> Reproduction:
    measured = Figures(free_gib_at_capture=8.5, kv_tokens=425000, capture_gib=1.87)
    told = plan(text)
    return Reproduction(
        verdict=word,
        because=text,
        exit_code=0,
        tool="forensics 0",
        created_at=BEGAN,
        plan=told,
        trials=[
            result("control", "failed", text, failure=told.failure),
            result("fix", "passed", text, predicted=told.trials[1].predicted, measured=measured),
        ],
        command=told.trials[1].command,
    )


def drawn(show: Any, *args: Any, **options: Any) -> str:
    out = io.StringIO()
    show(*args, console_for(out), **options)
    return out.getvalue()


def test_the_plan_says_what_runs_and_what_changes() -> None:
    text = drawn(show_plan, plan())
    assert text.startswith("PLAN for launch 1 of plain: graph-capture-oom while capturing CUDA")
    assert "Change: --mem-fraction-static 0.95 -> 0.88\n" in text
    assert "  fix predicted  8.32 GiB free at capture, 425,250 KV tokens\n" in text
    assert "  confirmation-1: as fix\n" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_secret_is_told_from_what_cannot_be_shown() -> None:
    secret = trial("control", "--api-key", "sk-1234567890")
    text = " ".join(drawn(show_plan, plan().model_copy(update={"trials": [secret]})).split())
    assert "Secrets are not shown; --script asks for them" in text
    assert "Not all of it can be shown" not in text
    odd = trial("control", "--served-model-name", "a\nb")
    text = " ".join(drawn(show_plan, plan().model_copy(update={"trials": [odd]})).split())
    assert "Not all of it can be shown" in text
    assert "Secrets" not in text


def test_logs_that_may_hold_a_secret_are_named() -> None:
    told = reproduction()
    assert "may hold the secrets" not in drawn(show_verdict, told, "folder")
    secret = told.plan.model_copy(update={"trials": [trial("fix", "--api-key", "sk-1234567890")]})
    told = told.model_copy(update={"plan": secret})
    assert "may hold the secrets" in drawn(show_verdict, told, "folder")


def test_without_a_log_nothing_is_said_of_one() -> None:
    for differences in (plan().differences, []):
        changed = {"logs": [], "failure": None, "differences": differences}
        text = drawn(show_plan, plan().model_copy(update=changed))
        assert "the log" not in text


def test_what_was_cut_short_says_how_it_goes_on() -> None:
    cut = reproduction(word="inconclusive")
    assert "Go on: forensics reproduce --resume 'a b'" in drawn(show_verdict, cut, "a b")
    done = [*cut.trials, result("confirmation-1", "timed-out")]
    over = cut.model_copy(update={"trials": done})
    assert "Go on" not in drawn(show_verdict, over, "a b")
    again = cut.model_copy(update={"trials": [*done[:2], result("confirmation-1", "interrupted")]})
    assert "Go on" in drawn(show_verdict, again, "a b")


def test_predicted_stands_beside_measured_with_the_error() -> None:
    text = drawn(show_verdict, reproduction(), "folder")
    rows = [line.split() for line in text.splitlines() if line.startswith("  fix ")]
    assert ["fix", "GiB", "free", "at", "capture", "8.32", "8.50", "+0.18"] in rows
    assert ["fix", "KV", "tokens", "425,250", "425,000", "-250"] in rows
    assert ["fix", "GiB", "of", "graphs", "-", "1.87"] in rows
    assert text.rstrip().endswith("Kept in folder")


@pytest.mark.parametrize("word", get_args(Word))
def test_every_verdict_has_its_word(word: Word) -> None:
    text = drawn(show_verdict, reproduction(word=word), "folder", quiet=True)
    assert text == f"{VERDICT[word][0]}. Plain.\n"
    assert f"**{VERDICT[word][0].capitalize()}.** Plain." in render_report(reproduction(word=word))


def test_the_same_reproduction_gives_the_same_report() -> None:
    assert render_report(reproduction()) == render_report(reproduction())
    read = Reproduction.model_validate_json(render(reproduction()))
    assert render_report(read) == render_report(reproduction())


@pytest.mark.parametrize("text", [EVIL, "a" * 500, "", "api_key=sk-abcdef0123456789"])
def test_nothing_of_a_log_is_obeyed(text: str) -> None:
    shown = [
        drawn(show_plan, plan(text)),
        drawn(show_verdict, reproduction(text), text),
        render_report(reproduction(text)),
        render(reproduction(text)),
        told(text),
    ]
    for one in shown:
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", one)
        assert "sk-abcdef0123456789" not in one
    for one in [shown[0], shown[1], shown[4]]:
        assert not any(line.startswith("## own") for line in one.splitlines())


def test_the_report_holds_no_markup_of_a_log() -> None:
    report = render_report(reproduction(EVIL))
    outside = re.sub(r"```.*?```", "", report, flags=re.S)
    outside = re.sub(r"(`+)[^`\n]*\1", "", outside)
    assert not re.search(r"(?<!\\)<script", outside)
    assert not re.search(r"(?<!\\)!\[", outside)
    headings = re.findall(r"^#+ (.*)", report, re.M)
    assert "own" not in headings
    widths = {
        len(re.findall(r"(?<!\\)\|", line)) for line in report.splitlines() if line[:1] == "|"
    }
    assert widths <= {6, 7}  # the columns of its own tables


def told(text: str) -> str:
    """What the trials at work print where there is no terminal."""
    out = io.StringIO()
    with TrialsView(console_for(out), clock=lambda: 0.0) as view:
        view.tell(TrialBegan(trial("fix"), 2, 3, text))
        view.tell(Heard("fix", PhaseNotice(1, "load", {})))
        view.tell(Decided("fix", "passed", text))
        view.tell(TrialEnded(result("fix", "passed", text)))
        view.tell(Settled(text, ("confirmation-1",)))
    return out.getvalue()


def test_trials_at_work_are_a_line_for_each_thing() -> None:
    assert told("ready").splitlines() == [
        "fix (2 of 3) started; log ready",
        "fix: weights",
        "fix: passed: ready; ending it",
        "fix passed after 1 min 15 s: ready",
        "left out, since the verdict stands: confirmation-1 (ready)",
    ]
