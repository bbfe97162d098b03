"""Where each step leads, without a screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics import pipeline
from forensics.tui.desk import Desk
from forensics.tui.lane_rows import folded_at_first, rows_of
from forensics.tui.layout import layout_of
from forensics.tui.model import Loaded, loaded_from
from forensics.tui.window import Window


@pytest.fixture(scope="module")
def three_runs(root: Path) -> Loaded:
    return loaded_from(pipeline.analyze([str(root / "fixtures" / "sglang-glm5-abc.log")]))


@pytest.fixture
def desk(three_runs: Loaded) -> Desk:
    return Desk(three_runs)


def test_it_begins_at_the_cause_of_the_last_run_that_failed(desk: Desk) -> None:
    assert desk.selection.run == 2
    assert desk.finding is desk.report.root_cause
    assert desk.selection.line == 781


def test_findings_in_the_order_of_time_and_no_further_than_the_last(desk: Desk) -> None:
    seen = []
    while desk.go("finding", -1):
        seen.append(desk.selection.line)
    assert seen == sorted(seen, reverse=True)
    assert not desk.go("finding", -1)
    assert desk.go("finding", 1)


def test_a_line_of_another_run_leads_there(desk: Desk) -> None:
    assert desk.line(0, 255)
    assert (desk.selection.run, desk.selection.finding_id) == (1, None)
    assert desk.run(0)
    assert not desk.run(3)
    assert not desk.run(-1)


def test_ranks_go_round_with_all_of_them_between(desk: Desk) -> None:
    assert desk.selection.rank == "TP2"
    assert [desk.next_rank(1) and desk.selection.rank for _ in range(7)] == [
        *("TP3", "TP4", "TP5", "TP6", "TP7"), None, "TP0",
    ]  # fmt: skip


def test_ends_of_the_run(desk: Desk) -> None:
    assert desk.ends(-1)
    assert desk.selection.line == 511
    assert desk.ends(1)
    assert desk.selection.line == 974


def test_after_growth_the_gravest_until_the_user_chose(three_runs: Loaded) -> None:
    follower, chooser = Desk(three_runs), Desk(three_runs)
    chooser.run(0)
    for one in (follower, chooser):
        one.grown(three_runs)
    assert (follower.selection.run, chooser.selection.run) == (2, 0)


def test_groups_fold_and_unfold(root: Path) -> None:
    folder = root / "tests" / "rules" / "pd-transfer"
    logs = [str(folder / f"hit.{name}.log") for name in ("decode", "prefill")]
    (picture,) = loaded_from(pipeline.analyze(logs)).pictures
    open_rows = rows_of(picture, set())
    assert [row.folds for row in open_rows] == [True, False, False, True, False, False]
    folded = rows_of(picture, {"hit.decode.log"})
    assert [len(row.lanes) for row in folded] == [2, 2, 1, 1]
    assert folded_at_first(picture, False) == set()
    assert len(rows_of(picture, folded_at_first(picture, True), True)) == 3


def test_zoom_keeps_its_place_and_stays_in_the_run(three_runs: Loaded) -> None:
    picture = three_runs.pictures[1]
    whole = Window.over(picture.begin, picture.end)
    closer = whole.zoomed(2, picture.crash_at)
    assert (closer.end - closer.begin) * 2 == whole.end - whole.begin
    assert closer.panned(9).end == whole.end
    assert closer.panned(-99).begin == whole.begin
    assert closer.zoomed(0.001) == whole
    assert picture.crash_at
    assert closer.panned(-99).showing(picture.crash_at).end >= picture.crash_at
    later = picture.end + (picture.end - picture.begin)
    assert whole.grown(picture.begin, later).whole
    assert closer.panned(9).grown(picture.begin, later).end == later


@pytest.mark.parametrize(
    ("size", "together", "lanes"),
    [((80, 24), False, 8), ((200, 50), True, 18), ((40, 12), False, 1), ((9, 3), False, 1)],
)
def test_a_screen_is_divided_by_its_size(size: tuple[int, int], together: bool, lanes: int) -> None:
    layout = layout_of(*size)
    assert (layout.together, layout.lanes) == (together, lanes)
