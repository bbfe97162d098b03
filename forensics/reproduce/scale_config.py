"""A smaller model with the memory geometry that one rank of a larger launch had.

What is split over ranks (heads, feed-forward width, experts) shrinks with the number of ranks, so
that a rank holds the same matrices; where the card is smaller, layers go until weights have the
share of the card that they had. Widths that no rank splits (hidden size, vocabulary, context) stay:
capture's buffers depend on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from forensics.memory.model_shape import ModelShape, ShapeError

BLOCK = 128
"""Widths stay multiples of this: block scales and tiles need it."""
LEAST_LAYERS = 2


@dataclass(frozen=True, slots=True)
class SmallerModel:
    """A configuration and what it weighs on one rank."""

    config: dict[str, Any]
    shape: ModelShape
    weights_gib: float
    said: list[str] = field(default_factory=list)
    """What was made smaller, a phrase each."""


def smaller_model(
    config: Mapping[str, Any],
    *,
    tp_size: int,
    to_tp_size: int,
    ep_size: int = 1,
    pp_size: int = 1,
    weights_gib: float,
    to_weights_gib: float,
) -> SmallerModel:
    """The configuration whose rank at `to_tp_size` is like a rank of the original at `tp_size`.

    `weights_gib` is what a rank of the original held; the new one comes as near to
    `to_weights_gib` as whole layers allow. Raises ShapeError where that is not possible.
    """
    made = dict(config)
    inner = made.get("text_config")
    text = dict(inner) if isinstance(inner, Mapping) else made
    said = _split(text, ModelShape.of_config(config), tp_size, to_tp_size, ep_size)
    layers = -(-ModelShape.of_config(config).layers // pp_size)
    if pp_size > 1:
        said.append(f"{layers} layers, the share of one pipeline stage")
    _set_layers(text, layers)
    if text is not made:
        made["text_config"] = text
    full = ModelShape.of_config(made)
    # What the shape does not count (scales, norms, biases) is in the log's figure; keep its share.
    uncounted = weights_gib / max(ModelShape.of_config(config).weights_gib(tp_size * pp_size), 1e-6)
    fits = _layers_for(full, to_tp_size, to_weights_gib / uncounted)
    if fits < layers:
        _set_layers(text, fits)
        said.append(f"{fits} layers instead of {layers}")
    shape = ModelShape.of_config(made)
    return SmallerModel(made, shape, shape.weights_gib(to_tp_size) * uncounted, said)


def _split(
    text: dict[str, Any], shape: ModelShape, tp_size: int, to_tp_size: int, ep_size: int
) -> list[str]:
    """Shrink what is split over ranks; in place. Says what."""
    if to_tp_size >= tp_size:
        return []
    heads = max(shape.heads // tp_size, 1) * to_tp_size
    kv_heads = max(shape.kv_heads // tp_size, 1) * to_tp_size
    text["num_attention_heads"] = heads
    said = [f"{heads} heads instead of {shape.heads}"]
    if shape.kv_lora_rank is None:
        text["num_key_value_heads"] = kv_heads
        text["head_dim"] = shape.head_dim  # else it would be read off hidden size and heads
    elif "num_key_value_heads" in text:
        text["num_key_value_heads"] = heads
    if shape.ffn:
        text["intermediate_size"] = _width(shape.ffn, tp_size, to_tp_size)
        said.append(f"feed-forward {text['intermediate_size']} instead of {shape.ffn}")
    if shape.experts:
        said.append(_fewer_experts(text, shape, tp_size, to_tp_size, ep_size))
    return said


def _fewer_experts(
    text: dict[str, Any], shape: ModelShape, tp_size: int, to_tp_size: int, ep_size: int
) -> str:
    """Experts that ranks share out become fewer; those that all ranks split become narrower."""
    if ep_size > 1:
        groups = text.get("n_group") if isinstance(text.get("n_group"), int) else 1
        wanted = shape.experts * to_tp_size // tp_size
        fewer = max(wanted // (groups or 1) * (groups or 1), shape.experts_per_token, 1)
        for name in ("num_experts", "n_routed_experts", "num_local_experts"):
            if name in text:
                text[name] = fewer
        return f"{fewer} experts instead of {shape.experts}"
    narrower = _width(shape.expert_ffn, tp_size, to_tp_size)
    name = "moe_intermediate_size" if "moe_intermediate_size" in text else "intermediate_size"
    text[name] = narrower
    return f"experts of width {narrower} instead of {shape.expert_ffn}"


def _width(width: int, tp_size: int, to_tp_size: int) -> int:
    share = width * to_tp_size / tp_size
    return max(round(share / BLOCK) * BLOCK, BLOCK)


def _set_layers(text: dict[str, Any], layers: int) -> None:
    """Set the number of layers, and shorten the lists that name each."""
    before = text.get("num_hidden_layers")
    text["num_hidden_layers"] = layers
    for name, value in text.items():
        if isinstance(value, list) and len(value) == before and name != "architectures":
            text[name] = value[:layers]


def _layers_for(shape: ModelShape, tp_size: int, weights_gib: float) -> int:
    """Layers whose weights come to so many GiB; raises ShapeError if not even the least do."""
    fixed = shape.embedding_parameters * max(shape.bytes_per_weight, 2.0) / tp_size / 2**30
    dense = shape.attention_parameters + 3 * shape.hidden * shape.ffn
    before = fixed + shape.dense_layers * dense * shape.bytes_per_weight / tp_size / 2**30
    each = shape.layer_parameters * shape.bytes_per_weight / tp_size / 2**30
    layers = shape.dense_layers + round((weights_gib - before) / each)
    least = max(LEAST_LAYERS, shape.dense_layers + 1 if shape.experts else LEAST_LAYERS)
    if layers < least and shape.layers > least and before + each > 2 * weights_gib:
        raise ShapeError(
            f"the embeddings alone take {fixed:.1f} GiB here: no smaller model of this kind has"
            f" {weights_gib:.1f} GiB of weights"
        )
    return min(max(layers, least), shape.layers)
