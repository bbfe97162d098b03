"""Rules that are data: this message means that.

Each `[[signature]]` of `forensics/rules/signatures/*.toml` is one rule. It looks at failures (an
exception of a process) or at records, by grammar kind first and, where a kind is wider than the
meaning, by exception class, message, frames, phase and flags. All conditions given must hold.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from forensics.events import Event, Raised
from forensics.findings import (
    Basis,
    Direction,
    Evidence,
    Finding,
    Remedy,
    RemedyKind,
    Role,
    Severity,
)
from forensics.incident import Failure
from forensics.remedies import flag, kept
from forensics.rules import base
from forensics.rules.base import Rule, Skip, add_rule
from forensics.rules.case import Case

FOLDER = Path(__file__).with_name("signatures")

Weight = Literal["quiet", "failure", "degraded", "consequence"]
_WEIGHTS: dict[Weight, int] = {
    "quiet": base.QUIET_CAUSE,
    "failure": base.FAILURE,
    "degraded": base.DEGRADED,
    "consequence": base.CONSEQUENCE,
}


class Data(BaseModel):
    """Base of the file format: an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", defer_build=True)


class RemedyData(Data):
    """A remedy of a signature; a flag is left out where the release does not have it."""

    kind: RemedyKind
    name: str
    direction: Direction | None = None
    to: Any = None
    reason: str
    cost: str = ""
    basis: Basis = "documented"
    flags: dict[str, str] = Field(default_factory=dict)
    """Only where these flags of the launch match (field to regular expression)."""


