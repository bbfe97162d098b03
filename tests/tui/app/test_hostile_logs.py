"""Nothing in a log is obeyed: no escape reaches the terminal, no markup is read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from timeline_player import Play, Player

NASTY = (
    "\x1b[31mred\x1b[2J",
    "\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\",
    "\x1b]52;c;cm0gLXJmIC8=\x07",
    "\x1b]0;title\x07",
    "[@click=app.quit]click[/]",
    "[red]bold[/red]",
    "[/]",
    "[link=https://evil.example]here[/link]",
    "\u202egnp.exe",
    "\x9b31mC1",
    "api_key=hunter2hunter2",
)


@pytest.fixture
def hostile(root: Path, tmp_path: Path) -> Path:
    """The log of a failed launch, with something nasty in lines of every kind."""
    text = (root / "fixtures" / "sglang-glm5.log").read_text()
    nasty = " ".join(NASTY)
    text = text.replace("lukealonso/GLM-5-NVFP4", "lukealonso/[red]GLM[@click=app.quit]")
    text = text.replace("CUDA out of memory.", f"CUDA out of memory. {nasty}")
    lines = text.splitlines(keepends=True)
    for number in (60, 150, 206, 240):
        lines.insert(number, f"[2026-02-18 23:47:20 TP0] WARNING: {nasty}\n")
        lines.insert(number, f"{nasty}\n")
    path = tmp_path / "[red]evil[@click=app.quit].log"
    path.write_text("".join(lines))
    return path


def unwrapped(text: str) -> str:
    """The text without what stands between the parts of a wrapped line."""
    return "".join(char for char in text if char.isascii() and not char.isspace())


async def shows_nothing_nasty(player: Player) -> str:
    await player.pilot.pause(0.3)
    strips = player.app.screen._compositor.render_strips(player.app.size)
    for strip in strips:
        for part in strip:
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", part.text), part.text
            assert part.style is None or not part.style.link
            assert part.style is None or "@click" not in (part.style.meta or {})
    text = player.text()
    assert "hunter2" not in text
    return text


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
def test_every_widget_shows_it_as_plain_text(
    play: Play, hostile: Path, size: tuple[int, int]
) -> None:
    async def script(player: Player) -> None:
        assert "evil[@click=app.quit].log" in await shows_nothing_nasty(player)
        for page in "12345":
            await player.press(page)
            await shows_nothing_nasty(player)
        await player.press("3", "g")
        for _ in range(5):
            await player.press("w")
            await shows_nothing_nasty(player)
        await player.press("g", "slash", *"click[/]", "enter")
        await player.until(lambda: "[@click=app.quit]click[/]" in unwrapped(player.text()))
        await shows_nothing_nasty(player)
        await player.press("ctrl+p", *"rank")
        await shows_nothing_nasty(player)
        await player.press("escape", "f", *"[red] @click", "enter")
        await shows_nothing_nasty(player)

    app = play([hostile], script, size)
    assert app.return_value is None


def test_a_click_on_it_does_nothing(play: Play, hostile: Path) -> None:
    async def script(player: Player) -> None:
        await player.press("3", "g", "slash", *"click[/]", "enter")
        await player.until(lambda: "click[/]" in player.text())
        clicked = 0
        for y, line in enumerate(player.lines()):
            if (x := line.find("click[/]")) >= 0:
                clicked += await player.pilot.click(offset=(x + 1, y))
        assert clicked
        assert player.app.is_running
        assert not player.app._exit

    play([hostile], script)


def test_copies_hold_no_escape_and_no_secret(play: Play, hostile: Path) -> None:
    async def script(player: Player) -> None:
        for keys in (("c",), ("F",), ("3", "slash", *"hunter", "enter", "y"), ("v", "y")):
            await player.press(*keys)
            await player.pilot.pause(0.3)
            copied = player.app.clipboard
            assert copied
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", copied)
            assert "hunter2" not in copied

    play([hostile], script)
