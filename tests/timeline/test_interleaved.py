"""Two ranks that write at once: whose traceback is whose, and which run a line belongs to."""

import pytest

from forensics.events import Event
from forensics.grammar import load
from forensics.reading import Block
from forensics.timeline import SourceParser


def events(*lines: str) -> list[Event]:
    parser = SourceParser(0, load())
    found = parser.feed(Block(("\n".join(lines) + "\n").encode(), 0)).events
    return found + parser.finish().events


def trace(rank: str, said: str) -> list[str]:
    return [
        f"[2026-05-11 10:01:00 {rank}] Scheduler hit an exception: "
        "Traceback (most recent call last):",
        '  File "/opt/site/sglang/srt/managers/scheduler.py", line 9, in run_scheduler_process',
        "    scheduler = Scheduler(",
        '  File "/opt/site/sglang/srt/models/llama.py", line 77, in load_weights',
        "    param.copy_(w)",
        said,
    ]


def test_line_by_line_each_rank_keeps_its_exception() -> None:
    one, other = trace("TP0", "LookupError: a"), trace("TP1", "ValueError: b")
    mixed = [line for pair in zip(one, other, strict=True) for line in pair]
    found = {e.rank: e for e in events(*mixed) if e.traceback}
    assert {rank: e.traceback.cause.type for rank, e in found.items() if e.traceback} == {
        "TP0": "LookupError",
        "TP1": "ValueError",
    }
    assert all(event.uncertain for event in found.values())


def test_a_traceback_alone_is_certain() -> None:
    (found,) = [e for e in events(*trace("TP1", "ValueError: b")) if e.traceback]
    assert (found.rank, found.uncertain, found.end_line) == ("TP1", False, 6)


def test_torchs_prefix_names_the_rank_that_the_log_has_shown() -> None:
    lines = ["[2026-05-11 10:00:00 DP0 TP1 EP1] Load weight begin. avail mem=70.00 GB"]
    lines += [f"[rank1]: {line}" for line in trace("TP9", "ValueError: b")[1:]]
    lines.insert(1, "[rank1]: Traceback (most recent call last):")
    (found,) = [e for e in events(*lines) if e.traceback]
    assert (found.rank, found.phase, found.fields["global_rank"]) == ("DP0 TP1 EP1", "load", 1)


def test_a_number_that_replicas_share_names_nobody() -> None:
    begin = "] Load weight begin. avail mem=70.00 GB"
    lines = [f"[2026-05-11 10:00:00 DP{replica} TP0{begin}" for replica in (0, 1)]
    lines += ["[rank0]: Traceback (most recent call last):", "[rank0]: ValueError: b"]
    (found,) = [e for e in events(*lines) if e.traceback]
    assert found.rank is None


DUMP = "[2026-05-11 10:00:00] server_args=ServerArgs(model_path='/models/m', tp_size=2)"
LOAD = "[2026-05-11 10:00:01 TP0] Load weight begin. avail mem=70.00 GB"
SIGQUIT = (
    "[2026-05-11 10:00:09] SIGQUIT received. signum=None, frame=None. "
    "It usually means one child failed."
)


@pytest.mark.parametrize(
    ("lines", "runs"),
    [
        ([DUMP, LOAD, DUMP, LOAD], [1, 1, 2, 2]),
        ([DUMP, LOAD, SIGQUIT, SIGQUIT, DUMP], [1, 1, 1, 1, 2]),
        ([DUMP, DUMP, LOAD], [1, 1, 1]),
        ([LOAD, DUMP], [1, 2]),
        (["node-a-1  | " + DUMP, "node-b-1  | " + DUMP, "node-a-1  | " + LOAD], [1, 1, 1]),
    ],
)
def test_runs_of_one_file(lines: list[str], runs: list[int]) -> None:
    assert [event.run for event in events(*lines)] == runs


def test_a_formatted_error_after_the_end_begins_no_run() -> None:
    late = (
        "2026-05-11 10:00:10 ERROR 125700 [ engine.py:712] Received sigquit from a child process. "
        "It usually means the child failed."
    )
    assert [event.run for event in events(DUMP, LOAD, SIGQUIT, late)] == [1, 1, 1, 1]