class Signature(Data):
    """One signature."""

    id: str
    class_: str = Field(alias="class")
    summary: str
    look_at: Literal["failure", "event"] = "failure"
    kinds: list[str] = Field(default_factory=list)
    """Grammar kinds: of any exception of the failure or its record, or of the record."""
    exception: str | None = None
    """Regular expression on the exception's class name."""
    message: str | None = None
    """Regular expression on the exception's message or the record's text."""
    frames: str | None = None
    """Regular expression on a frame, as `path/file.py:function`."""
    phases: list[str] = Field(default_factory=list)
    flags: dict[str, str] = Field(default_factory=dict)
    """Flags of the launch that must match: field to regular expression (`.` for "is set")."""
    weight: Weight = "failure"
    more: int = 0
    """Added to the weight: a narrower signature beats a wider one."""
    severity: Severity = "critical"
    role: Role = "root_cause"
    confidence: Literal["high", "medium", "low"] = "high"
    phase: str | None = None
    title: str
    """May name fields of the record or exception: `{path}`; also `{rank}` and `{message}`."""
    explanation: str
    not_helpful: list[str] = Field(default_factory=list)
    playbook: str | None = None
    facts: dict[str, Any] = Field(default_factory=dict)
    remedy: list[RemedyData] = Field(default_factory=list)

    def check(self, case: Case) -> Iterator[Finding | Skip]:
        """The first failure or record that the signature fits."""
        if not _flags_match(case, self.flags):
            return
        if self.look_at == "event":
            if (event := next(self._events(case), None)) is not None:
                yield self._finding(case, event, None, event.fields, event.text)
            return
        for failure in case.run.failures:
            if (raised := self._fits(failure)) is not None:
                fields, said = (
                    (raised.fields, raised.message)
                    if isinstance(raised, Raised)
                    else (raised.fields, raised.text)
                )
                yield self._finding(case, failure.event, failure, fields, said)
                return

    def _events(self, case: Case) -> Iterator[Event]:
        message = re.compile(self.message) if self.message else None
        for event in case.run.events:
            if self.kinds and event.kind not in self.kinds:
                continue
            if self.phases and event.phase not in self.phases:
                continue
            if message and not message.search(event.text):
                continue
            yield event

    def _fits(self, failure: Failure) -> Raised | Event | None:
        """The exception (or the record) of a failure that the signature fits."""
        if self.phases and failure.phase not in self.phases:
            return None
        frames = failure.traceback.frames if failure.traceback else []
        if self.frames and not any(
            re.search(self.frames, f"{frame.file}:{frame.function}") for frame in frames
        ):
            return None
        chain = failure.traceback.chain if failure.traceback else []
        for raised in chain:
            if self._says(raised.kind, raised.name, raised.message):
                return raised
        event = failure.event
        return event if self._says(event.kind, "", event.text) else None

    def _says(self, kind: str, name: str, message: str) -> bool:
        if self.kinds and kind not in self.kinds:
            return False
        if self.exception and not re.search(self.exception, name):
            return False
        return not self.message or bool(re.search(self.message, message))

    def _finding(
        self,
        case: Case,
        event: Event,
        failure: Failure | None,
        fields: Mapping[str, Any],
        said: str,
    ) -> Finding:
        words = _Words(fields)
        words.setdefault("rank", event.rank or "a process")
        words.setdefault("message", said.split("\n")[0][:200])
        evidence: list[Evidence] = (
            case.failure_evidence(failure) if failure else case.evidence(event)
        )
        return case.finding(
            self.id,
            self.class_,
            event,
            severity=self.severity,
            role=self.role,
            title=self.title.format_map(words),
            explanation=self.explanation.format_map(words),
            evidence=evidence,
            remedies=self._remedies(case),
            not_helpful=self.not_helpful,
            rank=failure.rank if failure else event.rank,
            phase=self.phase or (failure.phase if failure else event.phase),
            confidence=self.confidence,
            weight=_WEIGHTS[self.weight] + self.more,
            playbook=self.playbook or self.id,
            facts=dict(self.facts),
        )

    def _remedies(self, case: Case) -> list[Remedy]:
        made: list[Remedy | None] = []
        for data in self.remedy:
            if not _flags_match(case, data.flags):
                continue
            if data.kind == "flag":
                made.append(
                    flag(
                        case.run.launch,
                        data.name,
                        data.to,
                        data.reason,
                        direction=data.direction,
                        basis=data.basis,
                        cost=data.cost,
                    )
                )
            else:
                made.append(
                    Remedy(
                        kind=data.kind,
                        name=data.name,
                        direction=data.direction or ("do" if data.kind == "action" else "set"),
                        to=data.to,
                        reason=data.reason,
                        cost=data.cost,
                        basis=data.basis,
                    )
                )
        return kept(*made)


class _Words(dict[str, Any]):
    """Fields for a title; one that the record lacks reads as an ellipsis."""

    def __missing__(self, key: str) -> str:
        return "…"


def _flags_match(case: Case, wanted: Mapping[str, str]) -> bool:
    for name, pattern in wanted.items():
        value = case.run.launch.get(name)
        if value is None or value is False or not re.search(pattern, str(value)):
            return False
    return True


def load_signatures(folder: Path = FOLDER) -> list[Signature]:
    """Every signature of a folder, in file order.

    Raises:
        ValueError: a file does not have the format, or names no condition.
    """
    found = []
    for path in sorted(folder.glob("*.toml")):
        for data in tomllib.loads(path.read_text(encoding="utf-8"))["signature"]:
            signature = Signature.model_validate(data)
            if not (signature.kinds or signature.message or signature.frames):
                raise ValueError(f"{path.name}: {signature.id} names no condition")
            found.append(signature)
    return found


def _register() -> None:
    for signature in load_signatures():
        where = "an exception" if signature.look_at == "failure" else "a line"
        kinds = ", ".join(signature.kinds)
        add_rule(
            Rule(
                id=signature.id,
                class_=signature.class_,
                severity=signature.severity,
                role=signature.role,
                summary=signature.summary,
                needs=f"{where} of kind {kinds}" if kinds else where,
                check=signature.check,
                playbook=signature.playbook or signature.id,
            )
        )


_register()
