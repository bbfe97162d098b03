"""What another memory fraction would leave: the arithmetic of the remedies, asked step by step.

A view of its own only in that it asks for every fraction; each figure comes from
`forensics.memory`, with the situation and the need that the remedies start from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from forensics.incident import Incident, Run
from forensics.memory import (
    FractionAdvice,
    Need,
    Situation,
    best_need,
    observed_need,
    prior_need,
    target_free_gib,
)
from forensics.rules.capture import failed_capture
from forensics.rules.capture_facts import (
    capture_events,
    computed_need,
    earlier_need,
    pending,
    sizes_of,
)
from forensics.rules.case import Case
from forensics.rules.fractions import lower_for_capture
from forensics.rules.memory_facts import fraction_of, situation

Verdict = Literal["fits", "tight", "fails", "no pool", "unknown"]

LEAST, MOST = 0.01, 0.99

MEANING: dict[Verdict, str] = {
    "fits": "leaves capture its need and a reserve",
    "tight": "may pass; less than the reserve that is aimed at",
    "fails": "less than capture is known to need",
    "no pool": "the weights take it all: no KV pool is left",
    "unknown": "what capture needs is not known",
}


@dataclass(frozen=True, slots=True)
class Outlook:
    """What one fraction would give."""

    fraction: float
    free_gib: float
    """Free when capture begins: the plain, conservative formula."""
    scaled_gib: float | None
    """The same with a pool that exceeds its budget in proportion."""
    kv_tokens: int | None
    kv_change: int | None
    verdict: Verdict
    largest_batch: int | None = None
    """The largest batch whose graphs would fit, where the need can be computed for each."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What is known of a run's memory up to capture, ready to be asked."""

    here: Situation | None
    need: Need | None
    kind: str
    """The kind of graphs that the need is of."""
    advice: FractionAdvice | None
    missing: tuple[str, ...]
    """Lines that the log lacks, and what they would tell."""
    needs: tuple[tuple[int, float], ...] = ()
    """Need by largest batch, smallest first, where it can be computed."""

    def at(self, fraction: float) -> Outlook | None:
        """What a fraction would give; None where too little is known."""
        here = self.here
        if here is None:
            return None
        free = here.free_at(fraction)
        tokens = here.tokens_at(fraction)
        change = None if tokens is None or here.kv_tokens is None else int(tokens) - here.kv_tokens
        fitting = [batch for batch, need in self.needs if need <= free]
        return Outlook(
            fraction,
            free,
            here.free_scaled_at(fraction),
            None if tokens is None else int(tokens),
            change,
            self._verdict(here, free, tokens),
            max(fitting, default=0) if self.needs else None,
        )

    def _verdict(self, here: Situation, free: float, tokens: float | None) -> Verdict:
        if tokens is not None and tokens <= 0:
            return "no pool"
        if self.need is None:
            return "unknown"
        if free < self.need.low_gib:
            return "fails"
        return "fits" if free >= target_free_gib(self.need, here) else "tight"


def what_if(run: Run, incident: Incident) -> WhatIf:
    """Gather what is known of a run."""
    case = Case(run, incident)
    failed = failed_capture(case)
    kind, need, begin = failed or (*_expected(case), None)
    here = situation(case)
    if here is not None and begin is not None:
        here = replace(here, capture_begin_gib=min(begin, here.capture_begin_gib))
    advice = lower_for_capture(case, need, begin) if need is not None else None
    return WhatIf(here, need, kind, advice, tuple(_missing(run)), tuple(_by_batch(case)))


def _expected(case: Case) -> tuple[str, Need | None]:
    """What capture needed, where it passed, else what is expected of it."""
    passed = [found for ledger in case.run.ledgers() if (found := observed_need(ledger.captures))]
    if passed:
        return "all", max(passed, key=lambda need: need.gib)
    kind = next(iter(capture_events(case)), "decode")
    to_come = pending(case, kind, sizes_of(case, kind))
    computed = computed_need(case, sizes_of(case, kind), prefill_before=False)
    known = best_need(earlier_need(case, kind, to_come[0].largest), computed)
    return kind, known or prior_need(to_come)


def _by_batch(case: Case) -> list[tuple[int, float]]:
    sizes = sorted(sizes_of(case, "decode"))
    before = "prefill" in capture_events(case)
    found = []
    for batch in sizes:
        need = computed_need(case, [size for size in sizes if size <= batch], before)
        if need is None:
            return []
        found.append((batch, need.gib))
    return found


def _missing(run: Run) -> list[str]:
    """The lines that would tell what is not known."""
    ledgers = run.ledgers()
    lines = []
    if fraction_of(run) is None:
        lines.append("`server_args=`: the fraction of this launch")
    wanted = (
        ("`Load weight begin ... avail mem`: free before weights", "baseline_gib"),
        ("`Load weight end ... avail mem`: free after weights", "after_weights_gib"),
        ("`KV Cache is allocated ... #tokens`: size of the pool", "kv_tokens"),
        ("`Capture ... begin ... avail mem`: free at capture", "capture_begin_gib"),
    )
    for line, name in wanted:
        if all(getattr(ledger, name) is None for ledger in ledgers):
            lines.append(line)
    return lines


def stepped(fraction: float, by: float) -> float:
    """Another fraction, on the grid of the step, within what makes sense."""
    return min(max(round(fraction + by, 3), LEAST), MOST)
