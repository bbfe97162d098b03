"""Cause and consequence, told apart in small logs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from forensics.diagnosis import RunReport
from forensics.pipeline import analyze

DUMP = "[2026-05-11 10:00:00] server_args=ServerArgs(model_path='/models/m', tp_size=2)"
BEGIN = [DUMP, "[2026-05-11 10:00:01 TP0] Load weight begin. avail mem=70.00 GB",
         "[2026-05-11 10:00:01 TP1] Load weight begin. avail mem=70.00 GB"]  # fmt: skip
READY = [
    "[2026-05-11 10:00:30] INFO:     Started server process [1]",
    "[2026-05-11 10:00:31] The server is fired up and ready to roll!",
]
SIGQUIT = (
    "[2026-05-11 10:01:00] Received sigquit from a child process. "
    "It usually means the child failed."
)
CLOSED = "RuntimeError: [/gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:41"


def trace(rank: str, said: str, time: str = "10:01:00") -> list[str]:
    return [
        f"[2026-05-11 {time} {rank}] Scheduler hit an exception: "
        "Traceback (most recent call last):",
        '  File "/opt/site/sglang/srt/managers/scheduler.py", line 9, in run_scheduler_process',
        "    scheduler.event_loop_overlap()",
        '  File "/opt/acme/hook.py", line 3, in after',
        "    raise",
        said,
        "",
    ]


Reports = Callable[..., list[RunReport]]


@pytest.fixture
def reports(tmp_path: Path) -> Reports:
    def of(*lines: str) -> list[RunReport]:
        path = tmp_path / "log.txt"
        path.write_text("\n".join(lines) + "\n")
        return analyze([str(path)]).reports

    return of


def test_the_main_process_speaks_before_the_child(reports: Reports) -> None:
    lines = [*BEGIN, *READY, SIGQUIT, *trace("TP1", "LookupError: 17")]
    (report,) = reports(*lines)
    assert report.root_cause.rank == "TP1"
    assert report.root_cause.first.line == len(BEGIN + READY) + 2


def test_a_closed_connection_is_an_echo_though_it_comes_first(reports: Reports) -> None:
    (report,) = reports(*BEGIN, *READY, *trace("TP0", CLOSED), *trace("TP1", "LookupError: 17"))
    assert (report.root_cause.rank, report.root_cause.rule) == ("TP1", "unknown-failure")
    (echo,) = [f for f in report.findings if f.rule == "echo-failures"]
    assert (echo.role, echo.facts["ranks"]) == ("consequence", ["TP0"])


def test_echoes_alone_are_still_told(reports: Reports) -> None:
    (report,) = reports(*BEGIN, *READY, *trace("TP0", CLOSED))
    assert report.run.outcome == "failed"
    assert report.root_cause is not None


def test_a_failed_start_does_not_taint_the_second(reports: Reports) -> None:
    first, second = reports(*BEGIN, *trace("TP0", "LookupError: 17"), *BEGIN, *READY)
    assert (first.run.outcome, second.run.outcome) == ("failed", "ready")
    assert first.root_cause is not None
    assert second.root_cause is None


def test_what_users_sent_is_no_evidence(reports: Reports) -> None:
    sent = (
        "[2026-05-11 10:00:40] Receive: obj=GenerateReqInput(text='Scheduler hit an exception: "
        "Traceback ... NCCL WARN Bootstrap : no socket interface found; Errno 98] address already "
        "in use; transport retry counter exceeded')"
    )
    (report,) = reports(*BEGIN, *READY, sent)
    assert (report.run.outcome, report.root_cause) == ("ready", None)


def test_a_traceback_that_the_start_outlived_is_no_failure(reports: Reports) -> None:
    caught = ["Traceback (most recent call last):", '  File "/opt/a.py", line 1, in f', "    g()",
              "OSError: cache is read-only"]  # fmt: skip
    (report,) = reports(DUMP, *caught, *BEGIN[1:], *READY)
    assert (report.run.outcome, report.root_cause) == ("ready", None)


def test_a_stop_that_was_asked_for_is_no_failure(reports: Reports) -> None:
    stop = (
        "[2026-05-11 10:05:00] SIGTERM received. signum=None frame=None. "
        "Draining requests and shutting down..."
    )
    killed = (
        "[2026-05-11 10:05:03] Subprocess detokenizer (pid=9) crashed with exit code -9. "
        "Triggering SIGQUIT for cleanup..."
    )
    (report,) = reports(*BEGIN, *READY, stop, killed, SIGQUIT)
    assert (report.run.outcome, report.root_cause) == ("stopped", None)


def test_the_printed_hint_is_no_verdict(reports: Reports) -> None:
    died = (
        "RuntimeError: Rank 1 scheduler died during initialization (exit code: 1). If exit code is "
        "-9 (SIGKILL), a common cause is the OS OOM killer. Run `dmesg -T | grep -i oom` to check."
    )
    (report,) = reports(*BEGIN, "Traceback (most recent call last):",
                        '  File "/opt/e.py", line 1, in run', "    raise", died)  # fmt: skip
    assert report.root_cause.class_ == "unknown"
