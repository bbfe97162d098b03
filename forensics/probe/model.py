"""What a probe tries and what it found; printed by `forensics probe --format json`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from forensics.findings import Model

SCHEMA_VERSION = 1


class ProbeError(Exception):
    """A probe that cannot run; the text is one line for the user."""


class Geometry(Model):
    """One rank's share of a launch, as far as capture depends on it."""

    layers: int
    hidden: int
    heads: int
    """On this rank, as all that is split over ranks."""
    kv_heads: int
    head_dim: int
    value_dim: int
    """Of one head's result while decoding: head dimension, or the latent's rank."""
    ffn: int
    """Width of the feed-forward layer that one token goes through."""
    vocab: int
    context_len: int
    batch_sizes: list[int]
    """Captured, in any order."""
    backend: str | None = None
    """Attention backend, for its buffers."""
    latent_attention: bool = False
    experts: bool = False
    tp_size: int = 1
    kv_splits: int = 8
    weights_gib: float = 0.0
    kv_pool_gib: float = 0.0
    other_gib: float = 0.0
    """Taken beside weights and pool before capture; what else has to go where
    `free_gib_at_capture` is asked for."""
    free_gib_at_capture: float | None = None
    """Free memory that capture is to begin with; None: what is left."""


class Foretold(Model):
    """What the memory model says before anything runs, GiB."""

    free_gib_at_capture: float | None = None
    basis: str
    """Where that figure is from."""
    capture_gib: float | None = None
    """What capture keeps; None for a backend whose buffers were never measured."""
    capture_need_gib: float | None = None
    """Its peak."""
    parts: dict[str, float] = Field(default_factory=dict)


class Reading(Model):
    """Free memory before a batch size was captured."""

    batch: int
    free_gib: float


class Refusal(Model):
    """The request that was refused."""

    batch: int | None = None
    """Batch size at work; None: the buffers before the first."""
    requested_gib: float | None = None
    free_gib: float | None = None
    text: str


class Measured(Model):
    """What was read on the GPU, GiB."""

    baseline_gib: float
    """Free before anything was allocated."""
    free_gib_at_capture: float
    buffers_gib: float | None = None
    """Made before the first graph: allocated by formula, so no measurement."""
    first_graph_gib: float | None = None
    other_graphs_gib: float | None = None
    capture_gib: float | None = None
    """What all of it kept; None where it failed."""
    capture_need_gib: float
    """The most it held at once; of a capture that failed at least that."""
    free_gib_after_capture: float | None = None
    readings: list[Reading] = Field(default_factory=list)


class ProbeReport(Model):
    """`forensics probe --format json`."""

    schema_version: Literal[1] = 1
    outcome: Literal["captured", "out-of-memory", "planned"]
    gpu: str | None = None
    total_gib: float | None = None
    torch: str | None = None
    geometry: Geometry
    foretold: Foretold
    measured: Measured | None = None
    refusal: Refusal | None = None
    elapsed_s: float | None = None
    notes: list[str] = Field(default_factory=list)
    """What was assumed, and what such a probe cannot show; a sentence each."""
