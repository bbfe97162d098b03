"""The trials of a plan, rewritten for a smaller machine, and the model that they load."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forensics.launch import Launch
from forensics.memory.model_shape import ModelShape
from forensics.reproduce import ballast
from forensics.reproduce.figures import predicted
from forensics.reproduce.flag_values import typed, value_in, with_text, with_value
from forensics.reproduce.model import Difference, Figures, ReproductionPlan, TrialPlan
from forensics.reproduce.scale import Here, Original, Scaled, ScaleError, scaled

FRACTION = "mem_fraction_static"
_TOKENIZER = ("tokenizer.json", "tokenizer.model", "vocab.json", "tiktoken.model")
_COPIED = ("tokenizer*", "vocab*", "merges*", "special_tokens*", "*.model", "generation_config*")
_OF_MANY_NODES = ("nnodes", "node_rank", "dist_init_addr", "pp_size", "base_gpu_id")
_SETTLED = ("GPUs", "GPU memory", "nodes", "model path")
"""Differences that scaling down is there for."""


@dataclass(frozen=True, slots=True)
class Scaling:
    """How the trials of one plan are scaled down."""

    scaled: Scaled
    launch: Launch
    folder: Path
    """Where the smaller model is written to, before anything runs."""
    tokenizer_from: Path | None
    """The original's folder, if it is here with its tokenizer."""

    def write_model(self) -> None:
        """Write the model's configuration, and its tokenizer if that is here. Raises OSError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(self.scaled.model.config, indent=2) + "\n"
        (self.folder / "config.json").write_text(text, encoding="utf-8")
        for pattern in _COPIED if self.tokenizer_from else ():
            for path in sorted(self.tokenizer_from.glob(pattern) if self.tokenizer_from else ()):
                if path.is_file():
                    shutil.copyfile(path, self.folder / path.name)

    def trials(self, trials: Sequence[TrialPlan]) -> list[TrialPlan]:
        """The trials as they run here. Raises ScaleError."""
        return [self._trial(trial) for trial in trials]

    def plan(self, plan: ReproductionPlan) -> ReproductionPlan:
        """A plan of such trials, with its differences and limits."""
        left: list[Difference] = [d for d in plan.differences if d.what not in _SETTLED]
        limits = [*plan.limits, *self.scaled.limits, *self._fractions(plan.trials)]
        return plan.model_copy(update={"differences": left, "limits": limits})

    def _trial(self, trial: TrialPlan) -> TrialPlan:
        there = value_in(trial.command, FRACTION)
        original = self.scaled.original
        free = self._free_there(original.fraction if there is None else there)
        fraction = self.scaled.fraction_for(free)
        words = with_value(trial.command, FRACTION, fraction)
        words = with_text(words, "model_path", str(self.folder))
        words = with_text(words, "load_format", "dummy")
        words = with_text(words, "tp_size", str(self.scaled.tp_size))
        for name in (*_OF_MANY_NODES, "tokenizer_path"):
            words = with_text(words, name, None)
        words = self._shared_out(words)
        goal = trial.goal
        if self.tokenizer_from is None:
            words = with_text(words, "skip_tokenizer_init", "")
            goal = "ready" if goal in ("health", "generate", "load") else goal
        if self.scaled.ballast_gib:
            leave = self.scaled.baseline_gib + original.outside_gib
            python = words[0] if "python" in words[0] else "python3"
            words = [python, str(Path(ballast.__file__)), f"{leave:.2f}", *words]
        expected: Figures = self.scaled.predicted(fraction)
        changed = {"command": words, "goal": goal, "predicted": expected}
        return trial.model_copy(update={**changed, "stands_for": list(trial.command)})

    def _free_there(self, fraction: float) -> float:
        """Free memory at capture that the original has at a fraction."""
        original = self.scaled.original
        figures, now = original.figures, original.fraction
        running = original.max_running_requests
        found = predicted(figures, now, fraction, running).free_gib_at_capture
        if fraction == now or found is None:
            found = figures.free_gib_at_capture
        if found is None:
            raise ScaleError("the log does not show how much is free at capture")
        return found

    def _shared_out(self, words: list[str]) -> list[str]:
        """Sizes of groups of ranks that do not fit fewer ranks."""
        fewer = self.scaled.tp_size
        for name in ("ep_size", "dp_size", "moe_dense_tp_size", "attn_cp_size"):
            size = value_in(words, name)
            if size is not None and size > fewer:
                words = with_text(words, name, str(fewer) if name != "attn_cp_size" else None)
        return words

    def _fractions(self, trials: Sequence[TrialPlan]) -> list[str]:
        """Which fraction there a fraction here stands for, trial by trial."""
        if self.scaled.ballast_gib or not trials:
            return []
        pairs = []
        for trial in trials:
            here = value_in(trial.command, FRACTION)
            free = trial.predicted.free_gib_at_capture
            if here is not None and free is not None:
                pairs.append(f"{trial.name} {typed(here)} ({free:.2f} GiB free at capture)")
        return [f"Fractions here: {', '.join(pairs)}."] if pairs else []


def scaling_of(
    config: Mapping[str, Any],
    launch: Launch,
    figures: Figures,
    total_gib: float | None,
    here: Here,
    folder: Path,
) -> Scaling:
    """How a launch is scaled down to a machine. Raises ScaleError, ShapeError."""
    fraction = launch.number(FRACTION)
    if fraction is None:
        raise ScaleError("the launch's mem_fraction_static is not known")
    if isinstance(launch.get("speculative_draft_model_path"), str):
        raise ScaleError(
            "a launch with a draft model cannot be scaled down: only one model shrinks"
        )
    if figures.context_len is None:
        context = ModelShape.of_config(config).context_len
        figures = figures.model_copy(update={"context_len": context})
    running = launch.number("max_running_requests")
    original = Original(
        tp_size=_whole(launch, "tp_size"),
        fraction=fraction,
        figures=figures,
        pp_size=_whole(launch, "pp_size"),
        ep_size=_whole(launch, "ep_size"),
        total_gib=total_gib,
        max_running_requests=None if running is None else int(running),
    )
    path = launch.get("model_path")
    home = Path(path) if isinstance(path, str) and path.startswith("/") else None
    has_one = home is not None and any((home / name).is_file() for name in _TOKENIZER)
    return Scaling(scaled(config, original, here), launch, folder, home if has_one else None)


def _whole(launch: Launch, name: str) -> int:
    return max(int(launch.number(name) or 1), 1)
