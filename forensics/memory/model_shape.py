"""A model's shape as its `config.json` has it, and the weights that follow from it.

Parameters are counted from the matrices that every model of the kind has; norms, biases and
scales are left out (well under 1 %). Sizes GiB.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

DTYPE_BYTES = {"bfloat16": 2.0, "float16": 2.0, "float32": 4.0, "float8_e4m3fn": 1.0}


class ShapeError(Exception):
    """A configuration does not say enough; the text is one line for the user."""


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What of a decoder-only model memory depends on."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    context_len: int
    experts: int = 0
    """Routed experts a layer; 0: a dense model."""
    experts_per_token: int = 0
    expert_ffn: int = 0
    shared_experts: int = 0
    dense_layers: int = 0
    """Leading layers without experts."""
    kv_lora_rank: int | None = None
    """Set: multi-head latent attention."""
    q_lora_rank: int | None = None
    rope_dim: int = 0
    """Of latent attention: the part of each head that carries positions."""
    value_head_dim: int | None = None
    tied: bool = False
    """Input embedding and output head are one matrix."""
    bytes_per_weight: float = 2.0

    @classmethod
    def of_config(cls, config: Mapping[str, Any]) -> ModelShape:
        """From a `config.json`; of a multimodal model its text part.

        Raises ShapeError where a needed number is missing or no positive whole number.
        """
        inner = config.get("text_config")
        text: Mapping[str, Any] = inner if isinstance(inner, Mapping) else config
        hidden, heads = _needed(text, "hidden_size"), _needed(text, "num_attention_heads")
        experts = _first(text, "num_experts", "n_routed_experts", "num_local_experts") or 0
        ffn = _first(text, "intermediate_size") or 0
        quantised = config.get("quantization_config")
        dtype = text.get("torch_dtype") or text.get("dtype") or config.get("torch_dtype")
        nope, rope = _first(text, "qk_nope_head_dim"), _first(text, "qk_rope_head_dim") or 0
        return cls(
            hidden=hidden,
            layers=_needed(text, "num_hidden_layers"),
            heads=heads,
            kv_heads=_first(text, "num_key_value_heads") or heads,
            head_dim=(nope + rope) if nope else _first(text, "head_dim") or hidden // heads,
            ffn=ffn,
            vocab=_needed(text, "vocab_size"),
            context_len=_needed(text, "max_position_embeddings"),
            experts=experts,
            experts_per_token=_first(text, "num_experts_per_tok") or (1 if experts else 0),
            expert_ffn=(_first(text, "moe_intermediate_size") or ffn) if experts else 0,
            shared_experts=_first(text, "n_shared_experts", "num_shared_experts") or 0,
            dense_layers=_first(text, "first_k_dense_replace") or 0 if experts else 0,
            kv_lora_rank=_first(text, "kv_lora_rank"),
            q_lora_rank=_first(text, "q_lora_rank"),
            rope_dim=rope,
            value_head_dim=_first(text, "v_head_dim"),
            tied=bool(text.get("tie_word_embeddings", config.get("tie_word_embeddings", False))),
            bytes_per_weight=_bytes(quantised, dtype),
        )

    @property
    def value_dim(self) -> int:
        """What one head's output holds while decoding: the latent, where attention is latent."""
        return self.kv_lora_rank or self.head_dim

    @property
    def attention_parameters(self) -> int:
        """Of one layer."""
        wide, hidden = self.heads * self.head_dim, self.hidden
        if self.kv_lora_rank is None:
            return hidden * (2 * wide + 2 * self.kv_heads * self.head_dim)
        value = self.value_head_dim or self.head_dim
        nope = self.head_dim - self.rope_dim
        query = (
            hidden * wide
            if self.q_lora_rank is None
            else hidden * self.q_lora_rank + self.q_lora_rank * wide
        )
        latent = hidden * (self.kv_lora_rank + self.rope_dim)
        return (
            query
            + latent
            + self.kv_lora_rank * self.heads * (nope + value)
            + self.heads * value * hidden
        )

    @property
    def expert_parameters(self) -> int:
        """Of one routed expert in one layer."""
        return 3 * self.hidden * self.expert_ffn

    @property
    def layer_parameters(self) -> int:
        """Of one layer with experts, or of one dense layer."""
        if not self.experts:
            return self.attention_parameters + 3 * self.hidden * self.ffn
        routed = (self.experts + self.shared_experts) * self.expert_parameters
        return self.attention_parameters + routed + self.hidden * self.experts

    @property
    def embedding_parameters(self) -> int:
        """Input embedding and output head."""
        return self.hidden * self.vocab * (1 if self.tied else 2)

    @property
    def parameters(self) -> int:
        """Of the whole model, norms left out."""
        dense = self.attention_parameters + 3 * self.hidden * self.ffn
        expert_layers = self.layers - self.dense_layers
        return (
            self.embedding_parameters
            + self.dense_layers * dense
            + expert_layers * self.layer_parameters
        )

    def weights_gib(self, tp_size: int = 1) -> float:
        """Weights a rank holds when all matrices are split over `tp_size` ranks.

        Embeddings keep two bytes a weight when the rest is quantised.
        """
        rest = self.parameters - self.embedding_parameters
        kept = self.embedding_parameters * max(self.bytes_per_weight, 2.0)
        return (rest * self.bytes_per_weight + kept) / tp_size / 2**30

    def cell_bytes(self, tp_size: int = 1, element_bytes: float = 2.0) -> float:
        """KV bytes of one token on one rank (memory model, section 2)."""
        if self.kv_lora_rank is not None:
            return (self.kv_lora_rank + self.rope_dim) * self.layers * element_bytes
        heads = max(self.kv_heads // tp_size, 1)
        return 2 * heads * self.head_dim * self.layers * element_bytes


def _bytes(quantised: object, dtype: object) -> float:
    """Bytes of one weight: by the quantisation's name or bits, else by the type."""
    if isinstance(quantised, Mapping):
        bits = quantised.get("bits") or quantised.get("w_bit")
        if isinstance(bits, int) and 0 < bits <= 32:
            return bits / 8
        method = f"{quantised.get('quant_method', '')} {quantised.get('quant_algo', '')}".lower()
        if any(word in method for word in ("fp4", "int4", "awq", "gptq", "mxfp4")):
            return 0.5625  # four bits and an 8-bit scale for each group of 16
        if any(word in method for word in ("fp8", "int8", "w8a8")):
            return 1.0
    return DTYPE_BYTES.get(str(dtype).removeprefix("torch."), 2.0)


def _first(config: Mapping[str, Any], *names: str) -> int | None:
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**12:
            return value
    return None


def _needed(config: Mapping[str, Any], name: str) -> int:
    value = _first(config, name)
    if value is None:
        raise ShapeError(f"the model's configuration has no usable {name}")
    return value
