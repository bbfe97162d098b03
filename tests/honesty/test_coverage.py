"""How much was understood: a finding where it is too little, and every input named."""

from __future__ import annotations

import gzip
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from forensics import pipeline
from forensics.findings import Finding
from forensics.rules import Settings

Program = Callable[..., subprocess.CompletedProcess[str]]
START = (
    "[2026-03-01 10:00:00 TP0] Load weight begin. avail mem=78.50 GB\n"
    "[2026-03-01 10:00:30 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, "
    "avail mem=63.50 GB, mem usage=15.00 GB.\n"
)


def odd(count: int) -> str:
    return "".join(
        f"[2026-03-01 10:01:00 TP0] zorp {i} of the qux at {i % 7}\n" for i in range(count)
    )


def low(path: Path, **thresholds: float) -> Finding | None:
    diagnosis = pipeline.analyze([str(path)], Settings(thresholds=thresholds))
    found = [f for report in diagnosis.reports for f in report.findings]
    return next((finding for finding in found if finding.rule == "low-coverage"), None)


def test_too_little_understood_is_a_finding(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(START + odd(60))
    finding = low(log)
    assert finding is not None
    assert (finding.severity, finding.role, finding.playbook) == (
        "warning", "context", "low-coverage",
    )  # fmt: skip
    assert finding.title == "Only 3% of a.log was understood"
    assert "zorp 0 of the qux at 0" in finding.explanation
    assert "(60)" in finding.explanation
    assert finding.first.line == 3
    assert [line.line for line in finding.evidence] == [3, 4, 5]


def test_a_few_unknown_lines_are_usual(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_text(START + odd(49))
    assert low(log) is None
    assert low(log, low_coverage_lines=49) is not None
    log.write_text(START * 200 + odd(60))
    assert low(log) is None
    assert low(log, low_coverage_share=0.95) is not None


def test_it_is_said_once_of_a_log_with_several_launches(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    dump = "[2026-03-01 09:59:00] server_args=ServerArgs(model_path='/m', tp_size=1)\n"
    log.write_text(f"{dump}{START}{odd(40)}{dump}{START}{odd(40)}")
    reports = pipeline.analyze([str(log)]).reports
    rules = [[finding.rule for finding in report.findings] for report in reports]
    assert len(rules) == 2
    assert ["low-coverage" in names for names in rules] == [False, True]


def test_inputs_that_are_no_log_or_cut_are_named(program: Program, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(START)
    (tmp_path / "poem.txt").write_text("The sea\nis wide\n")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "weights.bin").write_bytes(b"\0\1\2" * 2000)
    cut = gzip.compress((START * 500).encode())
    (tmp_path / "cut.log.gz").write_bytes(cut[: len(cut) // 2])
    names = ["a.log", "poem.txt", "empty.txt", "weights.bin", "cut.log.gz"]
    done = program("analyze", "--json", *names, cwd=tmp_path)
    assert done.returncode == 0
    skipped = json.loads(done.stdout)["coverage"]["skipped"]
    told = {line.partition(":")[0]: line.partition(": ")[2] for line in skipped}
    assert told["poem.txt"] == "no line of it was recognised as a log of SGLang"
    assert told["empty.txt"] == "empty"
    assert "binary" in told["weights.bin"]
    assert "ends early" in told["cut.log.gz"]
    assert "a.log" not in told
    text = program("analyze", *names, cwd=tmp_path).stdout
    assert "Notice:  poem.txt: no line of it was recognised" in text


def test_a_run_without_verdict_says_why(program: Program, tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(START.splitlines(keepends=True)[0])
    done = program("analyze", "-q", "a.log", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith(
        "UNFINISHED: the log ends while loading the weights; nothing is wrong so far."
    )


@pytest.mark.parametrize("packed", [False, True])
def test_progress_ends_at_the_size_of_the_files(tmp_path: Path, packed: bool) -> None:
    told: list[tuple[int, int | None]] = []
    paths = [tmp_path / name for name in ("a.log", "b.log")]
    for path in paths:
        text = (START + odd(5000)).encode()
        path.write_bytes(gzip.compress(text) if packed else text)
    total = sum(path.stat().st_size for path in paths)
    names = [str(path) for path in paths]
    pipeline.analyze(names, progress=lambda done, of: told.append((done, of)))
    assert {of for _, of in told} == {total}
    assert told[-1][0] == total
    assert told == sorted(told)
    told.clear()
    for _ in pipeline.events(names, lambda done, of: told.append((done, of))):
        pass
    assert told[-1] == (total, total)


def test_two_nodes_with_the_same_ranks_stay_apart(program: Program, tmp_path: Path) -> None:
    (tmp_path / "n0.log").write_text(START)
    (tmp_path / "n1.log").write_text(START.replace("63.50", "43.50").replace("15.00", "35.00"))
    done = program("analyze", "--json", "n0.log", "n1.log", cwd=tmp_path)
    rows = [row for run in json.loads(done.stdout)["runs"] for row in run["memory"]]
    assert {(row["source"], row["weights_gib"]) for row in rows if row["weights_gib"]} == {
        ("n0.log", 15.0),
        ("n1.log", 35.0),
    }
    text = program("analyze", "n0.log", "n1.log", cwd=tmp_path).stdout
    assert "# weights 15.00" in text
    assert "# weights 35.00" in text or "Run 2" in text


def test_the_lead_of_the_headroom_is_the_time_to_the_crash(fixtures: Path) -> None:
    (report,) = pipeline.analyze([str(fixtures / "sglang-glm5.log")]).reports
    (headroom,) = [f for f in report.findings if f.rule == "graph-capture-headroom"]
    assert headroom.lead_s is not None
    assert 5 <= headroom.lead_s <= 6
