"""What a watch tells, and when it ends; time stands still but for the test."""

from __future__ import annotations

import pytest

from forensics.findings import Finding
from forensics.live.notices import FindingNotice, PhaseNotice, Verdict, WithdrawnNotice
from forensics.live.processes import Process, Vitals
from tests.live.conftest import FIXTURES, Make, Watched

GLM5 = (FIXTURES / "sglang-glm5.log").read_bytes()
HEALTHY = (FIXTURES / "genuine/cpu-healthy.log").read_bytes()
BEGIN = GLM5.index(b"[2026-02-18 23:53:22 TP6] Capture cuda graph begin")
CRASH = GLM5.index(b"Scheduler hit an exception")
READY = HEALTHY.index(b"ready to roll!") + len(b"ready to roll!\n")


def play(watched: Watched, data: bytes, step_s: float = 0.01) -> Verdict | None:
    """Feed a log line by line; returns the verdict, if one comes."""
    for line in data.splitlines(keepends=True):
        watched.watch.heard(0, line)
        watched.clock.now += step_s
        if verdict := watched.watch.step():
            return verdict
    return None


def wait(watched: Watched, seconds: float) -> Verdict | None:
    for _ in range(int(seconds / 0.05)):
        watched.clock.now += 0.05
        if verdict := watched.watch.step():
            return verdict
    return None


def test_the_alarm_comes_at_the_capture_line(watched: Make) -> None:
    w = watched()
    w.watch.caught_up()
    assert play(w, GLM5[:BEGIN]) is None
    line = GLM5[BEGIN : GLM5.index(b"\n", BEGIN) + 1]
    w.watch.heard(0, line)
    assert w.watch.step() is None
    told = w.of(FindingNotice)[-1]
    assert isinstance(told, FindingNotice)
    assert (told.finding.rule, told.finding.severity) == ("graph-capture-headroom", "critical")
    verdict = play(w, GLM5[BEGIN + len(line) : CRASH]) or wait(w, 1)
    assert verdict
    assert verdict.exit_code == 6
    assert verdict.finding
    assert verdict.finding.facts["ranks"] == 8
    assert verdict.root_cause is None
    assert verdict.new_command


def test_a_crash_on_the_heels_of_the_alarm_does_not_change_it(watched: Make) -> None:
    w = watched()
    w.watch.caught_up()
    verdict = play(w, GLM5, 0.001)
    assert verdict
    assert (verdict.exit_code, verdict.outcome) == (6, "unknown")


def test_never_stopping_names_the_first_rank_once_it_is_quiet(watched: Make) -> None:
    w = watched(fail_on=None)
    w.watch.caught_up()
    assert play(w, GLM5, 0.001) is None
    assert not [n for n in w.of(FindingNotice) if n.finding.role == "root_cause"]  # type: ignore[attr-defined]
    verdict = wait(w, 3)
    assert verdict
    assert verdict.exit_code == 1
    assert verdict.root_cause
    assert verdict.root_cause.rule == "graph-capture-oom"
    assert verdict.root_cause.rank == "TP4"


def test_an_end_that_goes_on_and_on_is_judged_after_five_seconds(watched: Make) -> None:
    w = watched(fail_on=None)
    w.watch.caught_up()
    play(w, GLM5, 0.001)
    for _ in range(100):
        w.watch.heard(0, b"more noise\n")
        w.clock.now += 0.1
        if verdict := w.watch.step():
            break
    else:
        pytest.fail("no verdict while lines went on coming")
    assert verdict.exit_code == 1


def test_a_finding_keeps_its_id_and_says_what_changed(watched: Make) -> None:
    w = watched(fail_on=None)
    w.watch.caught_up()
    play(w, GLM5, 0.001)
    wait(w, 3)
    notices = [n for n in w.told if isinstance(n, FindingNotice)]
    first = {n.finding.id for n in notices if not n.updated}
    assert len(first) == len([n for n in notices if not n.updated])
    assert {n.finding.id for n in notices if n.updated} <= first
    assert len({n.finding.rule for n in notices}) == len(first)


def test_a_critical_finding_stays_or_is_explained(watched: Make) -> None:
    w = watched(fail_on=None)
    w.watch.caught_up()
    play(w, GLM5, 0.001)
    verdict = wait(w, 3)
    assert verdict
    told: dict[str, Finding] = {}
    for notice in w.told:
        if isinstance(notice, FindingNotice):
            told[notice.finding.id] = notice.finding
        elif isinstance(notice, WithdrawnNotice):
            assert notice.because
            del told[notice.finding.id]
    assert {"graph-capture-headroom", "graph-capture-oom"} <= {f.rule for f in told.values()}


