"""Every key does what the help says."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.command import CommandPalette
from timeline_player import Play, Player

from forensics.tui.desk import Desk
from forensics.tui.help import HelpScreen, help_text
from forensics.tui.keys import GROUPS, KEYS, footer
from forensics.tui.prompt import Prompt

Case = Callable[[Player], Awaitable[object]]
"""Presses keys and gives whether what they should do was done."""

ALL_KEYS = [key for command in KEYS for key in command.keys]


def then(holds: Callable[[Player], object], *keys: str) -> Case:
    async def run(player: Player) -> object:
        await player.press(*keys)
        return holds(player)

    return run


def line(number: int, *keys: str) -> Case:
    return then(lambda player: player.desk.selection.line == number, *keys)


def page(name: str, *keys: str) -> Case:
    return then(lambda player: player.screen.pages.page == name, *keys)


def rank(name: str | None, *keys: str) -> Case:
    return then(lambda player: player.desk.selection.rank == name, *keys)


def run_index(number: int, *keys: str) -> Case:
    return then(lambda player: player.desk.selection.run == number, *keys)


def copied(words: str, *keys: str) -> Case:
    return then(lambda player: words in player.app.clipboard, *keys)


def window_s(player: Player) -> tuple[float, float]:
    """Where the window begins, in seconds of the run, and how wide it is."""
    window = player.screen.lanes.window
    assert window is not None
    begin = (window.begin - window.first).total_seconds()
    return begin, (window.end - window.begin).total_seconds()


def changes(what: Callable[[Player], float], sign: int, *keys: str, before: str = "") -> Case:
    """The last key makes a figure larger (1) or smaller (-1)."""

    async def run(player: Player) -> object:
        await player.press(*before.split(), *keys[:-1])
        was = what(player)
        await player.press(keys[-1])
        return (what(player) - was) * sign > 0

    return run


def wide(player: Player) -> float:
    return window_s(player)[1]


def early(player: Player) -> float:
    return window_s(player)[0]


def focus(player: Player) -> str:
    return str(player.screen.focused.id) if player.screen.focused else ""


def asks(purpose: str, key: str) -> Case:
    def holds(player: Player) -> object:
        prompt = player.screen.query_one(Prompt)
        return prompt.display and prompt._purpose == purpose

    return then(holds, key)


async def searched(player: Player, *more: str) -> int:
    """The line one is at after searching in the log."""
    await player.press("3", "slash", *"traceback", "enter")
    await player.until(lambda: "hit" in player.screen.pages.raw.search.status())
    await player.pilot.pause(0.3)
    await player.press(*more)
    await player.pilot.pause(0.3)
    return player.desk.selection.line or 0


async def next_hit(player: Player) -> object:
    first = await searched(player)
    await player.press("N")
    await player.until(lambda: player.desk.selection.line != first)
    before = player.desk.selection.line
    await player.press("n")
    await player.until(lambda: player.desk.selection.line == first)
    return before != first


def notice(words: str, *keys: str) -> Case:
    return then(lambda p: any(words in n.message for n in p.app._notifications), *keys)


CASES: dict[str, Case] = {
    "enter": page("raw", "enter"),
    "v": line(513, "v", "v"),
    "c": copied("SGLANG_ENABLE_JIT_DEEPGEMM=0", "c"),
    "e": line(813, "e"),
    "E": line(514, "E"),
    "w": changes(lambda p: p.desk.selection.line or 0, 1, "w"),
    "W": changes(lambda p: p.desk.selection.line or 0, -1, "W"),
    "t": line(789, "t"),
    "T": then(lambda p: p.desk.selection.run == 2, "T"),
    "right_square_bracket": rank("TP3", "right_square_bracket"),
    "left_square_bracket": rank("TP1", "left_square_bracket"),
    "full_stop": run_index(2, "comma", "full_stop"),
    "comma": run_index(0, "comma", "comma"),
    "g": line(511, "shift+tab", "g"),
    "home": line(511, "shift+tab", "home"),
    "G": line(974, "shift+tab", "G"),
    "end": line(974, "shift+tab", "end"),
    "1": page("detail", "2", "1"),
    "2": page("events", "2"),
    "3": page("raw", "3"),
    "4": page("memory", "4"),
    "m": page("memory", "m"),
    "5": page("serving", "5"),
    "s": page("serving", "s"),
    "tab": then(lambda p: focus(p) == "lanes", "tab"),
    "shift+tab": then(lambda p: focus(p) == "lanes", "shift+tab"),
    "escape": page("detail", "3", "escape"),
    "plus": changes(wide, -1, "plus"),
    "equals_sign": changes(wide, -1, "equals_sign"),
    "minus": changes(wide, 1, "plus", "plus", "minus"),
    "0": changes(wide, 1, "plus", "plus", "0"),
    "h": changes(early, -1, "plus", "plus", "h"),
    "left": changes(early, -1, "plus", "plus", "left"),
    "l": changes(early, 1, "plus", "plus", "h", "h", "l"),
    "right": changes(early, 1, "plus", "plus", "h", "h", "right"),
    "o": changes(lambda p: len(p.screen.lanes.rows), -1, "o"),
    "slash": asks("search", "slash"),
    "n": next_hit,
    "N": next_hit,
    "f": asks("filter", "f"),
    "y": copied("TensorCompare.cu:112", "y"),
    "F": copied("NaN at the first sampled tokens", "F"),
    "space": notice("nothing is followed", "space"),
    "ctrl+p": then(lambda p: isinstance(p.app.screen, CommandPalette), "ctrl+p"),
    "question_mark": then(lambda p: isinstance(p.app.screen, HelpScreen), "question_mark"),
    "f1": then(lambda p: isinstance(p.app.screen, HelpScreen), "f1"),
    "q": then(lambda p: p.app.return_value == 0 and p.app._exit, "q"),
}


async def begin_anew(player: Player) -> None:
    """As it was when the log had just been read."""
    await player.press("escape", "escape")
    screen = player.screen
    if player.app.screen is not screen:
        player.app.pop_screen()
        await player.pilot.pause()
    player.app.clear_notifications()
    player.app.copy_to_clipboard("")
    screen.desk = Desk(player.desk.loaded)
    screen.lanes._by_looks = False
    screen._drawn_run = -1
    screen.lanes._run = -1
    screen.draw_run()
    screen.action_page("detail")
    await player.pilot.pause()


def test_every_key_does_what_the_help_says(play: Play, fixtures: Path) -> None:
    wrong: list[str] = []

    async def script(player: Player) -> None:
        for key in sorted(ALL_KEYS, key=lambda key: key == "q"):
            await begin_anew(player)
            if not await CASES[key](player):
                wrong.append(key)

    play([fixtures / "sglang-glm5-abc.log"], script)
    assert wrong == []


def test_every_key_has_a_case_and_is_bound_once() -> None:
    assert sorted(CASES) == sorted(ALL_KEYS)
    assert len(set(ALL_KEYS)) == len(ALL_KEYS)


def test_the_help_names_every_key() -> None:
    text = help_text().plain
    for command in KEYS:
        assert command.group in GROUPS
        assert any(command.label in row and command.text in row for row in text.splitlines())


def test_the_footer_names_the_pages_and_the_way_out() -> None:
    words = dict(footer())
    assert words["1-5"] == "pages"
    assert (words["?"], words["q"], words["c"]) == ("help", "quit", "copy launch")


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
def test_the_cause_its_evidence_and_the_new_launch_within_five_keys(
    play: Play, fixtures: Path, size: tuple[int, int]
) -> None:
    async def script(player: Player) -> None:
        assert "TP4 ran out of GPU memory capturing decode graphs" in player.text()
        await player.press("enter")
        assert player.screen.pages.page == "raw"
        assert any(line.startswith(">X") and " 214 " in line for line in player.lines())
        await player.press("v", "v")
        assert ">" in next(li for li in player.lines() if "torch.OutOfMemoryError: CUDA" in li)
        await player.press("c")
        assert "--mem-fraction-static 0.88" in player.app.clipboard
        assert any("Copied the new launch" in line for line in player.lines())

    play([fixtures / "sglang-glm5.log"], script, size)
