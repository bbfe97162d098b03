"""Rules that are data: this message means that (format: `forensics.rules.signature_data`).

A signature looks at failures (an exception of a process) or at records, by grammar kind and,
where a kind is wider than the meaning, by exception class, message, frames, phase and flags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from forensics.events import Event, Frame, Raised
from forensics.findings import Finding
from forensics.incident import Failure
from forensics.rules.base import Rule, Skip, add_rule
from forensics.rules.case import Case
from forensics.rules.complaints import complaints
from forensics.rules.pins import maybe_below
from forensics.rules.signature_data import WEIGHTS, Signature, load_signatures
from forensics.rules.signature_remedies import Words, any_matches, flags_match, pins, remedies_of

_LONG = 1_000
_ENDLESS = re.compile(r"(\S{300})\S{300,}")
"""A word of no language: patterns that begin with a name would try each of its characters."""


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


def _search(pattern: str, text: str) -> re.Match[str] | None:
    return _pattern(pattern).search(bounded(text) if len(text) > _LONG else text)


@lru_cache(maxsize=8)
def bounded(text: str) -> str:
    """The text with endless words cut, the rest as it is."""
    return _ENDLESS.sub(r"\1", text)


@dataclass(frozen=True, slots=True)
class _Hit:
    """Where a signature fits, and the fields for its texts."""

    event: Event
    failure: Failure | None
    words: Words


@dataclass(frozen=True, slots=True)
class SignatureRule:
    """A signature as a check."""

    signature: Signature

    def __call__(self, case: Case) -> Iterator[Finding | Skip]:
        """The first failure or record that the signature fits, unless a narrower one fits it."""
        hit = _best_hits(case).get(self.signature.id)
        if hit is not None:
            hit.words.update(pins(case))
            yield self._finding(case, hit)

    def applies(self, case: Case) -> bool:
        """Whether the launch and the run are such that the signature can mean what it says."""
        mine, launch = self.signature, case.run.launch
        if not flags_match(launch, mine.flags) or any_matches(launch, mine.unless_flags):
            return False
        if any(case.run.counts[kind] for kind in mine.unless_kinds):
            return False
        return mine.below is None or maybe_below(launch, mine.below)

    @property
    def weight(self) -> int:
        """How strongly it explains a failure."""
        return WEIGHTS[self.signature.weight] + self.signature.more

    def hit(self, case: Case) -> _Hit | None:
        """The first failure or record that the signature fits."""
        mine = self.signature
        if mine.look_at != "event":
            for failure in case.run.failures:
                if (words := self._fits(failure)) is not None:
                    return _Hit(failure.event, failure, words)
        if mine.look_at == "failure" or mine.inner:
            return None
        return self._record(case) if mine.look_at == "event" else self._complaint(case)

    def _record(self, case: Case) -> _Hit | None:
        for event in case.run.events:
            if self.signature.phases and event.phase not in self.signature.phases:
                continue
            if (words := self._says(event.kind, "", event.text, event.fields)) is not None:
                return _Hit(event, None, words)
        return None

    def _complaint(self, case: Case) -> _Hit | None:
        """The first complaint of a failed run that the signature fits."""
        mine = self.signature
        if case.run.outcome not in ("failed", "hung"):
            return None
        for complaint in complaints(case):
            event, failure = complaint.event, complaint.failure
            if mine.phases and event.phase not in mine.phases:
                continue
            if mine.frames and not (failure and _stands_in(mine.frames, _frames(failure))):
                continue
            if (words := self._says(event.kind, "", event.text, event.fields)) is not None:
                return _Hit(complaint.first, failure, words)
        return None

    def _fits(self, failure: Failure) -> Words | None:
        """The words of the exception (or the record) of a failure that the signature fits."""
        mine = self.signature
        if mine.phases and failure.phase not in mine.phases:
            return None
        if mine.frames and not _stands_in(mine.frames, _frames(failure)):
            return None
        chain = failure.traceback.chain if failure.traceback else []
        for raised in chain:
            if mine.inner and not _stands_in(mine.inner, raised.frames[-3:], code=True):
                continue
            if (words := self._raised(raised)) is not None:
                return words
        if mine.inner or mine.exception:
            return None
        event = failure.event
        return self._says(event.kind, "", event.text, event.fields)

    def _raised(self, raised: Raised) -> Words | None:
        return self._says(raised.kind, raised.name, raised.message, raised.fields)

    def _says(self, kind: str, name: str, said: str, fields: Mapping[str, Any]) -> Words | None:
        mine = self.signature
        if mine.kinds and kind not in mine.kinds:
            return None
        if mine.exception and not _search(mine.exception, name):
            return None
        if mine.unless and _search(mine.unless, said):
            return None
        words = Words(fields)
        words["message"] = next((line for line in said.split("\n") if line.strip()), "")[:200]
        if mine.message:
            found = _search(mine.message, said)
            if found is None:
                return None
            words |= {key: text for key, text in found.groupdict().items() if text is not None}
        return words

    def _opening(self, case: Case, event: Event) -> Event | None:
        """The record before an event at which the failure began."""
        if not (opens := self.signature.opens):
            return None
        return next((e for e in case.before(event) if _search(opens, e.text)), None)

    def _finding(self, case: Case, hit: _Hit) -> Finding:
        mine, failure, event = self.signature, hit.failure, hit.event
        rank = failure.rank if failure else event.rank
        hit.words.setdefault("rank", rank or "a process")
        evidence = case.failure_evidence(failure) if failure else case.evidence(event)
        opening = self._opening(case, event)
        return case.finding(
            mine.id,
            mine.class_,
            event,
            severity=mine.severity,
            role=mine.role,
            title=mine.title.format_map(hit.words),
            explanation=mine.explanation.format_map(hit.words),
            evidence=[*case.evidence(opening), *evidence],
            first=case.place(opening or event),
            remedies=remedies_of(case.run.launch, mine.remedy, hit.words),
            not_helpful=mine.not_helpful,
            rank=rank,
            phase=mine.phase or (failure.phase if failure else event.phase),
            confidence=mine.confidence,
            weight=self.weight if mine.role == "root_cause" else 0,
            playbook=mine.playbook or mine.id,
            facts=dict(mine.facts),
        )


def _best_hits(case: Case) -> dict[str, _Hit]:
    """Signature to its hit; of root causes that read the same record, the narrowest alone."""
    if "signatures" in case.memo:
        found: dict[str, _Hit] = case.memo["signatures"]
        return found
    found = {}
    owners: dict[tuple[int, int], SignatureRule] = {}
    for check in sorted(_CHECKS, key=lambda check: -check.weight):
        if not check.applies(case) or (hit := check.hit(case)) is None:
            continue
        owner = _owner(hit)
        place = (owner.source, owner.line)
        if check.signature.role == "root_cause" and owners.setdefault(place, check) is not check:
            continue
        found[check.signature.id] = hit
    case.memo["signatures"] = found
    return found


def _owner(hit: _Hit) -> Event:
    return hit.failure.event if hit.failure else hit.event


def explains(case: Case, failure: Failure) -> bool:
    """Whether a signature of a root cause, or a rule that noted so, reads this failure."""
    if failure.line in case.memo.get("explained", ()):
        return True
    ours = {check.signature.id for check in _CHECKS if check.signature.role == "root_cause"}
    hits = _best_hits(case)
    return any(_owner(hit) is failure.event for name, hit in hits.items() if name in ours)


def _frames(failure: Failure) -> list[Frame]:
    return failure.traceback.frames if failure.traceback else []


def _stands_in(pattern: str, frames: list[Frame], *, code: bool = False) -> bool:
    """Whether a pattern finds a frame, or with `code` the call of the innermost one."""
    places = [f"{frame.file}:{frame.function}" for frame in frames]
    if code and frames:
        places.append(frames[-1].code)
    return any(_search(pattern, place) for place in places)


_CHECKS = [SignatureRule(signature) for signature in load_signatures()]


def _register() -> None:
    for check in _CHECKS:
        signature = check.signature
        where = "a line" if signature.look_at == "event" else "an exception"
        kinds = ", ".join(signature.kinds)
        add_rule(
            Rule(
                id=signature.id,
                class_=signature.class_,
                severity=signature.severity,
                role=signature.role,
                summary=signature.summary,
                needs=f"{where} of kind {kinds}" if kinds else where,
                check=check,
                playbook=signature.playbook or signature.id,
            )
        )


_register()
