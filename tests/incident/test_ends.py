"""When and how a run ended: by a person, by a failure, or not yet."""

from collections.abc import Callable
from pathlib import Path

import pytest

from forensics.diagnosis import RunReport
from forensics.pipeline import analyze

LOADING = "[2025-06-03 02:58:02 TP0] Load weight begin. avail mem=77.40 GB\n"
READY = "[2025-06-03 02:58:37] The server is fired up and ready to roll!\n"
INTERRUPT = """^CTraceback (most recent call last):
  File "/usr/lib/python3.10/runpy.py", line 196, in _run_module_as_main
    return _run_code(code, main_globals, None,
KeyboardInterrupt
"""
BROKEN = """[2025-06-03 02:58:05 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/srt/managers/scheduler.py", line 1, in run_scheduler_process
    scheduler = Scheduler()
ValueError: no such thing
"""
DECODING = (
    "[2025-06-03 02:59:22 TP0] Decode batch. #running-req: 5, #token: 100, token usage: 0.10, "
    "cuda graph: True, gen throughput (token/s): 900.00, #queue-req: 0, \n"
)


@pytest.fixture
def run_of(tmp_path: Path) -> Callable[[str], RunReport]:
    def make(text: str) -> RunReport:
        path = tmp_path / "server.log"
        path.write_text(text)
        return analyze([str(path)]).reports[-1]

    return make


@pytest.mark.parametrize("after", ["", "Killed\n"])
def test_ctrl_c_is_a_stop_and_no_failure(run_of: Callable[[str], RunReport], after: str) -> None:
    report = run_of(LOADING + INTERRUPT + after)
    assert (report.run.outcome, report.root_cause) == ("stopped", None)
    assert report.run.failures == []


def test_ctrl_c_after_a_failure_does_not_hide_it(run_of: Callable[[str], RunReport]) -> None:
    report = run_of(LOADING + BROKEN + INTERRUPT)
    assert report.run.outcome == "failed"
    assert report.root_cause is not None
    assert "no such thing" in report.root_cause.title


def test_a_run_that_serves_ends_with_its_last_routine_line(
    run_of: Callable[[str], RunReport],
) -> None:
    run = run_of(LOADING + READY + DECODING).run
    assert run.ended_at is not None
    assert run.ended_at.isoformat() == "2025-06-03T02:59:22"
