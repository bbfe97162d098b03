"""The probe: allocate what a launch allocates, capture its graphs, read what is left.

It sees the GPU through `Card`, so the order of things needs no GPU to be tested.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Protocol

from forensics.probe.geometry import Target, need_of
from forensics.probe.model import Geometry, Measured, ProbeError, ProbeReport, Reading, Refusal

MOST_PIECES = 1024
"""A pool is allocated in two tensors a layer, as the server does, up to so many."""


class OutOfMemory(Exception):
    """The GPU refused an allocation; the text is the allocator's."""

    def __init__(
        self, text: str, requested_gib: float | None = None, free_gib: float | None = None
    ) -> None:
        super().__init__(text)
        self.requested_gib, self.free_gib = requested_gib, free_gib


class Card(Protocol):
    """The GPU, as far as a probe uses it. Every allocation may raise OutOfMemory."""

    name: str
    total_gib: float
    torch: str

    def free_gib(self, *, emptied: bool = True) -> float:
        """Free memory by the driver; by default after unused cache was given back."""

    def hold(self, gib: float, pieces: int = 1) -> None:
        """Allocate plain memory and keep it."""

    def stand_in(self, geometry: Geometry) -> float:
        """Make the stand-in and run it once, so that libraries are loaded; GiB it took."""

    def buffers(self, attention_gib: float) -> None:
        """Allocate the attention backend's buffers and those for logits."""

    def capture(self, batch: int) -> None:
        """Run one batch size twice and capture its graph, which is kept."""


@dataclass(slots=True)
class _Course:
    """What was read so far."""

    baseline_gib: float
    begin_gib: float = 0.0
    readings: list[Reading] = field(default_factory=list)
    refusal: Refusal | None = None
    end_gib: float | None = None


def probe(target: Target, card: Card) -> ProbeReport:
    """Try a target on a card.

    Raises ProbeError where the card has too little free memory for what comes before capture.
    """
    began = time.monotonic()
    geometry = target.geometry
    course = _Course(card.free_gib())
    notes = [*target.notes, *_static(geometry, card, course)]
    course.begin_gib = card.free_gib()
    _capture(geometry, card, course)
    return ProbeReport(
        outcome="out-of-memory" if course.refusal else "captured",
        gpu=card.name,
        total_gib=round(card.total_gib, 2),
        torch=card.torch,
        geometry=geometry,
        foretold=target.foretold,
        measured=_measured(course),
        refusal=course.refusal,
        elapsed_s=round(time.monotonic() - began, 1),
        notes=notes,
    )


def _static(geometry: Geometry, card: Card, course: _Course) -> list[str]:
    """Weights, pool and the rest; notes on what had to differ from the launch."""
    notes = []
    weights, pool = geometry.weights_gib, geometry.kv_pool_gib
    wanted = geometry.free_gib_at_capture
    room = course.baseline_gib - (wanted if wanted is not None else 0.0) - geometry.other_gib
    if wanted is not None and weights + pool > room:
        pool = max(room - weights, 0.0)
        weights = min(weights, max(room, 0.0))
        notes.append(
            f"Only {course.baseline_gib:.2f} GiB are free here: weights and pool are"
            f" {weights + pool:.2f} GiB instead of"
            f" {geometry.weights_gib + geometry.kv_pool_gib:.2f}, so that as much is free at"
            " capture."
        )
    try:
        taken = card.stand_in(geometry)
        card.hold(max(weights - taken, 0.0))
        card.hold(pool, pieces=min(2 * geometry.layers, MOST_PIECES))
        card.hold(geometry.other_gib)
        spare = 0.0 if wanted is None else card.free_gib() - wanted
        card.hold(max(spare, 0.0))
    except OutOfMemory as refused:
        raise ProbeError(
            f"what comes before capture does not fit in the {course.baseline_gib:.2f} GiB that are"
            f" free on this GPU: {refused}"
        ) from None
    if spare < -0.05:
        notes.append(f"{-spare:.2f} GiB less than asked for are free at capture here.")
    return notes


def _capture(geometry: Geometry, card: Card, course: _Course) -> None:
    need = need_of(geometry)
    attention = need.parts["buffers"] if need else 0.0
    batch: int | None = None
    try:
        card.buffers(attention)
        for batch in sorted(geometry.batch_sizes, reverse=True):
            free = round(card.free_gib(emptied=False), 3)
            course.readings.append(Reading(batch=batch, free_gib=free))
            card.capture(batch)
        course.end_gib = card.free_gib()
    except OutOfMemory as refused:
        course.refusal = Refusal(
            batch=batch,
            requested_gib=refused.requested_gib,
            free_gib=refused.free_gib,
            text=str(refused),
        )


def _measured(course: _Course) -> Measured:
    begin, frees = course.begin_gib, [reading.free_gib for reading in course.readings]
    ends = [*frees, course.end_gib] if course.end_gib is not None else frees
    need = begin - min(ends, default=begin)
    if (refused := course.refusal) is not None:
        asked = (refused.requested_gib or 0.0) - (refused.free_gib or 0.0)
        need = max(need, begin + asked)
    return Measured(
        baseline_gib=round(course.baseline_gib, 2),
        free_gib_at_capture=round(begin, 3),
        buffers_gib=round(begin - frees[0], 3) if frees else None,
        first_graph_gib=round(ends[0] - ends[1], 3) if len(ends) > 1 else None,
        other_graphs_gib=round(ends[1] - ends[-1], 3) if course.end_gib is not None else None,
        capture_gib=None if course.end_gib is None else round(begin - course.end_gib, 3),
        capture_need_gib=round(need, 3),
        free_gib_after_capture=None if course.end_gib is None else round(course.end_gib, 3),
        readings=course.readings,
    )
