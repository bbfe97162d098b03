"""Up to where a flag's value should hold, by the ledger that one trial measured.

Facts: memory model, sections 4 and 7: free memory at capture is C(f') = B (1 - f') - U with the
request table of f', and a capture's peak lies 0.1 to 0.2 GiB above what it keeps.
"""

from __future__ import annotations

from dataclasses import dataclass

from forensics.memory import Situation, minimum_fraction
from forensics.reproduce.figures import situation
from forensics.reproduce.model import Figures, SearchAsk

PEAK_GIB = 0.2
"""A peak above the lowest free memory that was printed (memory model, section 7, item 8)."""
BOUND_GIB = 0.15
"""Added to a need of which only a lower bound is known: one step of free memory."""
PREFILL_GIB = 4.0
"""With less free than this some releases capture no prefill graphs (memory model, section 7)."""
LOGITS_GIB = 0.3
"""Decode graphs need about so much more where prefill graphs did not come before."""
STEP_GIB = 0.125
"""Free memory moves in steps of about this, as pool tensors are rounded up."""

LOOSE_GIB = 2 * STEP_GIB
"""By so much a free figure and the next one may be off, at the most."""

FRACTION = "mem_fraction_static"
_TABLE = "max_running_requests"
_BATCH = ("cuda_graph_max_bs", "cuda_graph_max_bs_decode")


@dataclass(frozen=True, slots=True)
class Reading:
    """What one trial says of one value."""

    value: float
    holds: bool
    passed: bool
    """It came to its goal; with too little left over it does not hold all the same."""
    figures: Figures
    max_running_requests: int | None = None


@dataclass(frozen=True, slots=True)
class Boundary:
    """Where values cease to hold, as one trial has it."""

    careful: float
    """Should hold, peak and steps of free memory allowed for."""
    furthest: float
    """Beyond this none can hold."""


def boundaries(reading: Reading, ask: SearchAsk, *, upward: bool = True) -> list[Boundary]:
    """The boundary by a trial's own figures; none where they do not tell for this flag.

    Two where it captured prefill graphs that may be dropped nearer to the boundary: the one
    without them first.
    """
    if not upward:
        lowest = _lowest_fraction(reading) if ask.name == FRACTION else None
        return [] if lowest is None else [lowest]
    free, needs = reading.figures.free_gib_at_capture, _needs(reading, ask)
    if free is None or needs is None:
        return []
    if ask.name == FRACTION:
        here = situation(reading.figures, reading.value, reading.max_running_requests)
        without = _without_prefill(reading, ask)
        dropped = without is not None and without[0] < PREFILL_GIB
        cases = [without, needs] if without is not None and dropped else [needs]
        return [
            Boundary(_fraction_for(here, careful), _fraction_for(here, least - LOOSE_GIB))
            for careful, least in cases
            if here is not None
        ]
    careful, least = needs
    slope = _slope_gib(reading, ask, least)
    if slope is None:
        return []
    ends = (free - careful, free - least + LOOSE_GIB)
    return [Boundary(*(max(reading.value + end / slope, 0.0) for end in ends))]


def _needs(reading: Reading, ask: SearchAsk) -> tuple[float, float] | None:
    """What must be free when capture begins: to be careful, and at the very least."""
    figures, margin = reading.figures, ask.margin_gib
    need, begin = figures.capture_need_gib, figures.free_gib_at_capture
    left = figures.free_gib_after_capture
    if reading.passed and begin is not None and left is not None:
        kept = begin - left
        peak = max(need or 0.0, kept)
        asked = kept + margin + (STEP_GIB / 2 if margin else 0.0)
        return max(asked, peak + PEAK_GIB), max(kept + margin, peak)
    if need is None or need <= 0:
        return None
    return need + margin + BOUND_GIB, need + margin


def _without_prefill(reading: Reading, ask: SearchAsk) -> tuple[float, float] | None:
    """The same where prefill graphs were captured but would be dropped nearer to the boundary."""
    figures = reading.figures
    kept, prefill = figures.capture_gib, figures.prefill_graphs_gib
    if not reading.passed or kept is None or not prefill:
        return None
    decode = kept - prefill
    return decode + LOGITS_GIB + max(ask.margin_gib, PEAK_GIB), decode + ask.margin_gib


def _fraction_for(here: Situation, need_gib: float) -> float:
    """The fraction at which the predicted free memory at capture is what is needed."""
    fraction = here.fraction
    for _ in range(4):  # straight but for the request table, which hardly bends it
        scaled = here.free_scaled_at(fraction)
        free = here.free_at(fraction) if scaled is None else scaled
        fraction += (free - need_gib) / here.baseline_gib
    return min(max(fraction, 0.0), 0.999)


def _lowest_fraction(reading: Reading) -> Boundary | None:
    """Where the pool would be empty: 1 - min(A) / B."""
    after, baseline = reading.figures.after_weights_gib, reading.figures.baseline_gib
    if after is None or baseline is None:
        return None
    lowest = minimum_fraction(after, baseline)
    return Boundary(lowest + 0.01, lowest)


def _slope_gib(reading: Reading, ask: SearchAsk, need_gib: float) -> float | None:
    """Memory that one more of a whole number takes; None where it is not known."""
    if ask.name == _TABLE and reading.figures.context_len:
        return (reading.figures.context_len + 4) * 4 / 2**30
    if ask.name in _BATCH and reading.value > 0:
        return max(need_gib - ask.margin_gib, 0.01) / reading.value
    return None
