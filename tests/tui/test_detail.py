"""The finding's pane: everything that is said of it, and the way to its lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forensics.tui.detail import DetailPane
from forensics.tui.model import FindingChosen, Loaded, Selection

Drive = Callable[..., Any]


@pytest.fixture
def glm5(fixtures: Path, load: Callable[[Path], Loaded]) -> Loaded:
    return load(fixtures / "sglang-glm5.log")


def text_of(pane: DetailPane) -> str:
    return "\n".join(line.plain for line in pane.document.lines)


def test_the_cause_is_shown_with_fix_arithmetic_evidence_diff_launch_and_playbook(
    glm5: Loaded, drive: Drive
) -> None:
    async def script(pilot: Any, pane: DetailPane) -> None:
        pane.show(glm5, 0)
        await pilot.pause()
        text = text_of(pane)
        order = [
            "CAUSE",
            "TP4 ran out of GPU memory",
            "Fix: Lower --mem-fraction-static from 0.95 to 0.88",
            "slack = 94.40 * (1 - 0.95) = 4.72",
            "EVIDENCE",
            "sglang-glm5.log:207",
            "CHANGE",
            "-  --mem-fraction-static 0.95",
            "+  --mem-fraction-static 0.88",
            "Would not help",
            "NEW LAUNCH",
            "--mem-fraction-static 0.88",
            "OTHER FINDINGS",
            "PLAYBOOK",
            "Graph capture needs more memory than is left",
        ]
        at = 0
        for part in order:
            assert part in text[at:], part
            at = text.index(part, at) + len(part)
        assert all(line.cell_len <= 78 for line in pane.document.lines)

    drive(DetailPane, script)


def test_enter_opens_the_line_at_which_it_began_and_evidence_opens_itself(
    glm5: Loaded, drive: Drive
) -> None:
    async def script(pilot: Any, pane: DetailPane) -> None:
        pane.show(glm5, 0)
        await pilot.press("enter")
        targets = pane.document.targets
        row = min(row for row, target in targets.items() if target.place == (0, 257))
        pane.go(row)
        await pilot.press("enter")

    first, evidence = drive(DetailPane, script).told
    assert (first.line, first.opened) == (214, True)
    assert (evidence.line, evidence.opened) == (257, True)


def test_another_finding_is_chosen_from_its_line_and_shown_when_selected(
    glm5: Loaded, drive: Drive
) -> None:
    other = next(f for f in glm5.report(0).findings if f.role == "precursor")

    async def script(pilot: Any, pane: DetailPane) -> None:
        pane.show(glm5, 0)
        await pilot.pause()
        targets = pane.document.targets
        pane.go(min(row for row, target in targets.items() if target.finding_id == other.id))
        await pilot.press("enter")
        pane.select(Selection(finding_id=other.id))
        await pilot.pause()
        assert pane.finding is other
        assert "KNOWN EARLIER" in text_of(pane)
        assert "KNOWN AT" in text_of(pane)
        assert pane.cursor == 0
        pane.show(glm5, 0)
        assert pane.finding is other

    (told,) = drive(DetailPane, script).told
    assert isinstance(told, FindingChosen)
    assert told.finding_id == other.id


def test_a_run_without_findings_tells_how_it_went(
    tmp_path: Path, load: Callable[[Path], Loaded], drive: Drive
) -> None:
    path = tmp_path / "fine.log"
    path.write_text(
        "[2026-03-01 10:00:00 TP0] Load weight begin. avail mem=78.50 GB\n"
        "[2026-03-01 10:00:30] The server is fired up and ready to roll!\n"
    )
    loaded = load(path)
    loaded.report(0).findings.clear()

    async def script(pilot: Any, pane: DetailPane) -> None:
        pane.show(loaded, 0)
        await pilot.pause()
        assert text_of(pane).strip().startswith("READY")
        await pilot.press("enter", "j", "G")

    assert drive(DetailPane, script).told == []


def test_hostile_text_in_a_finding_is_text(glm5: Loaded, drive: Drive) -> None:
    finding = glm5.report(0).root_cause
    assert finding is not None
    finding.title = "[bold]loud[/bold] \x1b]52;c;ZXZpbA==\x07 **x** <b>"
    finding.evidence[0].text = "[link=https://evil]go[/link] \x1b[2J"
    finding.not_helpful.append("[red]no[/red] \u202e")

    async def script(pilot: Any, pane: DetailPane) -> None:
        pane.show(glm5, 0)
        await pilot.pause()
        text = text_of(pane)
        assert "[bold]loud[/bold]  **x** <b>".replace("  ", " ") in text
        assert "[link=https://evil]go[/link]" in text
        assert "[red]no[/red]" in text
        assert not {"\x1b", "\x07", "\u202e"} & set(text)

    drive(DetailPane, script)
