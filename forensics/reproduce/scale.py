"""A plan for a smaller machine: the same memory geometry of one rank on fewer or smaller GPUs.

Weights are random (`--load-format dummy`), ranks fewer, the model smaller in what ranks split; the
fraction is chosen so that as much memory is free when capture begins as on the original. A card
that is larger than the original gets ballast instead, and keeps the fraction. Facts: memory
model, sections 2, 4 and 7.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from forensics.memory.model_shape import ModelShape
from forensics.memory.pool import pool_budget_gib, request_table_gib
from forensics.reproduce.choosing import PlanError
from forensics.reproduce.figures import situation
from forensics.reproduce.model import Figures
from forensics.reproduce.scale_config import SmallerModel, smaller_model

OUTSIDE_GIB = 0.65
"""Taken by a server before the baseline (context, communicators), where it is not known."""
SAME_GIB = 1.0
"""Cards that differ by less count as alike."""


class ScaleError(PlanError):
    """A launch that cannot be scaled down; the text is one line for the user."""


@dataclass(frozen=True, slots=True)
class Original:
    """The launch as it was, as far as its memory goes."""

    tp_size: int
    fraction: float
    figures: Figures
    """Measured; baseline and free memory at capture are needed."""
    pp_size: int = 1
    ep_size: int = 1
    total_gib: float | None = None
    """Of a card; None: not known."""
    max_running_requests: int | None = None

    @property
    def outside_gib(self) -> float:
        """Taken before the baseline."""
        baseline = self.figures.baseline_gib
        if self.total_gib is None or baseline is None or self.total_gib <= baseline:
            return OUTSIDE_GIB
        return self.total_gib - baseline


@dataclass(frozen=True, slots=True)
class Here:
    """The machine at hand."""

    gpus: int
    free_gib: float
    """Of the GPU that has least."""


@dataclass(frozen=True, slots=True)
class Scaled:
    """A smaller launch whose ranks have the original's memory geometry."""

    model: SmallerModel
    original: Original
    tp_size: int
    baseline_gib: float
    """Free before weights, once the ballast is there."""
    ballast_gib: float
    """Held on every GPU beside the server."""
    taken_gib: float
    """U without the request table: what is taken between sizing and capture."""
    context_len: int | None
    limits: list[str] = field(default_factory=list)

    @property
    def after_weights_gib(self) -> float:
        """A: free after weights."""
        return self.baseline_gib - self.model.weights_gib

    def tokens_at(self, fraction: float) -> float:
        """KV tokens at a fraction here."""
        budget = pool_budget_gib(self.after_weights_gib, self.baseline_gib, fraction)
        return max(budget, 0.0) * 2**30 / self.model.shape.cell_bytes(self.tp_size)

    def free_at(self, fraction: float) -> float:
        """Free memory at capture at a fraction here."""
        table = 0.0
        if self.context_len:
            running = self.original.max_running_requests
            table = request_table_gib(
                running, self.context_len, self.tokens_at(fraction), flag_typed=running is not None
            )
        return self.baseline_gib * (1 - fraction) - self.taken_gib - table

    def fraction_for(self, free_gib: float) -> float:
        """The fraction at which so much is free at capture here.

        Raises ScaleError where weights leave no pool at it.
        """
        fraction = 1 - (free_gib + self.taken_gib) / self.baseline_gib
        for _ in range(5):
            fraction += (self.free_at(fraction) - free_gib) / self.baseline_gib
        fraction = round(fraction, 4)
        if not 0 < fraction < 1 or self.tokens_at(fraction) < 1:
            raise ScaleError(
                f"with {free_gib:.1f} GiB free at capture nothing is left for a KV pool here:"
                f" weights take {self.model.weights_gib:.1f} of {self.baseline_gib:.1f} GiB"
            )
        return fraction

    def predicted(self, fraction: float) -> Figures:
        """What a trial at a fraction here should show."""
        return Figures(
            free_gib_at_capture=round(self.free_at(fraction), 2),
            kv_tokens=int(self.tokens_at(fraction)),
        )


def scaled(config: Mapping[str, Any], original: Original, here: Here) -> Scaled:
    """The smaller launch for a machine. Raises ScaleError, or ShapeError of the configuration."""
    figures = original.figures
    baseline, free = figures.baseline_gib, figures.free_gib_at_capture
    if baseline is None or free is None:
        raise ScaleError(
            "the log shows no free memory before weights and at capture: there is no geometry to"
            " keep"
        )
    if here.gpus < 1:
        raise ScaleError("no GPU is known here")
    fewer = range(min(original.tp_size, here.gpus), 0, -1)
    tp_size = next(size for size in fewer if original.tp_size % size == 0)
    baseline_here = here.free_gib - original.outside_gib
    ballast = max(baseline_here - baseline, 0.0)
    ballast = ballast if ballast > SAME_GIB else 0.0
    baseline_here -= ballast
    weights = _weights(config, original)
    model = smaller_model(
        config,
        tp_size=original.tp_size,
        to_tp_size=tp_size,
        ep_size=original.ep_size,
        pp_size=original.pp_size,
        weights_gib=weights,
        to_weights_gib=weights * min(baseline_here / baseline, 1.0),
    )
    context = figures.context_len or model.shape.context_len
    return Scaled(
        model,
        original,
        tp_size,
        baseline_here,
        ballast,
        _taken(original, context),
        context,
        _limits(model, original, tp_size, baseline, baseline_here, ballast),
    )


def _taken(original: Original, context_len: int) -> float:
    """What was taken between sizing and capture there, the request table left out."""
    there = situation(
        original.figures.model_copy(update={"context_len": context_len}),
        original.fraction,
        original.max_running_requests,
    )
    return there.taken.fixed_gib + there.taken.pool_excess_gib if there is not None else 0.0


def _weights(config: Mapping[str, Any], original: Original) -> float:
    """Weights of one rank: as logged, else by the shape."""
    figures = original.figures
    if figures.baseline_gib is not None and figures.after_weights_gib is not None:
        return figures.baseline_gib - figures.after_weights_gib
    ranks = original.tp_size * original.pp_size
    return ModelShape.of_config(config).weights_gib(ranks)


def _limits(
    model: SmallerModel,
    original: Original,
    tp_size: int,
    baseline: float,
    baseline_here: float,
    ballast: float,
) -> list[str]:
    """What such a trial can and cannot show."""
    said = [
        "Scaled down: it shows whether one rank's graphs fit in the memory that is free at"
        " capture, with this release's kernels and allocator; nothing of answers, speed, or"
        " loading real weights, for the weights are random. What it proves of the original's"
        " launch is that alone.",
    ]
    if model.said:
        said.append(f"The model is smaller: {', '.join(model.said)}.")
    if tp_size < original.tp_size:
        said.append(
            f"{tp_size} rank{'s' if tp_size > 1 else ''} instead of {original.tp_size}: buffers of"
            " collectives and of expert parallelism are smaller or missing, and graphs hold"
            " fewer of their kernels, so the original may need more (about 0.35 GiB more for"
            " tensor parallelism at all)."
        )
    if ballast:
        said.append(
            f"{ballast:.1f} GiB of every GPU are held by ballast, so that the server finds the"
            f" original's {baseline:.1f}."
        )
    elif baseline - baseline_here > SAME_GIB:
        said.append(
            f"The server finds {baseline_here:.1f} GiB here instead of {baseline:.1f}: fractions"
            " are others than the original's, free memory at capture is the same."
        )
    return said
