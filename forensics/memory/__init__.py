"""The arithmetic of GPU memory: the ledger, capture need and fractions. Pure, in GiB."""

from forensics.memory.advice import FractionAdvice, suggest_fraction, target_free_gib
from forensics.memory.allocator import AllocatorSplit, allocator_split
from forensics.memory.automatic import (
    Settings,
    automatic_fraction,
    default_chunk,
    default_max_bs,
    largest_batch,
    prefill_sizes,
)
from forensics.memory.ledger import Capture, ClosingCheck, Ledger
from forensics.memory.model_class import Weight, capture_class, has_experts, uses_mla
from forensics.memory.need import (
    DecodeShape,
    Need,
    best_need,
    decode_need,
    lower_bound,
    observed_need,
    prior_need,
    projected_need,
)
from forensics.memory.pool import (
    Unbudgeted,
    minimum_fraction,
    pool_budget_gib,
    pool_tokens,
    predict_free_at_capture,
    predict_free_scaled,
    request_table_gib,
    slack_gib,
    unbudgeted,
)
from forensics.memory.prior import PREFILL_KINDS, Cell, Headroom, Pending, headroom, prior_cell
from forensics.memory.raising import grow_fraction, lower_fraction, raise_fraction
from forensics.memory.situation import Requests, Situation, situation_of

__all__ = [
    "PREFILL_KINDS",
    "AllocatorSplit",
    "Capture",
    "Cell",
    "ClosingCheck",
    "DecodeShape",
    "FractionAdvice",
    "Headroom",
    "Ledger",
    "Need",
    "Pending",
    "Requests",
    "Settings",
    "Situation",
    "Unbudgeted",
    "Weight",
    "allocator_split",
    "automatic_fraction",
    "best_need",
    "capture_class",
    "decode_need",
    "default_chunk",
    "default_max_bs",
    "grow_fraction",
    "has_experts",
    "headroom",
    "largest_batch",
    "lower_bound",
    "lower_fraction",
    "minimum_fraction",
    "observed_need",
    "pool_budget_gib",
    "pool_tokens",
    "predict_free_at_capture",
    "predict_free_scaled",
    "prefill_sizes",
    "prior_cell",
    "prior_need",
    "projected_need",
    "raise_fraction",
    "request_table_gib",
    "situation_of",
    "slack_gib",
    "suggest_fraction",
    "target_free_gib",
    "unbudgeted",
    "uses_mla",
]
