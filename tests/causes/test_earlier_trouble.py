"""A trouble that was there before the cause is no echo of it."""

from __future__ import annotations

from pathlib import Path

from forensics.pipeline import analyze

FAILED = """\
[2026-03-02 09:30:00 DP1] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/srt/managers/scheduler.py", line 3100, in run_scheduler_process
    scheduler.event_loop_overlap()
  File "/opt/sglang/srt/layers/odd.py", line 12, in forward
    out = kernel(x)
torch.AcceleratorError: CUDA error: an illegal memory access was encountered
"""


def roles(log: Path) -> dict[str, str]:
    (report,) = analyze([str(log)]).reports
    return {finding.rule: finding.role for finding in report.findings}


def test_retractions_half_an_hour_before_a_kernel_fault(root: Path, tmp_path: Path) -> None:
    retracting = (root / "tests/rules/kv-retraction/hit.log").read_text()
    assert roles(root / "tests/rules/kv-retraction/hit.log")["kv-retraction"] == "root_cause"
    log = tmp_path / "later.log"
    log.write_text(retracting + FAILED)
    found = roles(log)
    assert found["kernel-memory-fault"] == "root_cause"
    assert found["kv-retraction"] == "context"


def test_the_new_launch_mends_the_cause_and_nothing_else(root: Path, tmp_path: Path) -> None:
    text = (root / "tests/rules/nvcc-arch/hit.log").read_text()
    log = tmp_path / "tight.log"
    log.write_text(
        text.replace("tp_size=2,", "tp_size=2, mem_fraction_static=0.95,")
        .replace("avail mem=3.96", "avail mem=0.16")
        .replace("avail mem=4.02", "avail mem=0.22")
    )
    (report,) = analyze([str(log)]).reports
    assert roles(log)["nvcc-arch"] == "root_cause"
    assert roles(log)["graph-capture-headroom"] == "precursor"
    assert (report.diff, report.new_command) == ([], None)
