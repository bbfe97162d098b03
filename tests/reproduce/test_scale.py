"""A launch scaled down keeps what is free at capture and what one rank holds of its card."""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from forensics.cli import app
from forensics.launch import Launch
from forensics.memory.model_shape import ModelShape, ShapeError
from forensics.reproduce import ballast, preflight
from forensics.reproduce.flag_values import value_in
from forensics.reproduce.machine import look
from forensics.reproduce.model import Difference, Figures, Gpu, ReproductionPlan, TrialPlan
from forensics.reproduce.scale import Here, Original, ScaleError, scaled
from forensics.reproduce.scale_config import smaller_model
from forensics.reproduce.scale_plan import Scaling, scaling_of
from forensics.reproduce.verdict import Ruling, proven

LLAMA_70B: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}
LLAMA_8B = LLAMA_70B | {
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
}
MOE = LLAMA_70B | {
    "hidden_size": 4096,
    "num_hidden_layers": 94,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 1536,
    "layer_types": ["full_attention"] * 94,
}
LATENT = LLAMA_70B | {
    "hidden_size": 6144,
    "num_hidden_layers": 78,
    "num_key_value_heads": 64,
    "kv_lora_rank": 512,
    "q_lora_rank": 2048,
    "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 192,
    "v_head_dim": 256,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 2048,
    "first_k_dense_replace": 3,
    "quantization_config": {"quant_method": "modelopt_fp4"},
}


def original(config: dict[str, Any], tp_size: int = 8, fraction: float = 0.95) -> Original:
    """A launch on cards of 94.97 GiB with 1.5 GiB gone between sizing and capture."""
    baseline = 94.3
    weights = ModelShape.of_config(config).weights_gib(tp_size)
    pool = baseline * fraction - weights
    cell = ModelShape.of_config(config).cell_bytes(tp_size)
    figures = Figures(
        baseline_gib=baseline,
        after_weights_gib=round(baseline - weights, 2),
        kv_pool_gib=round(pool, 2),
        kv_tokens=int(pool * 2**30 / cell),
        context_len=131072,
        free_gib_at_capture=round(baseline * (1 - fraction) - 1.5, 2),
    )
    return Original(tp_size, fraction, figures, total_gib=94.97, max_running_requests=8)


@pytest.mark.parametrize("config", [LLAMA_70B, MOE, LATENT], ids=["dense", "moe", "latent"])
@pytest.mark.parametrize("to", [1, 2, 4])
def test_a_rank_of_the_smaller_model_is_a_rank_of_the_larger(
    config: dict[str, Any], to: int
) -> None:
    before = ModelShape.of_config(config)
    weights = before.weights_gib(8)
    made = smaller_model(
        config, tp_size=8, to_tp_size=to, weights_gib=weights, to_weights_gib=weights
    )
    assert made.shape.heads / to == before.heads / 8
    assert made.shape.kv_heads / to == max(before.kv_heads / 8, 1) or config is LATENT
    assert made.shape.head_dim == before.head_dim
    same = ("hidden", "vocab", "context_len")
    assert [getattr(made.shape, n) for n in same] == [getattr(before, n) for n in same]
    # The vocabulary is whole on fewer ranks, so a few layers may make room for it.
    assert made.weights_gib == pytest.approx(weights, rel=0.1)


def test_experts_that_ranks_share_out_become_fewer_and_those_they_split_narrower() -> None:
    def sizes(ep_size: int) -> tuple[int, int]:
        made = smaller_model(
            *(MOE,), tp_size=8, to_tp_size=2, ep_size=ep_size, weights_gib=60, to_weights_gib=60
        )
        return made.shape.experts, made.shape.expert_ffn

    assert sizes(8) == (32, 1536)
    assert sizes(1) == (128, 384)


def test_lists_that_name_each_layer_are_shortened_with_the_layers() -> None:
    weights = ModelShape.of_config(MOE).weights_gib(8)
    made = smaller_model(
        MOE, tp_size=8, to_tp_size=8, weights_gib=weights, to_weights_gib=weights / 2
    )
    assert 40 < made.shape.layers < 54
    assert len(made.config["layer_types"]) == made.shape.layers
    assert made.config["architectures"] == ["LlamaForCausalLM"]
    assert MOE["num_hidden_layers"] == 94, "the original is left as it was"


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from([LLAMA_70B, MOE, LATENT]),
    st.floats(40, 180),
    st.sampled_from([1, 2, 4, 8]),
    st.floats(0.9, 0.96),
)
def test_free_memory_at_capture_is_that_of_the_original(
    config: dict[str, Any], card_gib: float, gpus: int, fraction: float
) -> None:
    there = original(config, fraction=fraction)
    made = scaled(config, there, Here(gpus, card_gib))
    free = there.figures.free_gib_at_capture
    assert free is not None
    here = made.fraction_for(free)
    assert made.predicted(here).free_gib_at_capture == pytest.approx(free, abs=0.02)
    assert made.tp_size == gpus
    share = made.model.weights_gib / made.baseline_gib
    baseline, after = there.figures.baseline_gib, there.figures.after_weights_gib
    assert baseline is not None
    assert after is not None
    if ModelShape.of_config(config).layers > made.model.shape.layers:
        assert share == pytest.approx((baseline - after) / baseline, abs=0.05)


