"""The small picture: lanes of ranks, phases, free memory and marks, as data and as text."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forensics import pipeline
from forensics.events import PHASES
from forensics.views.picture import LINE_ZERO, Block, Lane, Picture, line_of, picture
from forensics.views.picture.alike import alike, label_of
from forensics.views.picture.scale import scale_of
from forensics.views.picture.strip import ASCII, BLOCKS, SIGNS, mark_cells, rows_of

Draw = Callable[..., list[Picture]]


@pytest.fixture(scope="module")
def of() -> Draw:
    """The pictures of the runs of some logs."""

    def draw(*paths: Path) -> list[Picture]:
        diagnosis = pipeline.analyze([str(path) for path in paths])
        return [picture(report, diagnosis.incident) for report in diagnosis.reports]

    return draw


@pytest.fixture(scope="module")
def launch_b(of: Draw, root: Path) -> Picture:
    (drawn,) = of(root / "fixtures" / "sglang-glm5.log")
    return drawn


@pytest.fixture
def log(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "server.log"
        path.write_text(text)
        return path

    return write


def clock(at: datetime) -> str:
    return f"{at:%H:%M:%S}"


def steps(lane: Lane, shown: Picture) -> dict[str, str]:
    return {block.phase: shown.label(block.begin) for block in lane.blocks}


def test_each_rank_has_a_lane_with_its_phases(launch_b: Picture) -> None:
    assert [lane.rank for lane in launch_b.lanes] == [f"TP{n}" for n in range(8)]
    assert steps(launch_b.lanes[0], launch_b) == {
        "init": "23:47:17",
        "load": "23:47:39",
        "kv_pool": "23:53:18",
        "graph_capture": "23:53:22",
    }
    assert steps(launch_b.lanes[4], launch_b)["load"] == "23:47:40"
    for lane in launch_b.lanes:
        ends = [block.end for block in lane.blocks]
        assert ends == [*(block.begin for block in lane.blocks[1:]), launch_b.end]


def test_free_memory_falls_to_what_the_refused_request_says(launch_b: Picture) -> None:
    lane = launch_b.lanes[4]
    assert [round(point.free_gib, 2) for point in lane.free] == [94.4, 33.2, 1.36, 0.96, 0.24]
    assert [point.line for point in lane.free][-1] == 214
    assert {lane.total_gib for lane in launch_b.lanes} == {94.97}
    assert [round(point.free_gib, 2) for point in launch_b.lanes[0].free][-1] == 0.96


def test_the_cause_its_echoes_and_what_could_be_known(launch_b: Picture) -> None:
    crashes = {
        lane.rank: [(mark.line, mark.role) for mark in lane.marks if mark.kind == "crash"]
        for lane in launch_b.lanes
    }
    assert {rank: marks for rank, marks in crashes.items() if marks} == {
        "TP4": [(214, "root_cause")],
        "TP1": [(295, "consequence")],
        "TP6": [(376, "consequence")],
    }
    known = [(m.line, m.severity) for m in launch_b.marks if m.kind == "known"]
    assert known == [(9, "info"), (205, "critical")]
    assert launch_b.crash_at
    assert clock(launch_b.crash_at) == "23:53:27"


def test_marks_name_the_findings_they_stand_for(of: Draw, root: Path) -> None:
    path = root / "fixtures" / "sglang-glm5.log"
    diagnosis = pipeline.analyze([str(path)])
    (report,) = diagnosis.reports
    drawn = picture(report, diagnosis.incident)
    marks = [*drawn.marks, *(mark for lane in drawn.lanes for mark in lane.marks)]
    assert {mark.finding_id for mark in marks} == {finding.id for finding in report.findings}


def test_a_rank_silent_in_a_phase_did_what_all_did(log: Callable[[str], Path], of: Draw) -> None:
    text = "".join(
        f"[2026-05-01 10:00:{second:02} {tag}] {message}\n"
        for second, tag, message in (
            (1, "TP0", "Init torch distributed begin."),
            (1, "TP1", "Init torch distributed begin."),
            (2, "TP0", "Load weight begin. avail mem=78.50 GB"),
            (2, "TP1", "Load weight begin. avail mem=78.50 GB"),
            (9, "TP0", "Load weight end. type=X, dtype=torch.bfloat16, avail mem=50.00 GB, "
                "mem usage=28.50 GB."),
            (9, "TP1", "Load weight end. type=X, dtype=torch.bfloat16, avail mem=50.00 GB, "
                "mem usage=28.50 GB."),
            (20, "TP0", "max_total_num_tokens=1000, chunked_prefill_size=8192, "
                "max_prefill_tokens=16384, max_running_requests=64, context_len=4096, "
                "available_gpu_mem=5.00 GB"),
        )
    )  # fmt: skip
    text += "[2026-05-01 10:00:30] The server is fired up and ready to roll!\n"
    text += '[2026-05-01 10:00:50] INFO:     127.0.0.1:1 - "GET /health HTTP/1.1" 200 OK\n'
    (drawn,) = of(log(text))
    silent = drawn.lanes[1]
    assert silent.rank == "TP1"
    assert steps(silent, drawn)["warmup"] == "10:00:20"
    assert steps(silent, drawn)["serving"] == "10:00:30"


def test_a_rank_that_is_late_did_not(of: Draw, root: Path) -> None:
    (drawn,) = of(root / "tests" / "rules" / "load-straggler" / "hit.log")
    phases = {lane.rank: [block.phase for block in lane.blocks] for lane in drawn.lanes}
    assert phases["TP2"] == ["init", "load"]
    assert phases["TP1"] == ["init", "load", "kv_pool"]


def test_a_launch_on_one_gpu_has_one_lane_without_a_name(of: Draw, root: Path) -> None:
    (drawn,) = of(root / "fixtures" / "genuine" / "h200-kv-pool-retract.log")
    (lane,) = drawn.lanes
    assert (lane.rank, lane.group) == (None, "")
    assert lane.free[0].free_gib == 139.13
    assert {block.phase for block in lane.blocks} == set(PHASES)
    assert drawn.crash_at is None


def test_a_log_without_times_is_drawn_by_its_lines(of: Draw, root: Path) -> None:
    first, second, _ = of(root / "fixtures" / "sglang-glm5-abc.log")
    assert first.axis == "line"
    assert (line_of(first.begin), line_of(first.end)) == (1, 50)
    assert first.label(LINE_ZERO + timedelta(seconds=7)) == "line 7"
    assert second.axis == "time"


def test_clocks_without_a_date_are_clocks(log: Callable[[str], Path], of: Draw) -> None:
    text = "[10:00:00 TP0] Load weight begin. avail mem=78.50 GB\n"
    text += "[10:00:30 TP0] Capture cuda graph begin. This can take up to several minutes. "
    text += "avail mem=5.00 GB\n"
    (drawn,) = of(log(text))
    assert drawn.axis == "undated"
    assert (drawn.label(drawn.begin), drawn.label(drawn.end)) == ("10:00:00", "10:00:30")


def test_sources_are_groups_and_keep_their_ranks_apart(of: Draw, root: Path) -> None:
    folder = root / "tests" / "rules" / "pd-transfer"
    (drawn,) = of(folder / "hit.decode.log", folder / "hit.prefill.log")
    assert [(lane.source, lane.rank) for lane in drawn.lanes] == [
        (0, "TP0"), (0, "TP1"), (1, "TP0"), (1, "TP1"),
    ]  # fmt: skip
    assert {lane.group for lane in drawn.lanes} == {"hit.decode.log", "hit.prefill.log"}


def many_ranks(text: str, ranks: int) -> str:
    """A log of eight ranks as one of more, in groups of four."""
    lines = []
    for line in text.splitlines():
        found = next((n for n in range(8) if f" TP{n}]" in line), None)
        same = [line] if found is None else [
            line.replace(f" TP{found}]", f" DP{rank // 4} TP{rank}]")
            for rank in range(found, ranks, 8)
        ]  # fmt: skip
        lines += same
    return "\n".join(lines) + "\n"


def test_sixty_four_ranks_fold_by_group(of: Draw, root: Path, log: Callable[[str], Path]) -> None:
    text = (root / "fixtures" / "sglang-glm5.log").read_text()
    (drawn,) = of(log(many_ranks(text, 64)))
    assert len(drawn.lanes) == 64
    assert {lane.group for lane in drawn.lanes} == {f"DP{n}" for n in range(16)}
    assert all(lane.phase_at(drawn.end) == "graph_capture" for lane in drawn.lanes)


def test_serving_for_days_ends_with_the_last_routine_line(
    of: Draw, log: Callable[[str], Path], root: Path
) -> None:
    text = (root / "fixtures" / "genuine" / "h200-tp2-healthy.log").read_text()
    last = "[2026-12-03 10:00:00 TP0] Decode batch, #running-req: 1, #token: 59, token usage: "
    last += "0.00, cuda graph: True, gen throughput (token/s): 38.58, #queue-req: 0\n"
    head = text.split("Shutting down")[0].rpartition("\n")[0]
    (drawn,) = of(log(head + "\n" + last))
    assert drawn.label(drawn.end) == "12-03 10:00"
    assert drawn.lanes[1].phase_at(drawn.end) == "serving"


# As text


def test_every_phase_is_seen_however_short(launch_b: Picture) -> None:
    scale = scale_of(launch_b, 60)
    begins = [scale.column(block.begin) for block in launch_b.phases]
    widths = [end - begin for begin, end in zip(begins, [*begins[1:], 60], strict=True)]
    assert min(widths) >= 8
    assert widths[1] == max(widths)
    assert not scale.even


def test_a_part_of_the_axis_is_drawn_over_all_columns(launch_b: Picture) -> None:
    begin = datetime(2026, 2, 18, 23, 48)
    scale = scale_of(launch_b, 60, (begin, begin + timedelta(minutes=4)))
    assert scale.even
    assert scale.at(30) == begin + timedelta(minutes=2)
    assert scale.column(datetime(2026, 2, 18, 23, 47)) == 0
    assert not scale.shows(datetime(2026, 2, 18, 23, 47))


@given(
    seconds=st.lists(st.integers(0, 400_000), min_size=1, max_size=6, unique=True),
    width=st.integers(1, 300),
)
def test_columns_and_places_fit_each_other(seconds: list[int], width: int) -> None:
    zero = datetime(2026, 1, 1)
    places = [zero + timedelta(seconds=s) for s in sorted(seconds)]
    end = places[-1] + timedelta(seconds=7)
    blocks = tuple(Block(phase, begin, end) for phase, begin in zip(PHASES, places, strict=False))
    drawn = Picture(1, places[0], end, (), None, phases=blocks)
    scale = scale_of(drawn, width)
    assert scale.edges[-1] == width
    columns = [scale.column(place) for place in [*places, end]]
    assert columns == sorted(columns)
    assert 0 <= columns[0] <= columns[-1] < width
    for column in range(width):
        assert scale.begin <= scale.at(column) <= scale.at(column + 1) <= scale.end


def test_rows_say_it_without_colour(launch_b: Picture) -> None:
    rows = {label_of(row.lanes, 16): row.text for row in rows_of(launch_b, scale_of(launch_b, 48))}
    assert rows == {
        "TP0,2-3,5,7": "·······█│███▇▇▇▇▇▆▆▆▆▅▅▅▅▅▄▄▄▄▄▃▃│▂▂▁▁▁▁│▁▁▁▁▁▁▁",
        "TP1, TP6": "········│███▇▇▇▇▇▆▆▆▆▅▅▅▅▅▄▄▄▄▄▃▃▃│▂▂▁▁▁│▁▁▁▁▁x▁",
        "TP4": "········│███▇▇▇▇▇▆▆▆▆▅▅▅▅▅▄▄▄▄▄▃│▃▂▂▁▁▁▁│▁▁▁▁X▁▁",
    }
    marks = "".join(cell.char for cell in mark_cells(launch_b.marks, scale_of(launch_b, 48)))
    assert marks.strip().startswith("o!")
    assert {sign for sign, _ in SIGNS.values()} >= set(marks) - {" "}


def test_plain_characters_where_the_terminal_has_no_others(launch_b: Picture) -> None:
    scale = scale_of(launch_b, 48)
    for row in rows_of(launch_b, scale, charset=ASCII):
        assert row.text.isascii()
    assert len(ASCII.levels) == len(BLOCKS.levels)


def test_lanes_that_differ_in_a_fraction_are_alike_and_late_ones_are_not(
    launch_b: Picture, of: Draw, root: Path
) -> None:
    assert [label_of(group, 20) for group in alike(launch_b)] == ["TP0,2-3,5,7", "TP1, TP6", "TP4"]
    (late,) = of(root / "tests" / "rules" / "load-straggler" / "hit.log")
    assert [label_of(group, 20) for group in alike(late)] == ["TP0", "TP1, TP3", "TP2"]


@pytest.mark.parametrize(
    ("tags", "width", "said"),
    [
        ([None], 16, "GPU"),
        (["TP0", "TP1", "TP2"], 16, "TP0-TP2"),
        (["TP0", "TP2", "TP3", "TP5", "TP7"], 16, "TP0,2-3,5,7"),
        (["DP0 TP0 EP0", "DP0 TP2 EP2"], 16, "DP0 TP0 EP0 +1"),
        ([f"DP{n} TP{n * 7}" for n in range(64)], 12, "DP0 TP0 +63"),
        (["DP13 TP13 EP13", "DP15 TP15 EP15"], 16, "DP13 TP13 +1"),
        (["DP13 TP13 EP13"], 13, "DP13 TP13"),
        (["TP" + "1" * 40], 12, "TP111111111…"),
    ],
)
def test_ranks_have_a_short_name(tags: list[str | None], width: int, said: str) -> None:
    lanes = [Lane(tag, "", (), (), None, ()) for tag in tags]
    assert label_of(lanes, width) == said
