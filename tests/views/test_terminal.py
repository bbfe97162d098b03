"""Whole pages at 80 columns, as they are piped."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import timedelta

import pytest

from forensics.diagnosis import Diagnosis
from forensics.findings import Evidence, Remedy
from forensics.incident import SourceFacts
from forensics.views import terminal
from forensics.views.console import ColorWhen, console_for

LAUNCH_B = """\
FAILED while capturing CUDA graphs: mem_fraction_static 0.95 leaves 0.96 GiB for
capture, which needs 1.40 or more.
Fix: lower --mem-fraction-static from 0.95 to 0.88.

CAUSE  graph-capture-oom on TP4; critical, confidence high
  Capture began with 0.96 GiB free on each of 8 ranks. When 247 MiB were left, a
  request of 694 MiB failed: capture needs at least 0.72 + 0.68 = 1.40 GiB, so
  it was short by 0.44 GiB or more. The weights take 61.20 of 94.97 GiB: this is
  how memory is divided, not how much there is.

  glm5.log:142  Capture cuda graph begin. This can take up to several minutes.
                avail mem=0.96 GB  (and 7 alike)
  glm5.log:187  ... Tried to allocate 694.00 MiB. GPU 4 has a total capacity of
                94.97 GiB of which 247.44 MiB is free. ...