@pytest.mark.parametrize(("until", "data", "code"), [
    ("ready", HEALTHY[:READY], 0),
    ("failed", HEALTHY, 0),
    ("serving", HEALTHY[:READY], None),
])  # fmt: skip
def test_what_is_waited_for(watched: Make, until: str, data: bytes, code: int | None) -> None:
    w = watched(until)
    w.watch.caught_up()
    verdict = play(w, data) or wait(w, 3)
    assert (verdict and verdict.exit_code) == code
    assert w.of(PhaseNotice)


def test_time_runs_out(watched: Make) -> None:
    w = watched(timeout_s=5.0)
    w.watch.caught_up()
    verdict = wait(w, 6)
    assert verdict
    assert verdict.exit_code == 7


def test_a_start_may_time_out_but_not_a_server(watched: Make) -> None:
    w = watched("failed", start_timeout_s=5.0)
    w.watch.caught_up()
    play(w, HEALTHY[:READY])
    assert wait(w, 20) is None


def test_the_last_launch_of_a_file_counts(watched: Make) -> None:
    w = watched()
    w.watch.heard(0, (FIXTURES / "sglang-glm5-abc.log").read_bytes())
    w.watch.caught_up(100.0)
    verdict = w.watch.step()
    assert verdict
    assert (verdict.run, verdict.exit_code) == (3, 1)


def test_past_launches_can_be_ignored(watched: Make) -> None:
    w = watched(ignore_past=True)
    w.watch.heard(0, GLM5)
    w.watch.caught_up(100.0)
    assert wait(w, 3) is None
    assert not w.told
    verdict = play(w, HEALTHY[:READY])
    assert verdict
    assert (verdict.run, verdict.exit_code) == (2, 0)


def test_a_launch_that_says_nothing_hangs_in_the_end(watched: Make) -> None:
    w = watched()
    w.watch.caught_up()
    play(w, GLM5[:BEGIN])
    w.clock.now += 2000.0
    verdict = w.watch.step()
    assert verdict
    assert (verdict.exit_code, verdict.outcome) == (1, "hung")
    assert verdict.root_cause
    assert verdict.root_cause.rule == "silent-launch"
    assert len(verdict.root_cause.evidence) == 8


class Stopped:
    def check(self, now: float) -> Vitals:
        return Vitals((Process(17, "sglang::schedul", "T"),))


def test_a_stopped_process_hangs_the_launch_and_is_told_once(watched: Make) -> None:
    w = watched("failed")
    w.watch.vigil = Stopped()
    w.watch.caught_up()
    play(w, HEALTHY[:READY])
    verdict = wait(w, 2)
    assert verdict
    assert (verdict.outcome, verdict.exit_code) == ("hung", 1)
    assert verdict.root_cause
    assert verdict.root_cause.facts["pids"] == [17]
    wait(w, 5)
    assert [n.finding.rule for n in w.of(FindingNotice)].count("stopped-process") == 1  # type: ignore[attr-defined]


class Gone:
    def check(self, now: float) -> Vitals:
        return Vitals(gone=True)


def test_a_log_without_writers_is_over(watched: Make) -> None:
    w = watched("failed")
    w.watch.vigil = Gone()
    w.watch.caught_up()
    play(w, HEALTHY[:READY])
    verdict = wait(w, 2)
    assert verdict
    assert (verdict.outcome, verdict.exit_code) == ("failed", 1)
    assert verdict.root_cause
    assert verdict.root_cause.rule == "gone-without-a-word"


def test_evidence_points_into_the_file_that_is_there_now(watched: Make) -> None:
    w = watched(fail_on=None)
    w.watch.caught_up()
    before = GLM5[:BEGIN]
    play(w, before, 0.001)
    w.watch.places.rotated("log", before.count(b"\n"))
    play(w, GLM5[BEGIN:], 0.001)
    verdict = wait(w, 3)
    assert verdict
    assert verdict.root_cause
    first = verdict.root_cause.first
    assert first.source == "log"
    assert b"Scheduler hit an exception" in GLM5[BEGIN:].split(b"\n")[first.line - 1]