def test_a_larger_card_gets_ballast_and_keeps_the_fraction() -> None:
    made = scaled(LLAMA_70B, original(LLAMA_70B), Here(8, 139.8))
    assert made.ballast_gib == pytest.approx(139.8 - 94.97, abs=0.01)
    assert made.baseline_gib == pytest.approx(94.3)
    free = original(LLAMA_70B).figures.free_gib_at_capture
    assert free is not None
    assert made.fraction_for(free) == pytest.approx(0.95, abs=0.0005)
    assert any("ballast" in limit for limit in made.limits)


def test_what_it_cannot_show_is_said() -> None:
    limits = " ".join(scaled(LLAMA_70B, original(LLAMA_70B), Here(1, 79.1)).limits)
    for word in ("random", "collectives", "layers instead of 80", "free memory at capture is"):
        assert word in limits


def test_without_the_figures_or_a_gpu_there_is_nothing_to_keep() -> None:
    bare = dataclasses.replace(original(LLAMA_70B), figures=Figures(baseline_gib=94.3))
    with pytest.raises(ScaleError, match="no geometry"):
        scaled(LLAMA_70B, bare, Here(1, 79.1))
    with pytest.raises(ScaleError, match="no GPU"):
        scaled(LLAMA_70B, original(LLAMA_70B), Here(0, 0.0))
    with pytest.raises(ShapeError, match="vocab_size"):
        scaled({**LLAMA_70B, "vocab_size": None}, original(LLAMA_70B), Here(1, 79.1))


def scaling(tmp_path: Path, card_gib: float, model: str = "/nowhere/llama-70b") -> Scaling:
    flags: dict[str, Any] = {"model_path": model, "tp_size": 8, "mem_fraction_static": 0.95}
    launch = Launch(flags=flags | {"max_running_requests": 8})
    figures = original(LLAMA_70B).figures
    here = Here(1, card_gib)
    return scaling_of(LLAMA_70B, launch, figures, 94.97, here, tmp_path / "plan-model")


def trial(name: str, fraction: str, *more: str) -> TrialPlan:
    words = "python3 -m sglang.launch_server --model-path /nowhere/llama-70b --tp 8 --nnodes 2"
    return TrialPlan(
        name=name,
        role="control" if name == "control" else "fix",
        command=[*words.split(), "--mem-fraction-static", fraction, *more],
        expects="fails",
        goal="generate",
    )


def test_trials_are_rewritten_and_the_fix_keeps_its_distance_from_the_control(
    tmp_path: Path,
) -> None:
    control, fix = scaling(tmp_path, 79.1).trials(
        [trial("control", "0.95", "--ep-size", "8"), trial("fix", "0.90")]
    )
    assert control.command[:5] == [
        *("python3", "-m", "sglang.launch_server", "--model-path"),
        str(tmp_path / "plan-model"),
    ]
    assert value_in(control.command, "tp_size") == 1
    assert value_in(control.command, "ep_size") == 1
    assert "--nnodes" not in control.command
    assert "--skip-tokenizer-init" in control.command
    assert control.goal == "ready", "without a tokenizer there are no requests"
    assert control.predicted.free_gib_at_capture == pytest.approx(3.2, abs=0.05)
    assert fix.predicted.free_gib_at_capture == pytest.approx(3.2 + 94.3 * 0.05, abs=0.1)


def test_what_is_proven_is_the_launch_of_the_original(tmp_path: Path) -> None:
    fix = trial("fix", "0.90")
    (scaled_fix,) = scaling(tmp_path, 79.1).trials([fix])
    plan = ReproductionPlan(logs=["a.log"], trials=[scaled_fix])
    assert proven(plan, Ruling("fix-holds", "it passed")) == fix.command


