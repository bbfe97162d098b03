"""The event table and the raw log: what they show, where the cursor goes, what they tell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forensics.tui.model import LineChosen, Selection
from forensics.tui.raw import RawPane
from forensics.tui.store import CriteriaError, EventStore
from forensics.tui.table import EventTable

Drive = Callable[..., Any]
Lines = Callable[[Any], list[str]]
HOSTILE = (
    "[2026-03-01 10:00:00 TP0] \x1b]0;owned\x07\x1b[2J[bold red]Load[/] weight\u202e begin. "
    "[link=https://evil]x[/link] <script> HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz0123456789\n"
)


@pytest.fixture
def glm5(fixtures: Path) -> Path:
    return fixtures / "sglang-glm5.log"


@pytest.fixture
def big(tmp_path: Path) -> Path:
    path = tmp_path / "big.log"
    path.write_text(
        "".join(
            f"[2026-03-01 10:{n // 60 % 60:02}:{n % 60:02} TP{n % 4}] Decode batch, "
            f"#running-req: {n}, #token: 2240, token usage: 0.37, cuda graph: True, "
            "gen throughput (token/s): 1937.32, #queue-req: 2\n"
            for n in range(20_000)
        )
    )
    return path


async def settled(pilot: Any) -> None:
    await pilot.pause(0.3)


def test_a_row_has_time_rank_kind_sign_and_message(
    glm5: Path, store_of: Callable[..., EventStore], drive: Drive, lines_of: Lines, load: Any
) -> None:
    async def script(pilot: Any, table: EventTable) -> None:
        table.show(load(glm5), 0)
        table.select(Selection(line=214))
        await settled(pilot)
        row = next(text for text in lines_of(table) if text.startswith(">"))
        assert "23:53:27" in row
        assert "TP4" in row
        assert "X scheduler_exception" in row
        assert "Scheduler hit an exception" in row
        assert "[2026" not in row

    drive(lambda: EventTable(store_of(glm5)), script, (120, 24))


@pytest.mark.parametrize("size", [(80, 24), (200, 50)])
def test_pages_steps_and_ends_move_through_all_rows(
    size: tuple[int, int], big: Path, store_of: Any, drive: Drive, lines_of: Lines
) -> None:
    async def script(pilot: Any, table: EventTable) -> None:
        await settled(pilot)
        assert table.total() == 20_000
        await pilot.press("j", "j", "k")
        assert table.cursor == 1
        await pilot.press("pagedown")
        assert table.cursor == 1 + table.room - 1
        await pilot.press("G")
        assert table.cursor == 19_999
        assert "#running-req: 19999" in lines_of(table)[-1] or ">" in lines_of(table)[-1]
        await pilot.press("g")
        assert table.cursor == 0

    drive(lambda: EventTable(store_of(big)), script, size)


def test_resting_on_a_row_tells_its_line_and_enter_opens_it(
    glm5: Path, store_of: Any, drive: Drive
) -> None:
    async def script(pilot: Any, table: EventTable) -> None:
        await settled(pilot)
        await pilot.press("j", "j", "j")
        await settled(pilot)
        await pilot.press("enter")
        await pilot.pause()

    app = drive(lambda: EventTable(store_of(glm5)), script)
    *rested, opened = app.told
    assert all(isinstance(told, LineChosen) and not told.opened for told in rested)
    assert opened.opened
    assert rested[-1].line == opened.line


def test_a_selection_of_another_pane_is_followed_and_not_told_back(
    glm5: Path, store_of: Any, drive: Drive
) -> None:
    async def script(pilot: Any, table: EventTable) -> None:
        table.select(Selection(line=215))  # a line of the traceback that line 214 announces
        await settled(pilot)
        assert table.place() == (0, 214)

    assert drive(lambda: EventTable(store_of(glm5)), script).told == []


def test_a_filter_keeps_the_cursor_on_its_record_and_says_how_many_pass(
    big: Path, store_of: Any, drive: Drive, lines_of: Lines
) -> None:
    async def script(pilot: Any, table: EventTable) -> None:
        await settled(pilot)
        table.select(Selection(line=10_003))
        table.set_filter("rank:TP2")
        await settled(pilot)
        assert table.total() == 5_000
        assert table.place() == (0, 10_003)
        assert "5,000 pass" in lines_of(table)[0]
        with pytest.raises(CriteriaError):
            table.set_filter("sev:loud")
        assert table.filter_text == "rank:TP2"
        table.set_filter("")
        await settled(pilot)
        assert table.total() == 20_000
        assert table.place() == (0, 10_003)

    drive(lambda: EventTable(store_of(big)), script)


def test_search_goes_to_the_next_hit_and_the_one_before(
    big: Path, store_of: Any, drive: Drive, lines_of: Lines
) -> None:
    async def script(pilot: Any, table: EventTable) -> None:
        await settled(pilot)
        table.search.begin("running-req: 777")
        lines = []
        for direction in (1, 1, 1, -1):
            table.found(direction)
            await settled(pilot)
            lines.append(table.place().line)
        assert lines == [778, 7771, 7772, 7771]
        assert "11 hits" in lines_of(table)[0]
        table.found(-1)
        await settled(pilot)
        table.found(-1)
        await settled(pilot)
        assert table.place().line == 778
        assert "no more above" in lines_of(table)[0]

    drive(lambda: EventTable(store_of(big)), script, (100, 24))


def test_marks_are_set_and_found_again(big: Path, store_of: Any, drive: Drive) -> None:
    async def script(pilot: Any, table: EventTable) -> None:
        await settled(pilot)
        await pilot.press("j", "b", "G", "b", "U")
        assert table.cursor == 1
        await pilot.press("u")
        assert table.cursor == 19_999

    drive(lambda: EventTable(store_of(big)), script)


def test_the_raw_log_shows_every_line_with_the_evidence_signed(
    glm5: Path, store_of: Any, drive: Drive, lines_of: Lines, load: Any
) -> None:
    loaded = load(glm5)
    cause = loaded.report(0).root_cause

    async def script(pilot: Any, raw: RawPane) -> None:
        raw.show(loaded, 0)
        raw.select(Selection(line=207, finding_id=cause.id))
        await settled(pilot)
        shown = lines_of(raw)
        assert "sglang-glm5.log:207 of 460" in shown[0]
        evidence = next(text for text in shown if text.startswith(">"))
        assert evidence.startswith(">* 207 ")
        assert "Capture cuda graph begin" in evidence
        first = next(text for text in shown if text[2:].strip().startswith("214"))
        assert first[1] == "X"

    drive(lambda: RawPane(store_of(glm5)), script, (140, 30))


def test_long_lines_are_cut_moved_sideways_or_wrapped(
    glm5: Path, store_of: Any, drive: Drive, lines_of: Lines
) -> None:
    async def script(pilot: Any, raw: RawPane) -> None:
        raw.select(Selection(line=257))
        await pilot.press("z")
        await settled(pilot)
        height = len([text for text in lines_of(raw) if text.startswith(">")])
        assert height == 1
        await pilot.press("l")
        await settled(pilot)
        assert "from column 21" in lines_of(raw)[0]
        await pilot.press("z")
        await settled(pilot)
        mine = [text for text in lines_of(raw) if text.startswith(">") or text.startswith("      ")]
        assert "wrapped" in lines_of(raw)[0]
        assert "Tried to allocate 694.00 MiB" in "".join(text[7:] for text in mine)
        await pilot.press("j")
        assert raw.cursor == 257

    drive(lambda: RawPane(store_of(glm5)), script)


def test_a_line_higher_than_the_pane_can_be_read_to_its_end(
    tmp_path: Path, store_of: Any, drive: Drive, lines_of: Lines
) -> None:
    path = tmp_path / "long.log"
    path.write_text("[2026-03-01 10:00:00 TP0] " + "x" * 5000 + " the end\nnext\n")

    def shown(raw: RawPane) -> str:
        return "".join(text[5:] for text in lines_of(raw)[1:])  # without gutter

    async def script(pilot: Any, raw: RawPane) -> None:
        await settled(pilot)
        assert "the end" not in shown(raw)
        for _ in range(12):
            await pilot.press("j")
            if "the end" in shown(raw):
                break
        assert "the end" in shown(raw)
        assert raw.cursor == 0
        await pilot.press("j", "j")
        assert raw.cursor == 1
        assert "next" in shown(raw)

    drive(lambda: RawPane(store_of(path)), script)


@pytest.mark.parametrize("make", [EventTable, RawPane])
def test_text_of_a_log_is_inert_and_without_secrets(
    make: Any, tmp_path: Path, store_of: Any, drive: Drive, lines_of: Lines
) -> None:
    path = tmp_path / "hostile.log"
    path.write_text(HOSTILE * 5)

    async def script(pilot: Any, pane: Any) -> None:
        await settled(pilot)
        shown = "\n".join(lines_of(pane))
        assert "[bold red]Load[/] weight begin. [link=https://evil]x[/link] <script>" in shown
        assert not {"\x1b", "\x07", "\u202e"} & set(shown)
        assert "hf_abc" not in shown

    drive(lambda: make(store_of(path)), script, (220, 10))


@pytest.mark.parametrize("make", [EventTable, RawPane])
def test_an_empty_store_and_a_small_window_do_no_harm(
    make: Any, tmp_path: Path, drive: Drive
) -> None:
    path = tmp_path / "empty.log"
    path.write_text("")

    async def script(pilot: Any, pane: Any) -> None:
        await pilot.press("j", "G", "pagedown", "enter", "k", "g")
        await pilot.resize_terminal(12, 3)
        await pilot.press("j", "G", "pagedown", "enter", "z", "l")
        pane.found(1)
        assert pane.total() == 0
        assert pane.line_text() == ""

    from forensics.reading import find_sources

    drive(lambda: make(EventStore(find_sources([str(path)])[0])), script)


def test_the_cursor_stays_on_the_last_row_of_a_log_that_grows(drive: Drive) -> None:
    from forensics.reading import find_sources

    store = EventStore(find_sources(["-"])[0], live=True)
    store.start()
    line = b"[2026-03-01 10:00:00 TP0] Load weight begin. avail mem=78.50 GB\n"

    async def script(pilot: Any, table: EventTable) -> None:
        table.follow(True)
        store.feed(0, line * 50)
        await pilot.pause(0.7)
        assert table.total() == 50
        await pilot.press("G")
        store.feed(0, line * 50)
        await pilot.pause(0.7)
        assert table.total() == 100
        assert table.cursor == 99
        await pilot.press("k")
        store.feed(0, line * 50)
        await pilot.pause(0.7)
        assert table.cursor == 98

    drive(lambda: EventTable(store), script)
    store.close()