MEMORY  GiB per GPU, while capturing CUDA graphs
  TP0-TP7  8 ranks alike
  [############################################=======================~.] 94.97
  # weights 61.20   = KV pool 31.70   ~ other 1.11   . free 0.96

CHANGE  one at a time, best first
     ... 2 unchanged
     --tp 8
  -  --mem-fraction-static 0.95
  +  --mem-fraction-static 0.88
     --max-running-requests 8
     ... 1 unchanged

  1.  Lower --mem-fraction-static from 0.95 to 0.88
      why     94.4 * (1 - 0.88) - 3.76 = 7.57 GiB free at capture.
      effect  7.57 GiB free at capture, 438,272 KV tokens (-115,456)
      cost    21 % fewer KV tokens: 438,272 instead of 553,728.
      basis   A lower bound from the failed request
  2.  Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
      why     6.44 GiB are reserved but unallocated.
      basis   Documentation and known reports

  Would not help
  -  More GPUs: 400 GB of weights leave room on eight.
  -  A smaller KV dtype: the pool takes the same bytes whatever the type.

NEW LAUNCH
  python3 -m sglang.launch_server --model-path lukealonso/GLM-5-NVFP4 \\
      --trust-remote-code --tp 8 --mem-fraction-static 0.88 \\
      --max-running-requests 8 --served-model-name 'glm 5' \\
      --api-key '[redacted]'
  Put your own value where it says [redacted].

KNOWN EARLIER
  glm5.log:142  6 s before the crash: 0.96 GiB free when graph capture begins:
                it rarely fits in less than 1 GiB

ECHOES  they follow from the cause
  glm5.log:230  TP1 fails the same way
  glm5.log:312  TP6 fails the same way

STANDING RISKS
  warning   DeepGemm reads scales as ue8m0, the checkpoint has others: NaN may
            follow  glm5.log:7
            fix  set SGLANG_ENABLE_JIT_DEEPGEMM=0

LANES  free GPU memory, 0 to 94.97 GiB; short phases drawn wider than they were
                    startup weights                             KV pool graphs
  TP0,2-3,5,7       ········│···································│······▁│▁▁▁▁▁▁▁
  TP1, TP6          ········│···································│······▁│▁▁▁▁▁o▁
  TP4               ········│···································│······▁│▁▁▁▁▁X▁
                    o                                                   !
                    X the failure   ! could be known   o found

TIMELINE  2026-02-18, the log's clock
  23:47:12  startup                22 s
  23:47:14    ! DeepGemm reads scales as ue8m0, the checkpoint ...  glm5.log:7
  23:47:34  weights          5 min 42 s
  23:53:16  KV pool                 6 s
  23:53:22  CUDA graphs             6 s
  23:53:22    ! 0.96 GiB free when graph capture begins: it ...  glm5.log:142
  23:53:28  first failure on TP4  glm5.log:151

Read logs/glm5.log: 397 lines, 98.5% recognised; 8 ranks; sglang 0.5.9.
"""

READY = """\
READY after 6 min 16 s. 1 warning: DeepGemm reads scales as ue8m0, the
checkpoint has others: NaN may follow.

MEMORY  GiB per GPU, as last printed, while capturing CUDA graphs
  TP0-TP2, TP4-TP7  7 ranks alike
  [############################################==================+~.....] 94.97
  # weights 61.20   = KV pool 25.00   + graphs 1.16   ~ other 1.11   . free 6.50
  TP3
  [#########################################=================+~...] 92.97 known
  # weights 61.20   = KV pool 25.00   + graphs 1.16   ~ other 1.11   . free 4.50

FINDINGS
  warning   DeepGemm reads scales as ue8m0, the checkpoint has others: NaN may
            follow  glm5.log:7
            fix  set SGLANG_ENABLE_JIT_DEEPGEMM=0

LANES  free GPU memory, 0 to 94.97 GiB; short phases drawn wider than they were
                    startup weights KV pool graphs  serving
  TP0-TP2, TP4-TP7  ········│·······│······▁│▁▁▁▁▁▁▁│▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
  TP3               ········│·······│······▁│▁▁▁▁▁▁▁│▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
                    o
                    o found

TIMELINE  2026-02-18, the log's clock
  23:47:12  startup                22 s
  23:47:14    ! DeepGemm reads scales as ue8m0, the checkpoint ...  glm5.log:7
  23:47:34  weights          5 min 42 s
  23:53:16  KV pool                 6 s
  23:53:22  CUDA graphs             6 s
  23:53:28  serving         43 min 44 s
  23:53:28  ready

Read logs/glm5.log: 397 lines, 98.5% recognised; 8 ranks; sglang 0.5.9.
"""

SEVERAL = """\
3 launches found.

Run 1  FAILED while starting up: transformers 4.57.1 does not know the
       architecture 'glm_moe_dsa'.
       Fix: upgrade transformers to >=5.2.0 (now 4.57.1).
Run 2  FAILED while capturing CUDA graphs: mem_fraction_static 0.95 leaves 0.96
       GiB for capture, which needs 1.40 or more.
       Fix: lower --mem-fraction-static from 0.95 to 0.88.
Run 3  READY after 6 min 16 s. 1 warning: DeepGemm reads scales as ue8m0, the
       checkpoint has others: NaN may follow.

RUN 2 IN FULL

"""


def draw(
    diagnosis: Diagnosis,
    *,
    verbose: bool = False,
    quiet: bool = False,
    color: ColorWhen = "auto",
    width: int = 80,
) -> str:
    out = io.StringIO()
    console = console_for(out, color)
    console.width = width
    terminal.show(diagnosis, console, verbose=verbose, quiet=quiet)
    return out.getvalue()


def healthy(make: Callable[..., Diagnosis]) -> Diagnosis:
    diagnosis = make(root_cause=None, new_command=None, diff=[])
    report = diagnosis.reports[0]
    report.findings = [finding for finding in report.findings if finding.role == "context"]
    run = report.run
    run.outcome, run.phase, run.failures = "ready", "serving", []
    run.ready = run.events[-1]
    run.ready.kind, run.ready.phase = "ready", "serving"
    assert run.started_at
    run.ended_at = run.started_at + timedelta(minutes=50)
    for row in run.memory:
        row.kv_pool_gib, row.graphs_gib, row.free_gib = 25.0, 1.16, 6.5
    run.memory[3].free_gib = 4.5
    run.memory[3].total_gib = None
    return diagnosis


def test_a_launch_that_failed(launch_b: Diagnosis) -> None:
    assert draw(launch_b) == LAUNCH_B


def test_a_launch_that_is_ready(make: Callable[..., Diagnosis]) -> None:
    assert draw(healthy(make)) == READY


def test_several_launches_are_listed_and_the_one_that_failed_last_is_in_full(
    make: Callable[..., Diagnosis],
) -> None:
    diagnosis = make()
    first, last = make().reports[0], healthy(make).reports[0]
    first.run.phase = "init"
    assert first.root_cause
    first.root_cause.title = "transformers 4.57.1 does not know the architecture 'glm_moe_dsa'"
    first.root_cause.remedies = [
        Remedy(kind="package", name="transformers", direction="upgrade", from_="4.57.1",
               to=">=5.2.0", reason="It knows the architecture from 5.2.0 on.")
    ]  # fmt: skip
    diagnosis.reports = [first, diagnosis.reports[0], last]
    for number, report in enumerate(diagnosis.reports, start=1):
        report.run.number = number
    page = draw(diagnosis)
    assert page.startswith(SEVERAL)
    assert page.partition("RUN 2 IN FULL\n\n")[2] == LAUNCH_B.partition(".\n\n")[2]
    assert draw(diagnosis, quiet=True) == SEVERAL.partition("\nRUN 2")[0]


def test_quiet_is_the_verdict_alone(launch_b: Diagnosis) -> None:
    assert draw(launch_b, quiet=True) == LAUNCH_B.partition("\nCAUSE")[0]


def test_a_failure_that_no_rule_knows_shows_where_to_begin(make: Callable[..., Diagnosis]) -> None:
    page = draw(make(findings=[], root_cause=None, new_command=None, diff=[]))
    assert page.startswith(
        "FAILED while capturing CUDA graphs; no rule knows the cause.\n\n"
        "FIRST FAILURE  the place to begin reading\n"
        "  glm5.log:151  torch.OutOfMemoryError: CUDA out of memory. Tried to allocate\n"
    )
    assert "(flashinfer_mla_backend.py:639" in page


def test_a_growing_log_with_a_precursor_is_about_to_fail(make: Callable[..., Diagnosis]) -> None:
    diagnosis = make(root_cause=None, new_command=None, diff=[])
    report = diagnosis.reports[0]
    report.findings, report.run.outcome = [report.findings[1]], "unknown"
    assert draw(diagnosis).startswith("ABOUT TO FAIL while capturing CUDA graphs: 0.96 GiB free")


def test_a_log_that_ends_early(make: Callable[..., Diagnosis]) -> None:
    diagnosis = make(findings=[], root_cause=None)
    run = diagnosis.reports[0].run
    run.outcome, run.phase, run.failures = "unknown", "load", []
    assert draw(diagnosis).startswith(
        "UNFINISHED: the log ends after 6 min 18 s while loading the weights; nothing is\n"
        "wrong so far. If it still runs, `forensics watch` follows it.\n"
    )


def test_a_launch_that_was_ended_before_it_was_ready(make: Callable[..., Diagnosis]) -> None:
    diagnosis = make(findings=[], root_cause=None)
    run = diagnosis.reports[0].run
    run.outcome, run.phase, run.failures = "stopped", "load", []
    assert draw(diagnosis).startswith(
        "STOPPED on request while loading the weights, before it was ready. No problem\nfound.\n"
    )


def test_flags_that_may_be_the_servers_own_are_named(make: Callable[..., Diagnosis]) -> None:
    page = draw(make(not_repeated=["--attention-backend flashinfer", "--page-size 64"]))
    assert (
        "  Not repeated, since SGLang may have picked them itself: --attention-backend\n"
        "  flashinfer, --page-size 64\n"
    ) in page


def test_a_variable_to_take_away_is_unset_for_the_new_launch(
    make: Callable[..., Diagnosis],
) -> None:
    page = draw(make(new_command=["serve"], new_env={"A": "1"}, remove_env=["NCCL_X"]))
    assert "  env -u NCCL_X A=1 serve" in page


def test_verbose_shows_all_evidence_and_the_rules_that_were_skipped(launch_b: Diagnosis) -> None:
    page = draw(launch_b, verbose=True)
    assert "has 94.72 GiB memory in use." in page
    assert "NOT JUDGED  1 rule\n  kv-pool-undersized  the run never reached serving\n" in page
    assert "On Blackwell the kernels take scales as powers of two." in page
    assert "unchanged" not in page


def test_nothing_of_a_log_is_read_as_markup_or_obeyed(launch_b: Diagnosis) -> None:
    nasty = "[bold red]x[/] \x1b[2J\x1b]0;title\x07\u202ereversed :bomb: api_key=hunter2"
    (report,) = launch_b.reports
    for finding in report.findings:
        finding.title = finding.explanation = finding.rank = nasty
        finding.evidence = [Evidence(source="logs/glm5.log", line=1, text=nasty)]
        finding.not_helpful = [nasty]
        for remedy in finding.remedies:
            remedy.name = remedy.reason = remedy.cost = nasty
    report.run.memory[0].rank = nasty
    report.new_command = ["python3", "a b;$(reboot)\n\x1b[2J"]
    launch_b.coverage.skipped = [nasty]
    for verbose in (False, True):
        page = draw(launch_b, verbose=verbose)
        assert "[bold red]x[/] reversed :bomb: api_key=[redacted]" in page
        assert not any(char in page for char in "\x1b\x07\u202e\r")
        assert "hunter2" not in page
        assert "python3 'a b;$(reboot)'" in page


def test_colour_changes_nothing_but_colour(launch_b: Diagnosis) -> None:
    import re

    page = draw(launch_b, color="always")
    assert "\x1b[1;31mFAILED" in page
    assert re.sub(r"\x1b\[[\d;]*m", "", page) == LAUNCH_B
    assert draw(launch_b, color="never") == LAUNCH_B


def test_environment_decides_on_colour(
    launch_b: Diagnosis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[1;31mFAILED" in draw(launch_b)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "31m" not in draw(launch_b)


@pytest.mark.parametrize("width", [50, 64, 80, 100])
def test_no_line_is_wider_than_the_page_or_ends_in_spaces(launch_b: Diagnosis, width: int) -> None:
    for line in draw(launch_b, verbose=True, width=width).splitlines():
        assert line == line.rstrip()
        assert len(line) <= width or " " not in line.strip()


def test_thirty_columns_hold_all_but_the_words_of_a_command(launch_b: Diagnosis) -> None:
    page, _, rest = draw(launch_b, width=30).partition("NEW LAUNCH")
    _, _, rest = rest.partition("Put your own value")
    for line in [*page.splitlines(), *rest.splitlines()]:
        assert len(line) <= 30 or " " not in line.strip()
    assert "  glm5.log:142" in page


def test_a_degraded_run_did_not_crash(launch_b: Diagnosis) -> None:
    launch_b.reports[0].run.outcome = "degraded"
    page = draw(launch_b)
    assert "6 s before it showed: 0.96 GiB free" in page
    assert "crash" not in page


def test_a_phase_whose_ends_are_on_two_clocks_has_no_length(launch_b: Diagnosis) -> None:
    run = launch_b.reports[0].run
    for event in run.events:
        if event.phase == "init" and event.time:
            event.time -= timedelta(days=227)
    page = draw(launch_b)
    assert "startup" in page
    assert "5448 h" not in page


def test_parts_that_add_up_to_more_than_there_is_have_no_bar(launch_b: Diagnosis) -> None:
    for row in launch_b.reports[0].run.memory:
        row.free_gib = 40.0
    memory = draw(launch_b).partition("MEMORY")[2].partition("CHANGE")[0]
    assert "[" not in memory
    assert "These add up to 134.01, more than the 94.97 there were" in memory


def test_alike_names_are_told_apart(launch_b: Diagnosis) -> None:
    launch_b.incident.sources.append(SourceFacts("other/glm5.log", lines=3))
    page = draw(launch_b)
    assert "  logs/glm5.log:142  Capture" in page
    assert "Read 2 sources: 397 lines" in page


def test_steps_of_arithmetic_stand_one_below_another(launch_b: Diagnosis) -> None:
    launch_b.reports[0].findings[
        0
    ].explanation = (
        "Too little was free. Arithmetic (GiB): slack = 94.40 * (1 - 0.95) = 4.72; had 0.96."
    )
    assert (
        "  Too little was free.\n"
        "\n"
        "  Arithmetic (GiB):\n"
        "  -  slack = 94.40 * (1 - 0.95) = 4.72\n"
        "  -  had 0.96\n"
        "\n"
    ) in draw(launch_b)


def test_ranks_that_failed_later_are_echoes(launch_b: Diagnosis) -> None:
    findings = launch_b.reports[0].findings
    findings[0].facts["echo_ranks"] = ["TP0", "TP1", "TP2", "TP6"]
    assert "  TP0-TP2, TP6 failed the same way, later\n" in draw(launch_b)


def test_ranks_that_differ_a_little_are_one_bar(launch_b: Diagnosis) -> None:
    launch_b.reports[0].run.memory[5].free_gib = 0.8
    assert "  TP0-TP7  8 ranks alike, within 0.16\n" in draw(launch_b)


def test_a_rank_of_which_only_free_memory_is_known_has_no_bar(launch_b: Diagnosis) -> None:
    for row in launch_b.reports[0].run.memory:
        row.total_gib = row.weights_gib = row.kv_pool_gib = row.other_gib = None
    assert "  TP0-TP7  8 ranks alike\n  . free 0.96\n" in draw(launch_b)
