"""The same failure or another one: class and stage decide, neither rule nor rank."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.pipeline import analyze
from forensics.reproduce.judge import failure_of, is_same
from forensics.reproduce.model import Failure


def failure(
    class_: str, phase: str, rule: str = "a", title: str = "t", rank: str = "TP0"
) -> Failure:
    return Failure(rule=rule, class_=class_, phase=phase, title=title, rank=rank)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        # A capture OOM has many faces: wrapped, bare, before the first graph, on any rank.
        (("graph_capture_oom", "graph_capture", "a", "x", "TP0"),
         ("graph_capture_oom", "graph_capture", "b", "y", "TP7"), True),
        # The KV pool came less far, and prefill graphs are others than decode graphs.
        (("graph_capture_oom", "graph_capture"), ("activation_oom", "kv_pool"), False),
        (("graph_capture_oom", "graph_capture"), ("piecewise_graph_oom", "graph_capture"), False),
        # One class for the pool and for serving: the stage tells them apart.
        (("activation_oom", "kv_pool"), ("activation_oom", "serving"), False),
        (("activation_oom", "warmup"), ("activation_oom", "serving"), True),
        # Elsewhere the phase is chance, as long as both were starting or both served.
        (("host_ram_oom", "load"), ("host_ram_oom", "kv_pool"), True),
        (("port_in_use", "init"), ("port_in_use", "warmup"), True),
        (("collective_hang", "load"), ("collective_hang", "serving"), False),
        # Classes that gather everything else: the same rule, or the same words.
        (("version_mismatch", "init", "a", "x"), ("version_mismatch", "init", "b", "y"), False),
        (("version_mismatch", "init", "a", "x"), ("version_mismatch", "init", "a", "y"), True),
        (("unknown", "init", "unknown-failure", "KeyError: 'a' at 0x7f3a"),
         ("unknown", "load", "unknown-failure", "KeyError: 'a' at 0x11"), True),
        (("unknown", "init", "unknown-failure", "KeyError: 'a'"),
         ("unknown", "init", "unknown-failure", "ValueError: b"), False),
    ],
)  # fmt: skip
def test_same_or_not(one: tuple[str, ...], other: tuple[str, ...], same: bool) -> None:
    assert is_same(failure(*one), failure(*other)) is same
    assert is_same(failure(*other), failure(*one)) is same


@pytest.mark.parametrize(
    ("log", "class_", "phase"),
    [
        ("h200-capture-failed.log", "graph_capture_oom", "graph_capture"),
        ("h200-tp2-kv-pool-oom.log", "activation_oom", "kv_pool"),
        ("cpu-fraction-under-weights.log", "mem_fraction_too_low", "kv_pool"),
        ("cpu-port-in-use.log", "port_in_use", "warmup"),
    ],
)
def test_the_failure_of_a_genuine_log(fixtures: Path, log: str, class_: str, phase: str) -> None:
    path = fixtures / "genuine" / log
    found = failure_of(analyze([str(path)]).reports[-1])
    assert found is not None
    assert (found.class_, found.phase, found.source) == (class_, phase, str(path))
    assert found.text
    assert found.text[:40] in path.read_text()


def test_a_healthy_log_has_none(fixtures: Path) -> None:
    path = fixtures / "genuine" / "h200-capture-fixed.log"
    assert failure_of(analyze([str(path)]).reports[-1]) is None
