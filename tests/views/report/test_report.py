"""Reports of the fixtures, word for word, and what any report keeps to.

To take over a change that is meant: UPDATE_GOLDEN=1 pytest tests/views/report/test_report.py
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from forensics import __version__
from forensics.pipeline import analyze
from forensics.views.report import Wish, render

Render = Callable[..., str]
GOLDEN = Path(__file__).parent / "golden"
CASES = {
    "capture-oom": "fixtures/sglang-glm5.log",
    "three-launches": "fixtures/sglang-glm5-abc.log",
    "unknown-model": "fixtures/sglang-glm5-a.log",
    "nan-while-serving": "fixtures/sglang-glm5-c.log",
    "degraded": "tests/rules/kv-retraction/hit.log",
    "healthy": "tests/rules/thin-reserve/miss.log",
    "unexplained": "tests/rules/unknown-failure/hit.log",
}
HEADINGS = [
    "Outcome and impact",
    "Timeline",
    "Root cause",
    "Memory",
    "Ruled out",
    "Remedies",
    "How to confirm",
    "Known earlier",
    "Standing risks",
    "Background",
    "Evidence",
    "Environment",
    "Coverage",
]


@pytest.fixture
def at_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)


@pytest.mark.parametrize("name", CASES)
def test_the_report_of_a_fixture(name: str, at_root: None) -> None:
    said = render(analyze([CASES[name]]), "markdown").replace(__version__, "VERSION")
    file = GOLDEN / f"{name}.md"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(said, encoding="utf-8")
    assert said == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_it_reads_in_eighty_columns(name: str, at_root: None) -> None:
    for line in render(analyze([CASES[name]]), "markdown").splitlines():
        whole = line.startswith(("|", "- `", "  `", "forensics reproduce")) or "`" in line
        assert len(line) <= 80 or whole or " " not in line.strip(), line
        assert line == line.rstrip()


def test_its_parts_stand_in_order(at_root: None) -> None:
    text = render(analyze([CASES["capture-oom"]]), "markdown")
    assert re.findall(r"^## (.*)$", text, re.M) == HEADINGS
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(text)
    assert [t.tag for t in tokens if t.type == "heading_open"].count("h1") == 1
    fences = [token.info for token in tokens if token.type == "fence"]
    assert fences.count("diff") == 1
    assert fences.count("bash") == 3
    assert not any(token.type.startswith("html") for token in tokens)


def test_the_summary_is_three_sentences(at_root: None) -> None:
    text = render(analyze([CASES["capture-oom"]]), "markdown")
    summary = " ".join(text.partition("**Summary.**")[2].partition("\n\n")[0].split())
    assert len(re.findall(r"[.](?: |$)", summary)) == 3
    assert "lower `--mem-fraction-static` from 0.95 to 0.88" in summary


def test_the_same_input_gives_the_same_bytes(root: Path) -> None:
    def once(seed: str, form: str) -> bytes:
        argv = ["report", "fixtures/sglang-glm5-abc.log", "--format", form]
        env = {**os.environ, "PYTHONHASHSEED": seed, "TZ": f"UTC{seed}"}
        return subprocess.run(
            [sys.executable, "-m", "forensics", *argv], cwd=root, env=env, capture_output=True,
            check=False, stdin=subprocess.DEVNULL,
        ).stdout  # fmt: skip

    for form in ("markdown", "html", "sarif", "junit"):
        first = once("1", form)
        assert len(first) > 2_000
        assert first == once("7", form)


def test_a_healthy_launch_needs_no_change(at_root: None) -> None:
    text = render(analyze([CASES["healthy"]]), "markdown")
    assert text.startswith("# SGLang launch came up and ")
    assert "Nothing needs to be changed." in text
    assert "## Remedies" not in text


def test_the_run_asked_for_is_told(report: Render, root: Path) -> None:
    log = str(root / "fixtures" / "sglang-glm5-abc.log")
    assert report(log).startswith("# SGLang launch failed while serving")
    assert report(log, "--run", "2").startswith("# SGLang launch failed while capturing")
    assert "forensics reproduce --run 2 " in report(log, "--run", "2")


def test_what_a_reproduction_has_shown(report: Render, root: Path, reproduction: Path) -> None:
    log = str(root / "fixtures" / "sglang-glm5.log")
    text = report(log, "--reproduction", str(reproduction))
    assert text == report(log, "--reproduction", str(reproduction.parent))
    part = text.partition("## Confirmed by trial\n\n")[2].partition("\n## ")[0]
    assert part.startswith("**Verdict: confirmed.** The launch failed again as in the log")
    assert "| fix     | `mem_fraction_static=0.88` | passed" in part
    assert "7.61 GiB free at capture (predicted 7.57), 425,100 KV tokens" in part
    assert "Eight ranks were not tried" in part
    assert "0.5.9 in the log, 0.5.23 here" in part
    html = report(log, "--reproduction", str(reproduction), "--format", "html")
    assert "Verdict: confirmed." in html


def test_a_report_of_a_bug_has_the_trackers_headings(report: Render, root: Path) -> None:
    text = report(root / "fixtures" / "sglang-glm5.log", "--for", "issue")
    assert re.findall(r"^### (.*)$", text, re.M) == [
        "Checklist",
        "Describe the bug",
        "Reproduction",
        "Environment",
    ]
    assert text.count("- [ ] ") == 5
    paragraph = text.partition("### Describe the bug\n\n")[2].partition("\n")[0]
    assert paragraph.endswith("it fails again).")  # a line break would show in an issue


def test_a_report_of_a_bug_fits_into_one(root: Path) -> None:
    diagnosis = analyze([str(root / "fixtures" / "sglang-glm5.log")])
    (report,) = diagnosis.reports
    for finding in report.findings:
        finding.explanation = "word " * 2_000
        finding.evidence = [
            item.model_copy(update={"text": f"{number} " + "x" * 3_000, "line": number})
            for number, item in enumerate(finding.evidence * 40, start=1)
        ]
    text = render(diagnosis, "markdown", Wish(for_issue=True))
    assert len(text) <= 65_536
    assert "left out to fit" in text
    assert "### Environment" in text
    kinds = [token.type for token in MarkdownIt("gfm-like", {"linkify": False}).parse(text)]
    assert kinds.count("heading_open") == 4
