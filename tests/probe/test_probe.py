"""A probe fills the card as the launch did, captures from large to small, and says what it took."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from forensics import pipeline
from forensics.incident import Run
from forensics.memory.model_shape import ModelShape, ShapeError
from forensics.probe.geometry import Asked, need_of, standard_batches, target_of
from forensics.probe.model import ProbeError
from forensics.probe.probing import probe
from forensics.views.console import console_for
from forensics.views.probe import probe_json, show_probe
from tests.probe.fake_card import FakeCard

Program = Callable[..., "subprocess.CompletedProcess[str]"]

LLAMA_8B: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
QWEN3_30B = LLAMA_8B | {
    "model_type": "qwen3_moe",
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "num_hidden_layers": 48,
    "num_key_value_heads": 4,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 768,
}
DEEPSEEK_V2_LITE = {
    "hidden_size": 2048,
    "intermediate_size": 10944,
    "num_hidden_layers": 27,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "vocab_size": 102400,
    "max_position_embeddings": 163840,
    "kv_lora_rank": 512,
    "q_lora_rank": None,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128,
    "v_head_dim": 128,
    "n_routed_experts": 64,
    "n_shared_experts": 2,
    "num_experts_per_tok": 6,
    "moe_intermediate_size": 1408,
    "first_k_dense_replace": 1,
}


@pytest.fixture(scope="module")
def failed_launch(root: Path) -> Run:
    log = root / "fixtures" / "genuine" / "h200-capture-failed.log"
    return pipeline.analyze([str(log)]).incident.runs[-1]


@pytest.mark.parametrize(
    ("config", "loaded_gib", "cell_bytes"),
    [
        # Weights as the launches' own lines have them, and pool bytes over tokens.
        (LLAMA_8B, 15.02, 131072),
        (QWEN3_30B, 56.89, 98304),
        (DEEPSEEK_V2_LITE, 29.47, 31104),
    ],
)
def test_weights_and_cells_follow_from_the_configuration(
    config: dict[str, Any], loaded_gib: float, cell_bytes: float
) -> None:
    shape = ModelShape.of_config(config)
    assert shape.weights_gib() == pytest.approx(loaded_gib, rel=0.01)
    assert shape.cell_bytes() == cell_bytes


def test_a_multimodal_model_is_its_text_part_and_quantised_weights_are_smaller() -> None:
    nested = {"text_config": LLAMA_8B, "quantization_config": {"quant_method": "fp8"}}
    shape = ModelShape.of_config(nested)
    assert shape.layers == 32
    whole, embeddings = ModelShape.of_config(LLAMA_8B), 2 * 4096 * 128256 * 2 / 2**30
    assert shape.weights_gib() == pytest.approx((whole.weights_gib() + embeddings) / 2, rel=0.01)


@pytest.mark.parametrize("value", [None, "4096", -1, 0, True, 10**13])
def test_a_configuration_without_a_usable_size_is_refused_by_name(value: object) -> None:
    with pytest.raises(ShapeError, match="hidden_size"):
        ModelShape.of_config(LLAMA_8B | {"hidden_size": value})


def test_a_failed_launch_is_tried_with_the_sizes_of_its_log(failed_launch: Run) -> None:
    target = target_of(failed_launch, LLAMA_8B, Asked())
    geometry = target.geometry
    assert geometry.weights_gib == 15.02
    assert geometry.kv_pool_gib == 120.98
    assert geometry.free_gib_at_capture == 1.05
    assert geometry.backend == "triton"
    assert geometry.batch_sizes == standard_batches(512)
    assert target.foretold.capture_need_gib == pytest.approx(1.23, abs=0.01)


def test_at_another_fraction_free_memory_follows_the_ledger(failed_launch: Run) -> None:
    # Measured in a launch at 0.96: 3.47.
    target = target_of(failed_launch, LLAMA_8B, Asked(fraction=0.96))
    assert target.geometry.free_gib_at_capture == pytest.approx(3.47, abs=0.1)
    assert target.geometry.kv_pool_gib == pytest.approx(118.54, abs=0.1)


def test_what_the_log_had_too_little_for_runs_out_here_too(failed_launch: Run) -> None:
    card = FakeCard()
    report = probe(target_of(failed_launch, LLAMA_8B, Asked()), card)
    assert report.outcome == "out-of-memory"
    assert report.refusal is not None
    assert report.refusal.batch == 512
    assert report.measured is not None
    assert report.measured.free_gib_at_capture == pytest.approx(1.05, abs=0.01)
    assert 1.05 < report.measured.capture_need_gib < 1.3
    assert report.measured.capture_gib is None


def test_what_fits_is_captured_from_large_to_small_and_its_parts_add_up(
    failed_launch: Run,
) -> None:
    card = FakeCard()
    report = probe(target_of(failed_launch, LLAMA_8B, Asked(fraction=0.96)), card)
    assert report.outcome == "captured"
    sizes = [int(act.split()[1]) for act in card.did if act.startswith("capture")]
    assert sizes == sorted(standard_batches(512), reverse=True)
    assert card.did.index("buffers") < card.did.index("capture 512")
    found, foretold = report.measured, report.foretold
    assert found is not None
    assert found.capture_gib is not None
    parts = (found.buffers_gib, found.first_graph_gib, found.other_graphs_gib)
    assert sum(part or 0.0 for part in parts) == pytest.approx(found.capture_gib, abs=0.005)
    assert foretold.capture_gib is not None
    assert found.capture_gib == pytest.approx(foretold.capture_gib, abs=0.02)
    assert found.free_gib_after_capture == pytest.approx(
        found.free_gib_at_capture - found.capture_gib, abs=0.005
    )


def test_a_smaller_card_gets_a_smaller_pool_and_as_much_free_at_capture(
    failed_launch: Run,
) -> None:
    report = probe(target_of(failed_launch, LLAMA_8B, Asked(fraction=0.96)), FakeCard(79.1))
    assert report.measured is not None
    assert report.measured.free_gib_at_capture == pytest.approx(3.5, abs=0.1)
    assert any("instead of" in note for note in report.notes)


def test_a_card_that_is_taken_is_refused_in_one_line() -> None:
    target = target_of(None, LLAMA_8B, Asked(kv_pool_gib=100.0))
    with pytest.raises(ProbeError, match=r"does not fit in the 23\.50 GiB") as refused:
        probe(target, FakeCard(24.0))
    assert "\n" not in str(refused.value)


def test_buffers_of_an_unknown_backend_are_left_out_and_said() -> None:
    target = target_of(None, LLAMA_8B, Asked(free_gib=3.0, backend="fa3"))
    assert need_of(target.geometry) is None
    assert target.foretold.capture_gib is None
    assert any("fa3" in note for note in target.notes)


def test_a_share_of_a_split_model_says_what_is_missing() -> None:
    target = target_of(None, LLAMA_8B, Asked(free_gib=3.0, tp_size=4, backend="triton"))
    assert (target.geometry.heads, target.geometry.kv_heads) == (8, 2)
    assert target.geometry.weights_gib == pytest.approx(14.96 / 4, abs=0.01)
    assert any("Collectives" in note for note in target.notes)


def test_batch_sizes_are_those_that_the_server_captures(failed_launch: Run) -> None:
    logged = failed_launch.ledgers()[0].captures[0].sizes
    assert standard_batches(512) == sorted(logged)
    assert len(standard_batches(256)) == 36
    assert standard_batches(3) == [1, 2, 3]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_8B))
    return path


def test_the_command_shows_what_it_would_try_without_a_gpu(
    program: Program, root: Path, config: Path
) -> None:
    log = str(root / "fixtures" / "genuine" / "h200-capture-failed.log")
    shown = program("probe", log, "--model-config", str(config), "--dry-run")
    assert shown.returncode == 0
    assert "52 decode graphs up to batch 512" in shown.stdout
    document = program(
        *("probe", log, "--model-config", str(config), "--dry-run", "--format", "json")
    )
    assert json.loads(document.stdout)["foretold"]["free_gib_at_capture"] == 1.05


def has_torch() -> bool:
    try:
        import torch  # noqa: F401
    except ImportError:
        return False
    return True


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "--model-config"),
        (("--model-config", "nothing.json"), "nothing.json"),
        (("--model-config", "CONFIG"), "--kv-pool"),
        (("--model-config", "CONFIG", "--free", "3", "--bs", "1,x"), "--bs"),
        pytest.param(
            ("--model-config", "CONFIG", "--free", "3"),
            "PyTorch",
            marks=pytest.mark.skipif(has_torch(), reason="torch is here"),
        ),
    ],
)
def test_what_cannot_be_tried_is_said_in_one_line(
    program: Program, config: Path, arguments: tuple[str, ...], said: str
) -> None:
    words = [str(config) if word == "CONFIG" else word for word in arguments]
    done = program("probe", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_what_is_printed_as_json_fits_its_schema(
    program: Program, failed_launch: Run, root: Path
) -> None:
    schema = json.loads(program("schema", "probe").stdout)
    report = probe(target_of(failed_launch, LLAMA_8B, Asked()), FakeCard())
    jsonschema.validate(json.loads(probe_json(report)), schema)
    for kept in sorted((root / "fixtures" / "h200-reproduce").glob("probe-*.json")):
        jsonschema.validate(json.loads(kept.read_text()), schema)


def test_text_of_a_log_or_an_allocator_is_inert_on_the_terminal() -> None:
    target = target_of(None, LLAMA_8B, Asked(free_gib=3.0, backend="tri\x1b[31mton[bold]"))
    card = FakeCard()
    card.first_gib, card.name = 50.0, "GPU\x1b]0;x\x07 [red]9"
    out = io.StringIO()
    show_probe(probe(target, card), console_for(out, "never"))
    shown = out.getvalue()
    assert "OUT OF MEMORY" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "[bold]" in shown
