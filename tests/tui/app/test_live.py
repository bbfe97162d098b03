"""A log that grows, and a launch that the program runs itself."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from timeline_player import Play, Player

from forensics.live.supervise import Plan
from forensics.live.watch import Goal
from forensics.rules import Settings
from forensics.tui.following import LogFollower
from forensics.tui.launched import Launched


@pytest.fixture
def parts(fixtures: Path) -> tuple[str, str]:
    """The log of a launch up to the capture of graphs, and the rest, in which it fails."""
    text = (fixtures / "sglang-glm5.log").read_text()
    begin, mark, end = text.partition("[2026-02-18 23:53:22")
    return begin, mark + end


def test_lanes_events_and_findings_grow(play: Play, tmp_path: Path, parts: tuple[str, str]) -> None:
    log = tmp_path / "server.log"
    log.write_text(parts[0])
    engine = LogFollower([str(log)], Settings())

    async def script(player: Player) -> None:
        await player.until(lambda: "STARTING" in player.lines()[0])
        lanes = player.screen.lanes
        assert len(lanes.rows) == 8
        before = player.screen.engine.store.lines(0)
        with log.open("a") as grown:
            grown.write(parts[1])
        await player.until(lambda: "FAILED" in player.lines()[0])
        await player.until(lambda: player.screen.engine.store.lines(0) > before)
        await player.until(lambda: "TP4 ran out of GPU memory" in player.text())
        await player.until(engine.wait, "the end is settled")

    play(lambda: engine, script, wait=False)
    verdict = engine.wait()
    assert verdict is not None
    assert (verdict.outcome, verdict.exit_code) == ("failed", 1)


def test_space_holds_the_picture_while_the_log_goes_on(
    play: Play, tmp_path: Path, parts: tuple[str, str]
) -> None:
    log = tmp_path / "server.log"
    log.write_text(parts[0])

    async def script(player: Player) -> None:
        await player.until(lambda: player.screen.desk is not None)
        await player.press("space")
        assert "PAUSED" in player.lines()[0]
        with log.open("a") as grown:
            grown.write(parts[1])
        await player.until(lambda: player.screen._held is not None)
        await player.until(lambda: player.screen._held.diagnosis.reports[0].run.failures)
        assert "FAILED" not in player.text()
        await player.press("space")
        await player.until(lambda: "FAILED" in player.lines()[0])

    play(lambda: LogFollower([str(log)], Settings()), script, wait=False)


def test_what_the_user_chose_stays_chosen(
    play: Play, tmp_path: Path, parts: tuple[str, str]
) -> None:
    log = tmp_path / "server.log"
    log.write_text(parts[0])

    async def script(player: Player) -> None:
        await player.until(lambda: player.screen.desk is not None)
        await player.press("e")
        chosen = player.desk.selection
        with log.open("a") as grown:
            grown.write(parts[1])
        await player.until(lambda: "FAILED" in player.lines()[0])
        assert player.desk.selection.line == chosen.line

    play(lambda: LogFollower([str(log)], Settings()), script, wait=False)


def launched(command: list[str], log: Path) -> Launched:
    plan = Plan(command, str(log), {"PATH": "/usr/bin:/bin"}, grace_s=5.0)
    return Launched(plan, Goal("failed", None), Settings())


def test_a_command_is_run_and_its_end_told(play: Play, tmp_path: Path, fixtures: Path) -> None:
    show = "import sys; sys.stdout.write(open(sys.argv[1]).read()); sys.exit(3)"
    command = [sys.executable, "-c", show, str(fixtures / "sglang-glm5.log")]
    engine = launched(command, tmp_path / "run.log")

    async def script(player: Player) -> None:
        await player.until(lambda: "exit status of the command: 3" in player.lines()[0])
        assert "TP4" in player.text()
        await player.press("q")
        assert player.app._exit

    play(lambda: engine, script, wait=False)
    verdict = engine.wait()
    assert verdict is not None
    assert (verdict.exit_code, verdict.command_status) == (1, 3)
    assert (tmp_path / "run.log").read_text() == (fixtures / "sglang-glm5.log").read_text()


def test_quitting_takes_a_second_word_and_ends_the_command(play: Play, tmp_path: Path) -> None:
    engine = launched([sys.executable, "-c", "import time; time.sleep(600)"], tmp_path / "r.log")

    async def script(player: Player) -> None:
        await player.until(lambda: len(player.app.screen_stack) > 1)
        await player.until(lambda: engine.runs_command)
        await player.press("q")
        assert not player.app._exit
        assert any("q again ends it" in n.message for n in player.app._notifications)
        await player.press("q")
        assert player.app._exit

    play(lambda: engine, script, wait=False)
    verdict = engine.wait()
    assert verdict is not None
    assert (verdict.outcome, verdict.exit_code) == ("stopped", 0)
    assert verdict.command_status == -15
