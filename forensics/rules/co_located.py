"""Signs of somebody else on the same GPU during loading, where no allocator message names them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from forensics.events import OTHER, Event
from forensics.rules.case import Case
from forensics.rules.model_size import estimated_weights_gib

_USES_GPU = re.compile(
    r"(?i)cuda:\d|\bgpu\b|kv cache|vram|loading .*model|model loaded|\d(?:\.\d+)? ?(?:GiB|GB|MiB)\b"
)
_PROCESS_LINE = re.compile(
    r"\bpid[=: ]+(?P<pid>\d+)\s+(?P<name>\S+)\s+(?P<mib>\d+) ?MiB"
    r"|^\|\s+\d+\s+\S+\s+\S+\s+(?P<pid2>\d+)\s+[CG+]+\s+(?P<name2>\S+)\s+(?P<mib2>\d+)MiB"
)
_OURS = re.compile(r"sglang|python|sgl_|torchrun")
_INFLATED = 1.3
"""Weights booked at this many times their due hold somebody else's memory too."""
_UNEVEN = 0.9


@dataclass(slots=True)
class CoLocated:
    """What speaks for another process: its lines, and how much of the weights is not weights."""

    evidence: list[Event] = field(default_factory=list)
    started_together: bool = False
    inflated_gib: float | None = None
    """Weights booked, less what they should take."""
    held_gib: float | None = None
    """What the other process held, where a line says so."""
    rank: str | None = None
    """The rank whose GPU it sits on, where ranks differ."""

    @property
    def likely(self) -> bool:
        """Whether the signs are enough to blame it."""
        return bool(self.evidence) and (self.inflated_gib is None or self.inflated_gib > 1.0)


def co_located(case: Case) -> CoLocated:
    """Lines of other services between begin and end of loading, and processes that are not ours."""
    found = CoLocated()
    begin, end = case.run.first("load_weight_begin"), case.run.first("load_weight_end")
    if begin is None or end is None:
        return found
    for event in case.run.events:
        if event.kind != OTHER:
            continue
        if event.node != begin.node and begin.line < event.line < end.line and _mentions(event):
            found.evidence.append(event)
            found.started_together = True
        elif (process := _PROCESS_LINE.search(event.text)) and not _OURS.search(
            process["name"] or process["name2"]
        ):
            found.evidence.append(event)
            found.held_gib = int(process["mib"] or process["mib2"]) / 1024
    booked, due = end.number("usage_gib"), due_weights(case)
    if booked is not None and due:
        found.inflated_gib = booked - due if booked > _INFLATED * due else 0.0
    return found


def _mentions(event: Event) -> bool:
    return bool(_USES_GPU.search(event.text))


def due_weights(case: Case) -> float | None:
    """What the weights take: as in another launch of the model, else by its name."""
    model = case.run.launch.get("model_path")
    for run in case.incident.runs:
        if run is not case.run and run.launch.get("model_path") == model:
            used = [u for ledger in run.ledgers() if (u := ledger.weights_gib) is not None]
            if used:
                return min(used)
    return estimated_weights_gib(case)


def uneven_baseline(case: Case) -> tuple[str, float, float] | None:
    """The rank that began loading with clearly less free memory than the others, if one did."""
    known = [(one.rank, one.baseline_gib) for one in case.run.ledgers() if one.baseline_gib]
    if len(known) < 2:
        return None
    known.sort(key=lambda item: item[1])
    (rank, least), most = known[0], known[-1][1]
    return (rank, least, most) if least < _UNEVEN * most and most - least > 1.0 else None
