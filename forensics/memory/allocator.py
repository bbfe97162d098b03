"""The figures of an out-of-memory message, taken apart (memory model, section 5)."""

from __future__ import annotations

from dataclasses import dataclass

AGREEMENT_GIB = 0.02
"""In use, free and others must add up to the total within this."""


@dataclass(frozen=True, slots=True)
class AllocatorSplit:
    """Where the device's memory was when a request failed, GiB; None where not printed."""

    non_torch_gib: float | None
    """Own use outside PyTorch: context, NCCL, modules."""
    others_gib: float | None
    """Used by other processes."""
    cached_gib: float | None
    """Reserved by PyTorch but unallocated: fragments that did not serve the request."""


def allocator_split(
    total_gib: float | None,
    free_gib: float | None,
    in_use_gib: float | None,
    allocated_gib: float | None,
    cached_gib: float | None,
) -> AllocatorSplit:
    """Split a message's figures; a difference within the printed error counts as zero."""
    non_torch = others = None
    if in_use_gib is not None and allocated_gib is not None and cached_gib is not None:
        non_torch = max(in_use_gib - allocated_gib - cached_gib, 0.0)
    if total_gib is not None and free_gib is not None and in_use_gib is not None:
        rest = total_gib - free_gib - in_use_gib
        others = rest if abs(rest) > AGREEMENT_GIB else 0.0
    return AllocatorSplit(non_torch, others, cached_gib)
