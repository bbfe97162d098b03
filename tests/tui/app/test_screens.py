"""The main screens as text, at a small and at a large size.

The screens are in `screens/`; after a change that is meant, write them anew with

    FORENSICS_WRITE_SCREENS=1 pytest tests/tui/app/test_screens.py
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from timeline_player import Play, Player

SCREENS = Path(__file__).with_name("screens")
SIZES = [(80, 24), (200, 50)]
KEYS: dict[str, tuple[str, ...]] = {
    "finding": (),
    "events": ("2",),
    "log": ("enter",),
    "memory": ("m",),
    "serving": ("s",),
    "filtered": ("f", *"rank:TP4 capture", "enter"),
    "zoomed": ("plus", "plus", "plus"),
    "alike": ("o",),
}


def check(name: str, lines: list[str]) -> None:
    path = SCREENS / f"{name}.txt"
    text = "\n".join(lines) + "\n"
    if os.environ.get("FORENSICS_WRITE_SCREENS"):
        SCREENS.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), f"see {path.name}"


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", KEYS)
def test_the_screen_is_as_it_was(
    play: Play, fixtures: Path, name: str, size: tuple[int, int]
) -> None:
    async def script(player: Player) -> None:
        await player.press(*KEYS[name])
        await player.settle()
        check(f"{name}-{size[0]}x{size[1]}", player.lines())

    play([fixtures / "sglang-glm5.log"], script, size)


def test_the_help_scrolls_where_it_does_not_fit(play: Play, fixtures: Path) -> None:
    async def script(player: Player) -> None:
        await player.press("question_mark")
        assert "Next line of evidence" in player.text()
        assert "free GPU memory, none to all" not in player.text()
        await player.press(*"j" * 60)
        assert "free GPU memory, none to all" in player.text()
        await player.press("k", "q")
        assert player.app.screen is player.screen

    play([fixtures / "sglang-glm5.log"], script)


def test_several_runs_are_listed(play: Play, fixtures: Path) -> None:
    async def script(player: Player) -> None:
        await player.settle()
        check("runs-80x24", player.lines())
        await player.pilot.click("#runs", offset=(4, 0))
        await player.pilot.pause(0.2)
        assert player.desk.selection.run == 0
        assert "run 1 of 3 FAILED" in player.lines()[0]

    play([fixtures / "sglang-glm5-abc.log"], script)


def test_any_size_will_do_and_any_change_of_it(play: Play, fixtures: Path) -> None:
    async def script(player: Player) -> None:
        for size in [(40, 12), (20, 6), (9, 3), (200, 50), (120, 32), (119, 31), (80, 24)]:
            await player.pilot.resize_terminal(*size)
            for page in "12345":
                await player.press(page)
                assert len(player.lines()) == size[1]
                assert all(len(line) <= size[0] for line in player.lines())
        await player.press("1")
        assert "CAUSE" in player.text()
        assert player.lines()[-1].startswith("Enter evidence")

    play([fixtures / "sglang-glm5.log"], script)


def test_colours_are_the_terminals_sixteen(play: Play, fixtures: Path) -> None:
    seen: set[str] = set()

    async def script(player: Player) -> None:
        for page in "12345":
            await player.press(page)
            for strip in player.app.screen._compositor.render_strips(player.app.size):
                for part in strip:
                    if part.style is not None:
                        found = (part.style.color, part.style.bgcolor)
                        seen.update(
                            c.name for c in found if c is not None and c.is_default is False
                        )

    play([fixtures / "sglang-glm5.log"], script, (200, 50))
    plain = {f"color({number})" for number in range(16)}
    beyond = {name for name in seen if re.match(r"#|color\(", name)} - plain
    assert beyond == set(), "colours that a terminal of sixteen has not"
    assert seen


def test_without_colour_all_is_said(
    play: Play, fixtures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_colour: list[str] = []

    async def keep(player: Player) -> None:
        with_colour[:] = player.lines()

    play([fixtures / "sglang-glm5.log"], keep)

    async def script(player: Player) -> None:
        assert player.app.no_color
        assert player.lines() == with_colour

    monkeypatch.setenv("NO_COLOR", "1")
    play([fixtures / "sglang-glm5.log"], script)
