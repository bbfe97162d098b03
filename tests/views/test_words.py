from __future__ import annotations

from typing import Any

import pytest

from forensics.findings import Remedy
from forensics.views.changes import phrase
from forensics.views.words import Places, duration, fold_ranks, percent, value


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ([], ""),
        (["TP0"], "TP0"),
        (["TP0", "TP1"], "TP0, TP1"),
        (["TP0", "TP1", "TP2", "TP4"], "TP0-TP2, TP4"),
        (["DP0 TP0", "DP0 TP1", "DP0 TP2"], "DP0 TP0-TP2"),
        ([f"DP{n} TP{n}" for n in range(8)], "DP0 TP0 to DP7 TP7"),
        ([f"DP{n // 2} TP{n}" for n in range(8)], "DP0 TP0 to DP3 TP7"),
        (["gpu=0", "gpu=1", "gpu=2"], "gpu=0-gpu=2"),
        (["", "TP0"], ", TP0"),
    ],
)
def test_fold_ranks(tags: list[str], expected: str) -> None:
    assert fold_ranks(tags) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, "0 s"), (0.44, "0.4 s"), (59, "59 s"), (60, "1 min"), (342, "5 min 42 s"),
     (7800, "2 h 10 min")],
)  # fmt: skip
def test_duration(seconds: float, expected: str) -> None:
    assert duration(seconds) == expected


def test_percent_is_round_only_where_it_is_exact() -> None:
    assert [percent(part, 10_000) for part in (0, 1, 5000, 9999, 10_000)] == [
        "0%", "0.1%", "50.0%", "99.9%", "100%"]  # fmt: skip
    assert percent(0, 0) == "0%"


def test_values_are_written_as_they_are_typed() -> None:
    values: list[Any] = [True, 0.88, 8, [1, 2], None, "x\ny"]
    assert [value(data) for data in values] == ["on", "0.88", "8", "1 2", "unset", "x y"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (("flag", "mem_fraction_static", "decrease", 0.95, 0.88),
         "lower --mem-fraction-static from 0.95 to 0.88"),
        (("flag", "tp_size", "set", None, 4), "set --tp-size to 4"),
        (("flag", "disable_cuda_graph", "enable", False, True), "add --disable-cuda-graph"),
        (("flag", "enable_mixed_chunk", "disable", True, False), "remove --enable-mixed-chunk"),
        (("flag", "context_length", "remove", 9, None), "remove --context-length (now 9)"),
        (("env", "NCCL_P2P_LEVEL", "set", "PHB", "SYS"), "set NCCL_P2P_LEVEL=SYS (now PHB)"),
        (("env", "X", "remove", None, None), "remove X"),
        (("package", "transformers", "upgrade", "4.57.1", ">=5.2.0"),
         "upgrade transformers to >=5.2.0 (now 4.57.1)"),
        (("action", "use_more_gpus", "do", None, None), "use more GPUs"),
    ],
)  # fmt: skip
def test_a_remedy_in_words(fields: tuple[Any, ...], expected: str) -> None:
    kind, name, direction, old, new = fields
    made = Remedy(kind=kind, name=name, direction=direction, from_=old, to=new, reason="")
    assert phrase(made) == expected


def test_places_are_short_where_that_is_clear() -> None:
    places = Places(["a/x.log", "b/x.log", "c/y.log", "-", f"{'z' * 50}.log"])
    assert places.name("a/x.log") == "a/x.log"
    assert places.name("c/y.log") == "y.log"
    assert places.name("-") == "stdin"
    assert places.name(f"{'z' * 50}.log") == f"...{'z' * 21}.log"
    assert places.at_line(2, 7) == "y.log:7"
    assert places.at_line(9, 7) == "line 7"
