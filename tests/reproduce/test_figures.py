"""Figures of a launch: measured from its log, and predicted for another fraction."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from forensics import pipeline
from forensics.incident import Run
from forensics.reproduce.figures import measured, predicted


def run_of(path: Path) -> Run:
    return pipeline.analyze([str(path)]).incident.runs[-1]


def test_a_capture_that_failed_needs_at_least_what_it_held_and_asked_for(root: Path) -> None:
    figures = measured(run_of(root / "fixtures/genuine/h200-capture-failed.log"))
    assert figures.free_gib_at_capture == 1.05
    assert figures.capture_need_gib == pytest.approx(1.05 - 82.31 / 1024 + 126 / 1024, abs=0.01)
    assert figures.capture_gib is None
    assert figures.free_gib_after_capture is None
    assert (figures.baseline_gib, figures.after_weights_gib) == (139.13, 124.11)


def test_a_capture_that_passed_kept_this_and_peaked_at_that(root: Path) -> None:
    figures = measured(run_of(root / "fixtures/genuine/h200-capture-fixed.log"))
    assert figures.free_gib_at_capture == 11.97
    assert figures.free_gib_after_capture == 9.47
    assert figures.capture_gib == pytest.approx(1.60 + 0.91, abs=0.01)
    assert figures.prefill_graphs_gib == pytest.approx(1.60, abs=0.01)
    assert figures.capture_need_gib is not None
    assert figures.capture_need_gib > figures.capture_gib
    assert figures.context_len == 131072


def test_the_poorest_rank_counts(root: Path) -> None:
    figures = measured(run_of(root / "fixtures/genuine/h200-tp2-healthy.log"))
    assert figures.free_gib_at_capture == 11.39
    assert figures.rank in ("TP0", "TP1")


def test_what_is_predicted_from_a_failed_launch_is_what_was_measured(root: Path) -> None:
    failed = measured(run_of(root / "fixtures/genuine/h200-capture-failed.log"))
    fixed = measured(run_of(root / "fixtures/genuine/h200-capture-fixed.log"))
    foretold = predicted(failed, 0.9775, 0.9)
    assert foretold.free_gib_at_capture == pytest.approx(fixed.free_gib_at_capture, abs=0.3)


def test_a_model_that_is_here_tells_the_context_that_a_failed_launch_did_not(
    root: Path, tmp_path: Path
) -> None:
    text = (root / "fixtures/genuine/h200-capture-failed.log").read_text()
    log = tmp_path / "server.log"
    log.write_text(text.replace("/models/llama-8b", str(tmp_path)))
    assert measured(run_of(log)).context_len is None
    config = {
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "vocab_size": 128256,
        "max_position_embeddings": 131072,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    figures = measured(run_of(log))
    assert figures.context_len == 131072
    foretold = predicted(figures, 0.9775, 0.9).free_gib_at_capture
    assert foretold == pytest.approx(11.97, abs=0.05)
    (tmp_path / "config.json").write_text("[" * 10_000)
    assert measured(run_of(log)).context_len is None
