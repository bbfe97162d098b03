"""Findings as a stream: each appears once, gets better, and can be withdrawn with a reason.

Every judging gives all findings anew, with numbers of its own. Here they keep their identity: a
finding is the same if run, rule, class and place are, else if run and rule are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from forensics.diagnosis import RunReport
from forensics.findings import Finding
from forensics.live.notices import FindingNotice, WithdrawnNotice

Change = FindingNotice | WithdrawnNotice
Key = tuple[object, ...]

_GRAVE = ("severity", "role", "class_", "confidence", "rank", "phase", "first", "remedies")
_WORDING = ("title", "explanation", "facts")
_WORDING_EVERY_S = 60.0
"""A finding of which only words and figures changed is told again no more often than this."""

_KEYS: tuple[Callable[[Finding], Key], ...] = (
    lambda finding: (finding.rule, finding.class_, finding.first.source, finding.first.line),
    lambda finding: (finding.rule, finding.class_, finding.rank),
    lambda finding: (finding.rule,),
)


@dataclass(slots=True)
class _Told:
    finding: Finding
    at: float


class FindingStream:
    """Turns the findings of one judging after the other into what changed."""

    def __init__(self) -> None:
        self._told: dict[int, list[_Told]] = {}
        self._count = 0

    def update(self, report: RunReport, now: float, *, settled: bool = True) -> list[Change]:
        """What changed in a run. The findings get the ids of the stream.

        Unless `settled`, the last lines tell of a failure that is still being written: then only
        precursors appear, and nothing is withdrawn.
        """
        number = report.run.number
        told = self._told.setdefault(number, [])
        pairs, rest = _match(told, report.findings)
        changes: list[Change] = []
        for old, new in pairs:
            new.id = old.finding.id
            if changed := _changed(old, new, now):
                old.finding, old.at = new, now
                changes.append(FindingNotice(number, new, changed))
        if settled:
            gone = [old for old in told if all(old is not kept for kept, _ in pairs)]
            for old in gone:
                told.remove(old)
                because = _reason(old.finding, rest, report)
                changes.append(WithdrawnNotice(number, old.finding, because))
        for new in rest:
            if settled or new.role == "precursor":
                self._count += 1
                new.id = f"r{number}-{self._count}-{new.rule}"
                told.append(_Told(new, now))
                changes.append(FindingNotice(number, new))
        return changes


def _match(
    told: Sequence[_Told], findings: Sequence[Finding]
) -> tuple[list[tuple[_Told, Finding]], list[Finding]]:
    """Pairs of what was told and what it is now, and the findings that are new."""
    pairs: list[tuple[_Told, Finding]] = []
    old, new = list(told), list(findings)
    for key in _KEYS:
        for finding in list(new):
            same = next((item for item in old if key(item.finding) == key(finding)), None)
            if same is not None:
                old.remove(same)
                new.remove(finding)
                pairs.append((same, finding))
    return pairs, new


def _changed(old: _Told, new: Finding, now: float) -> tuple[str, ...]:
    def differing(names: Sequence[str]) -> tuple[str, ...]:
        return tuple(name for name in names if getattr(old.finding, name) != getattr(new, name))

    grave = differing(_GRAVE)
    if grave or now - old.at >= _WORDING_EVERY_S:
        return (*grave, *differing(_WORDING))
    return ()


def _reason(old: Finding, new: Sequence[Finding], report: RunReport) -> str:
    same_place = [finding for finding in new if finding.first == old.first]
    if found := next(iter(same_place), None):
        return f"{found.rule} says more: {found.title}"
    root = report.root_cause
    if old.role == "root_cause" and root is not None:
        return f"the cause is {root.rule}: {root.title}"
    if report.run.ready is not None and old.phase != "serving":
        return "the launch became ready"
    return "the lines that followed do not bear it out"
