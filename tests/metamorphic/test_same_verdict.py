"""A verdict does not hang on names, numbers of ranks, dates, wrappers or chatter."""

import random
from dataclasses import dataclass
from pathlib import Path

import pytest
from changing import TRANSFORMS, Changed, Transform

from forensics.pipeline import analyze

ROOT = Path(__file__).parents[2]
LOGS = sorted(
    path
    for path in [
        *(ROOT / "fixtures").glob("*.log"),
        *(ROOT / "fixtures" / "genuine").glob("*.log"),
        *(ROOT / "tests" / "rules").glob("*/hit.log"),
    ]
    if path.stat().st_size < 200_000
)


@dataclass(frozen=True)
class Verdict:
    outcome: str
    phase: str
    class_: str | None
    rule: str | None
    rank: str | None
    line: int | None


def verdicts(path: Path) -> list[Verdict]:
    """What is said of each run."""
    found = []
    for report in analyze([str(path)]).reports:
        root, run = report.root_cause, report.run
        found.append(
            Verdict(
                run.outcome,
                run.phase,
                root.class_ if root else None,
                root.rule if root else None,
                root.rank if root else None,
                root.first.line if root else None,
            )
        )
    return found


def expected(before: list[Verdict], changed: Changed) -> list[Verdict]:
    """The same verdicts, with the ranks and lines of the changed log."""
    return [
        Verdict(
            v.outcome,
            v.phase,
            v.class_,
            v.rule,
            changed.rank(v.rank),
            changed.moved[v.line] if v.line else None,
        )
        for v in before
    ]


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda transform: transform.__name__)
@pytest.mark.parametrize("path", LOGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_verdict_stays(path: Path, transform: Transform, tmp_path: Path) -> None:
    lines = path.read_bytes().decode("utf-8", "replace").split("\n")
    changed = transform(lines, random.Random(f"{path.parent.name}/{path.name}"))
    copy = tmp_path / "log.txt"
    copy.write_bytes("\n".join(changed.lines).encode())
    assert verdicts(copy) == expected(verdicts(path), changed)
