"""Before capture: will it fit? Two precursors, at the begin line and on the progress bar."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from forensics.events import Event
from forensics.findings import Finding, Severity
from forensics.incident.ledgers import graph_kind
from forensics.memory import PREFILL_KINDS, Need, best_need, headroom, prior_need
from forensics.remedies import kept
from forensics.rules.base import Skip, rule
from forensics.rules.capture_facts import (
    capture_events,
    computed_need,
    earlier_need,
    pending,
    sizes_of,
)
from forensics.rules.case import Case
from forensics.rules.fractions import baseline_of, fraction_for_capture, lower_for_capture
from forensics.rules.thresholds import threshold


@rule(
    "graph-capture-headroom",
    playbook="graph-capture-oom",
    class_="graph_capture_oom",
    severity="warning",
    role="precursor",
    summary="Too little GPU memory is free when graph capture begins",
    needs="capture-begin lines with free memory (0.4.3 on)",
)
def graph_capture_headroom(case: Case) -> Iterator[Finding | Skip]:
    """Hold free memory at each capture begin against what the captures to come need."""
    begins = capture_events(case)
    if not begins:
        yield Skip("no capture line in this log")
        return
    for kind, events in begins.items():
        shown = [begin for event in events if (begin := _begin(case, event)) is not None]
        if not shown:
            yield Skip("neither capture begin nor the pool before it print free memory")
            continue
        if finding := _headroom(case, kind, shown):
            yield finding


@dataclass(frozen=True, slots=True)
class _Begin:
    """A rank's capture begin and the memory free then; `gap_gib` was taken off an older figure."""

    event: Event
    free_gib: float
    gap_gib: float = 0.0


_GAP_GIB = {"triton": 0.05, "flashinfer": 0.6}
"""From the end of the pools to capture begin, by attention backend (capture costs, 'Gaps')."""
_GAP_UNKNOWN_GIB = 0.42
_FACTOR = threshold(
    "capture_headroom_factor",
    1.0,
    "times the expected need",
    "Free memory below this at the begin of capture is flagged; more than 1 warns earlier",
    least=0.1,
    most=10.0,
)
_MARGIN_GIB = threshold(
    "capture_margin_gib", 0.1, "GiB", "Left above a computed need it takes for no warning"
)


def _begin(case: Case, event: Event) -> _Begin | None:
    """Free memory at a begin line; to 0.4.2 it prints none, then from the end of the pools."""
    if (free := event.number("avail_gib")) is not None:
        return _Begin(event, free)
    before = [
        pool
        for pool in case.run.of("memory_pool_end")
        if pool.rank == event.rank and pool.source == event.source and pool.line < event.line
    ]
    captured = any(e.rank == event.rank and e.line < event.line for e in case.run.of("capture_end"))
    if not before or captured or (free := before[-1].number("avail_gib")) is None:
        return None
    gap = _GAP_GIB.get(str(case.run.launch.get("attention_backend")), _GAP_UNKNOWN_GIB)
    return _Begin(event, max(free - gap, 0.01), gap)


def _headroom(case: Case, kind: str, begins: list[_Begin]) -> Finding | None:
    tightest = min(begin.free_gib for begin in begins)
    # The first rank that is as tight as the tightest: there it became knowable.
    begin = next(b for b in begins if b.free_gib <= tightest + 0.05)
    sizes = sizes_of(case, kind)
    to_come = pending(case, kind, sizes)
    computed = None
    if kind in ("decode", "verify"):
        computed = computed_need(case, sizes, "prefill" in capture_events(case))
    need = best_need(earlier_need(case, kind, to_come[0].largest), computed)
    if need is not None:
        severity: Severity | None = _severity(case, begin.free_gib, need)
    else:
        alarm = headroom(begin.free_gib / case.threshold(_FACTOR), to_come).alarm
        severity = alarm if alarm != "none" and alarm != "unusable" else None
        need = prior_need(to_come)
    if severity in (None, "info"):
        # Rare, but where capture has not passed yet it is worth saying; if it passes it is gone.
        if has_passed(case, kind) or not (severity or _flat(case, begin.free_gib)):
            return None
        severity = "warning"
    if need is None:
        return None
    ranks = len([b for b in begins if abs(b.free_gib - begin.free_gib) < 0.06])
    return _alarm(case, kind, begin, ranks, need, severity)


_LITTLE_GIB, _LITTLE_ON_BIG_GIB, _BIG_GIB = 1.0, 3.0, 75.0


def _flat(case: Case, free_gib: float) -> bool:
    """The flat thresholds, for launches that fit no cell well (memory model, 'Precursors')."""
    big = (baseline_of(case) or 0.0) >= _BIG_GIB
    return 0 < free_gib < (_LITTLE_ON_BIG_GIB if big else _LITTLE_GIB)


def _severity(case: Case, free_gib: float, need: Need) -> Severity | None:
    factor = case.threshold(_FACTOR)
    if free_gib < factor * need.low_gib:
        return "critical"
    if free_gib < factor * need.gib + case.threshold(_MARGIN_GIB):
        return "warning"
    return None