def test_the_command_shows_the_smaller_launch_and_what_it_cannot_show(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_gpu(*arguments: Any, **options: Any) -> Any:
        found = look(*arguments, **options)
        found.machine.gpus = [Gpu(index=0, name="GPU", total_gib=80.0, free_gib=79.1)]
        found.machine.versions, found.gpus_known = {"sglang": "0.5.16"}, True
        return found

    monkeypatch.setattr(preflight, "look", one_gpu)
    config = tmp_path / "config.json"
    config.write_text(json.dumps(LLAMA_8B))
    log = str(root / "fixtures" / "h200-reproduce" / "crash.log")
    words = ["reproduce", log, "--scale", "--model-config", str(config), "--dry-run"]
    done = CliRunner().invoke(app, [*words, "--folder", str(tmp_path / "kept"), "--format", "json"])
    assert done.exit_code == 0
    plan = ReproductionPlan.model_validate_json(done.stdout)
    assert any("16 layers instead of 32" in limit for limit in plan.limits)
    control, fix = plan.trials[:2]
    assert value_in(control.command, "mem_fraction_static") == pytest.approx(0.9587, abs=0.0002)
    assert control.predicted.free_gib_at_capture == pytest.approx(1.05, abs=0.02)
    assert value_in(fix.stands_for, "mem_fraction_static") == 0.93
    assert not (tmp_path / "kept-model").exists(), "a plan that is only shown writes nothing"


def test_on_a_larger_card_each_launch_runs_behind_ballast(tmp_path: Path) -> None:
    (control,) = scaling(tmp_path, 139.8).trials([trial("control", "0.95")])
    assert control.command[0] == "python3"
    assert control.command[1].endswith("ballast.py")
    assert float(control.command[2]) == pytest.approx(94.97, abs=0.01)
    assert control.command[3:6] == ["python3", "-m", "sglang.launch_server"]


def test_the_plan_says_so_and_drops_the_differences_that_it_is_there_for(tmp_path: Path) -> None:
    made = scaling(tmp_path, 79.1)
    apart = [
        Difference(what=what, weight="blocking", because="it is so")
        for what in ("GPUs", "model path", "sglang")
    ]
    trials = made.trials([trial("control", "0.95")])
    plan = made.plan(ReproductionPlan(logs=["a.log"], trials=trials, differences=apart))
    assert [difference.what for difference in plan.differences] == ["sglang"]
    assert plan.limits
    assert any("control 0.9" in limit for limit in plan.limits)


def test_the_model_is_written_with_the_tokenizer_that_is_here(tmp_path: Path) -> None:
    home = tmp_path / "llama-70b"
    home.mkdir()
    (home / "tokenizer.json").write_text("{}")
    (home / "model-00001.safetensors").write_text("heavy")
    made = scaling(tmp_path, 79.1, str(home))
    (control,) = made.trials([trial("control", "0.95")])
    assert "--skip-tokenizer-init" not in control.command
    assert control.goal == "generate"
    made.write_model()
    written = sorted(path.name for path in (tmp_path / "plan-model").iterdir())
    assert written == ["config.json", "tokenizer.json"]
    config = json.loads((tmp_path / "plan-model" / "config.json").read_text())
    assert config["num_attention_heads"] == 8
    assert config["head_dim"] == 128


class CountingDriver(ballast.Driver):
    """Two GPUs that only count."""

    def __init__(self) -> None:
        self.free = [100 * ballast.GIB, 90 * ballast.GIB]
        self.at = 0

    def count(self) -> int:
        return len(self.free)

    def use(self, index: int) -> None:
        self.at = index

    def free_bytes(self) -> int:
        return self.free[self.at]

    def take(self, size: int) -> None:
        self.free[self.at] -= size


def test_ballast_leaves_what_it_is_told_to_leave() -> None:
    driver = CountingDriver()
    assert ballast.hold(driver, 94.97) == [pytest.approx(5.03, abs=0.01), 0.0]
    assert driver.free[0] == pytest.approx(94.97 * ballast.GIB, rel=1e-4)
    assert driver.free[1] == 90 * ballast.GIB


def test_ballast_without_a_driver_runs_nothing_and_says_why() -> None:
    words = [sys.executable, ballast.__file__, "50", sys.executable, "-c", "print('ran')"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode == 0:
        pytest.skip("there is a GPU here")
    assert done.returncode == ballast.NOT_HELD
    assert done.stdout == ""
    assert done.stderr.startswith("ballast: ")


@pytest.mark.parametrize(
    ("code", "status"),
    [("raise SystemExit(7)", 7), ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL)],
)
def test_ballast_ends_as_its_command_did(code: str, status: int) -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(Path(ballast.__file__).parent)!r}); import ballast\n"
        "ballast.Driver = lambda: None\n"
        "ballast.hold = lambda driver, leave: [1.0]\n"
        f"sys.exit(ballast.main(['1', sys.executable, '-c', {code!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, timeout=60)
    assert done.returncode == status
