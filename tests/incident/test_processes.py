"""Tags of ranks from torch's numbers and the launcher's."""

import pytest

from forensics.incident import RankFacts, Run
from forensics.incident.processes import (
    global_rank,
    local_ranks,
    tag_of_dead,
    tag_of_global,
    tag_of_index,
    world_size,
)
from forensics.launch import Launch


def run_of(tags: list[str], **flags: object) -> Run:
    run = Run(1, sources=[0])
    run.launches[0] = run.launch = Launch(flags={"tp_size": 8, **flags})  # type: ignore[dict-item]
    for tag in tags:
        run.ranks[(0, tag)] = RankFacts(tag, 0)
    return run


@pytest.mark.parametrize(
    ("tags", "flags", "number", "tag"),
    [
        (["TP0", "TP1"], {}, 1, "TP1"),
        (["TP0"], {}, 5, "TP5"),
        (["DP0 TP0 EP0", "DP1 TP1 EP1"], {"enable_dp_attention": True}, 6, "DP6 TP6 EP6"),
        (["PP0 TP0", "PP1 TP0"], {"tp_size": 2, "pp_size": 2}, 2, "PP1 TP0"),
        (["PP0 TP0"], {"tp_size": 2, "pp_size": 2}, 3, None),
        (["DP0", "DP1"], {"tp_size": 1, "dp_size": 2}, 0, None),
        (["DP0 TP0", "DP0 TP1", "DP1 TP0"], {"tp_size": 2, "dp_size": 2}, 0, None),
        ([], {}, 3, None),
    ],
)
def test_a_tag_from_torchs_number(
    tags: list[str], flags: dict[str, object], number: int, tag: str | None
) -> None:
    assert tag_of_global(run_of(tags, **flags), 0, number) == tag


def test_an_index_counts_on_its_node() -> None:
    run = run_of(["TP8", "TP9"], tp_size=16, nnodes=2, node_rank=1)
    assert tag_of_index(run, 0, 3) == "TP11"
    assert tag_of_dead(run, 0, {"process_name": "scheduler_1"}) == "TP9"
    assert tag_of_dead(run, 0, {"process_name": "detokenizer"}) is None
    assert local_ranks(run, 0) == list(range(8, 16))


def test_replicas_are_counted_by_their_own_number() -> None:
    assert tag_of_index(run_of(["DP0", "DP5"], tp_size=1, dp_size=8), 0, 5) == "DP5"


def test_a_world_is_tp_times_pp() -> None:
    assert world_size(run_of([], tp_size=4, pp_size=2), 0) == 8
    assert global_rank(run_of(["PP1 TP3"], tp_size=4, pp_size=2), 0, "PP1 TP3") == 7
