"""The command palette, and the mouse over the lanes."""

from __future__ import annotations

from pathlib import Path

from timeline_player import Play, Player


def test_commands_have_the_names_of_the_options(play: Play, fixtures: Path) -> None:
    async def script(player: Player) -> None:
        await player.press("ctrl+p", *"--run 1")
        await player.until(lambda: "Look at this launch" in player.text())
        await player.press("enter")
        await player.until(lambda: player.desk.selection.run == 0)
        await player.press("full_stop", "ctrl+p", *"--rank TP4")
        await player.until(lambda: "Only the events of this rank" in player.text())
        await player.press("enter")
        await player.until(lambda: player.screen.pages.table.filter_text == 'rank:"TP4"')
        assert player.screen.pages.page == "events"

    play([fixtures / "sglang-glm5-abc.log"], script)


def test_a_click_on_a_mark_goes_to_its_line(play: Play, fixtures: Path) -> None:
    async def script(player: Player) -> None:
        y, line = next((y, li) for y, li in enumerate(player.lines()) if "TP6" in li and "x" in li)
        await player.pilot.click(offset=(line.index("x"), y))
        await player.until(lambda: player.desk.selection.line == 376)
        await player.pilot.click(offset=(3, y))
        await player.until(lambda: player.desk.selection.rank == "TP6")
        await player.pilot.click(offset=(3, y))
        await player.until(lambda: player.desk.selection.rank is None)

    play([fixtures / "sglang-glm5.log"], script)


def test_a_click_on_a_tab_shows_its_page(play: Play, fixtures: Path) -> None:
    async def script(player: Player) -> None:
        y, line = next((y, li) for y, li in enumerate(player.lines()) if "4 Memory" in li)
        await player.pilot.click(offset=(line.index("Memory"), y))
        await player.until(lambda: player.screen.pages.page == "memory")
        assert "WHAT IF" in player.text()

    play([fixtures / "sglang-glm5.log"], script)
