"""The memory view: the ledger step by step, and the slider that asks the remedies' arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forensics.tui.memory import MemoryView
from forensics.tui.model import Loaded
from forensics.tui.what_if import WhatIf, stepped, what_if

Drive = Callable[..., Any]


@pytest.fixture
def glm5(fixtures: Path, load: Callable[[Path], Loaded]) -> Loaded:
    return load(fixtures / "sglang-glm5.log")


@pytest.fixture
def known(glm5: Loaded) -> WhatIf:
    return what_if(glm5.report(0).run, glm5.diagnosis.incident)


def text_of(pane: MemoryView) -> str:
    return "\n".join(line.plain for line in pane.document.lines)


def test_the_slider_says_what_the_remedy_says(glm5: Loaded, known: WhatIf) -> None:
    cause = glm5.report(0).root_cause
    assert cause is not None
    remedy = next(r for r in cause.remedies if r.name == "mem_fraction_static")
    outlook = known.at(remedy.to)
    assert outlook is not None
    assert round(outlook.free_gib, 2) == remedy.effect["free_gib_at_capture"]
    assert outlook.scaled_gib is not None
    assert round(outlook.scaled_gib, 2) == remedy.effect["free_gib_at_capture_scaled"]
    assert outlook.kv_tokens == remedy.effect["kv_tokens"]
    assert outlook.kv_change == remedy.effect["kv_tokens_change"]
    assert outlook.verdict == "fits"
    assert known.advice is not None
    assert known.advice.fraction == remedy.to


def test_at_its_own_fraction_a_launch_has_what_the_log_showed(known: WhatIf) -> None:
    outlook = known.at(0.95)
    assert outlook is not None
    assert round(outlook.free_gib, 2) == 0.96
    assert outlook.kv_change == 0
    assert outlook.verdict == "fails"


def test_a_lower_fraction_never_leaves_less_and_never_holds_more(known: WhatIf) -> None:
    outlooks = [known.at(step / 1000) for step in range(700, 990, 5)]
    free = [outlook.free_gib for outlook in outlooks if outlook]
    tokens = [outlook.kv_tokens or 0 for outlook in outlooks if outlook]
    assert free == sorted(free, reverse=True)
    assert tokens == sorted(tokens)
    order = ["no pool", "fits", "tight", "fails"]
    verdicts = [order.index(outlook.verdict) for outlook in outlooks if outlook]
    assert verdicts == sorted(verdicts)
    assert known.at(0.5).verdict == "no pool"  # type: ignore[union-attr]


def test_the_verdict_turns_where_the_finding_says_that_it_fails_again(known: WhatIf) -> None:
    assert known.advice is not None
    assert known.advice.fraction_fail is not None
    above, below = known.advice.fraction_fail + 0.001, known.advice.fraction_fail - 0.001
    assert known.at(above).verdict == "fails"  # type: ignore[union-attr]
    assert known.at(below).verdict == "tight"  # type: ignore[union-attr]


def test_steps_stay_on_their_grid() -> None:
    fraction = 0.95
    for _ in range(7):
        fraction = stepped(fraction, -0.01)
    assert fraction == 0.88
    assert stepped(0.985, 0.01) == 0.99
    assert stepped(0.95, -0.001) == 0.949


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
def test_keys_move_the_slider_and_the_numbers_follow(
    size: tuple[int, int], glm5: Loaded, drive: Drive
) -> None:
    async def script(pilot: Any, pane: MemoryView) -> None:
        pane.show(glm5, 0)
        await pilot.pause()
        assert "FAILS" in text_of(pane)
        assert "now 0.95, advised 0.88" in text_of(pane)
        await pilot.press(*["left"] * 7)
        assert pane.fraction == 0.88
        assert "FITS" in text_of(pane)
        assert "7.57 GiB" in text_of(pane)
        assert "425,250 a GPU (-128,478)" in text_of(pane)
        await pilot.press("shift+right", "right")
        assert pane.fraction == 0.891
        pane.show(glm5, 0)
        assert pane.fraction == 0.891
        await pilot.press("x")
        assert pane.fraction == 0.95
        assert all(line.cell_len <= size[0] - 2 for line in pane.document.lines)

    drive(MemoryView, script, size)


def test_the_ledger_tells_every_step_with_its_numbers_and_leads_to_its_line(
    glm5: Loaded, drive: Drive
) -> None:
    async def script(pilot: Any, pane: MemoryView) -> None:
        pane.show(glm5, 0)
        await pilot.pause()
        text = text_of(pane)
        assert "TP0-TP7  8 ranks alike" in text
        steps = ["before weights", "weights loaded", "pool made", "capture begins"]
        assert [step for step in steps if step in text] == steps
        row = next(
            at for at, line in enumerate(pane.document.lines) if "capture begins" in line.plain
        )
        assert "# 61.20 = 31.70 ~ 0.54 . 0.96" in pane.document.lines[row].plain
        pane.go(row)
        await pilot.press("enter")

    (told,) = drive(MemoryView, script).told
    assert told.opened
    assert 205 <= told.line <= 212


def test_what_is_not_known_is_said_with_the_line_that_lacks(
    tmp_path: Path, load: Callable[[Path], Loaded], drive: Drive
) -> None:
    path = tmp_path / "late.log"
    path.write_text(
        "[2026-03-01 10:00:00 TP0] Load weight begin. avail mem=78.50 GB\n"
        "[2026-03-01 10:00:30 TP0] Capture cuda graph begin. This can take up to several minutes."
        " avail mem=6.80 GB\n"
    )
    loaded = load(path)

    async def script(pilot: Any, pane: MemoryView) -> None:
        pane.show(loaded, 0)
        await pilot.pause()
        text = text_of(pane)
        assert "cannot be foretold" in text
        assert "`server_args=`: the fraction of this launch" in text
        assert "`KV Cache is allocated ... #tokens`" in text
        assert "`Load weight begin" not in text
        await pilot.press("left", "right", "x")

    drive(MemoryView, script)


def test_a_log_without_figures_says_so(
    fixtures: Path, load: Callable[[Path], Loaded], drive: Drive
) -> None:
    loaded = load(fixtures / "sglang-glm5-abc.log")

    async def script(pilot: Any, pane: MemoryView) -> None:
        pane.show(loaded, 0)  # the first launch ended before it touched a GPU
        await pilot.pause()
        assert "no line that tells free memory" in text_of(pane)
        pane.show(loaded, 2)
        await pilot.pause()
        assert "captured" in text_of(pane)

    drive(MemoryView, script)