def _alarm(
    case: Case, kind: str, begin: _Begin, ranks: int, need: Need, severity: Severity
) -> Finding:
    event, free = begin.event, begin.free_gib
    on = f"on {ranks} ranks" if ranks > 1 else f"on {event.rank}" if event.rank else "on the GPU"
    spread = f"{need.low_gib:.2f} to {need.high_gib:.2f}" if need.high_gib else f"{need.gib:.2f}"
    passed = has_passed(case, kind)
    advice = None if passed else lower_for_capture(case, need, free)
    guessed = f" (the pool's figure less {begin.gap_gib:.2f})" if begin.gap_gib else ""
    return case.finding(
        "graph-capture-headroom",
        class_of_kind(kind),
        event,
        severity="info" if passed else severity,
        role="precursor",
        title=f"Only {free:.2f} GiB free {on} when {kind} graph capture begins: "
        + _verdict(severity, passed),
        explanation=f"Capture of the {kind} graphs needs about {need.gib:.2f} GiB "
        f"({spread}; basis: {_basis(need)}) and {free:.2f} GiB{guessed} are free {on}.",
        known_at=case.known(event),
        phase="graph_capture",
        rank=None if ranks > 1 else event.rank,
        confidence="high" if need.basis in ("observed", "computed") else "medium",
        remedies=kept(fraction_for_capture(case, advice, need)),
        facts={
            "free_gib": free,
            "need_gib": round(need.gib, 2),
            "need_low_gib": round(need.low_gib, 2),
            "need_high_gib": need.high_gib and round(need.high_gib, 2),
            "basis": need.basis,
            "graphs": kind,
            "ranks": ranks,
            "came_true": False if passed else None,
        },
        playbook="graph-capture-oom",
    )


def _verdict(severity: Severity, passed: bool) -> str:
    if passed:
        return "capture passed nevertheless" if severity != "info" else "capture passed"
    return "it usually fits" if severity == "info" else "this launch is likely to fail here"


def class_of_kind(kind: str) -> str:
    """The class of a failure in the capture of this kind of graphs."""
    return "piecewise_graph_oom" if kind in PREFILL_KINDS else "graph_capture_oom"


def _basis(need: Need) -> str:
    return f"{need.basis.replace('_', ' ')}; {need.note}" if need.note else need.basis


def has_passed(case: Case, kind: str) -> bool:
    """Whether this capture ended well on every rank that began it."""
    captures = [
        capture
        for ledger in case.run.ledgers()
        for capture in ledger.captures
        if capture.kind == kind
    ]
    ends = [e for e in case.run.of("capture_end") if graph_kind(e.string("what")) == kind]
    done = len(ends) >= len(captures) > 0
    return done or case.run.ready is not None


@rule(
    "capture-bar-falling",
    playbook="graph-capture-oom",
    class_="graph_capture_oom",
    severity="warning",
    role="precursor",
    summary="The progress bar of a capture falls faster than the memory will last",
    needs="progress bars with free memory (from 0.4.4)",
)
def capture_bar_falling(case: Case) -> Iterator[Finding | Skip]:
    """Each size of the bar costs memory: hold what is left against the last step and the sizes."""
    kind, bars, told = "decode", list[Event](), set[str]()
    for event in case.run.of("capture_begin", "capture_progress"):
        if event.kind == "capture_begin":
            kind, bars = graph_kind(event.string("what")), bars[:0]
            continue
        if event.number("avail_gib") is None or event.number("done") is None:
            continue
        kind = "piecewise" if event.string("what") == "num tokens" and kind == "decode" else kind
        if bars and (event.number("done") or 0) <= (bars[-1].number("done") or 0):
            bars = []
        bars.append(event)
        if kind not in told and (steps := _runs_out(bars)):
            told.add(kind)
            yield _falling(case, kind, bars, steps)


def _runs_out(bars: list[Event]) -> float | None:
    """The last step of a bar (GiB a size) that what is left cannot bear, else None.

    The first graph pays for most, so one step alone only tells whether another like it fits; from
    the second on half its slope is taken for the sizes that are left.
    """
    if len(bars) < 2:
        return None
    before, now = bars[-2], bars[-1]
    done = (now.number("done") or 0) - (before.number("done") or 0)
    left = (now.number("total") or 0) - (now.number("done") or 0)
    free = now.number("avail_gib") or 0.0
    step = ((before.number("avail_gib") or 0.0) - free) / max(done, 1)
    if left < 1 or step < 0.02 or free <= 0:
        return None
    projected = 0.5 * step * left if len(bars) > 2 else step
    return step if free < max(step, projected) else None


def _falling(case: Case, kind: str, bars: list[Event], step: float) -> Finding:
    now = bars[-1]
    free, passed = now.number("avail_gib") or 0.0, has_passed(case, kind)
    done, total = int(now.number("done") or 0), int(now.number("total") or 0)
    took = (bars[0].number("avail_gib") or 0.0) - free
    return case.finding(
        "capture-bar-falling",
        class_of_kind(kind),
        now,
        severity="info" if passed else "warning",
        role="precursor",
        title=f"{free:.2f} GiB left after {done} of {total} {kind} graph sizes: "
        + ("it sufficed" if passed else "it will not last"),
        explanation=f"{done} of {total} sizes took {took:.2f} GiB, the last ones {step:.2f} each, "
        f"and {free:.2f} GiB are left for {total - done} more.",
        evidence=case.evidence(*bars[-2:]),
        known_at=case.known(now),
        phase="graph_capture",
        confidence="medium",
        facts={
            "free_gib": free,
            "step_gib": round(step, 3),
            "sizes_left": total - done,
            "graphs": kind,
            "came_true": False if passed else None,
        },
        playbook="graph-capture-oom",
    )
