"""What a rule sees: one run with its incident, and the words to point at lines of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from forensics.events import Event, Raised
from forensics.findings import Evidence, Finding, KnownAt, Place, Remedy, Role, Severity
from forensics.incident import Failure, Incident, Run
from forensics.memory.model_config import config_beside, read_config
from forensics.memory.model_shape import ShapeError
from forensics.redact import redact
from forensics.rules.thresholds import Threshold
from forensics.timeline.clock import NO_DATE

_LONGEST = 600


@dataclass
class Case:
    """One run to be judged."""

    run: Run
    incident: Incident
    config_path: Path | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """What the site set, by name; the rest keeps its default."""
    memo: dict[str, Any] = field(default_factory=dict)
    """What rules worked out once for all of them."""

    def threshold(self, wanted: Threshold) -> float:
        """A number that decides: the site's, else the default."""
        return self.thresholds.get(wanted.name, wanted.default)

    def path(self, source: int) -> str:
        """A source as it was named by the user."""
        return self.incident.sources[source].path

    def place(self, event: Event, line: int | None = None) -> Place:
        """Where an event, or a line of it, stands."""
        return Place(source=self.path(event.source), line=line or event.line)

    def known(self, event: Event, line: int | None = None) -> KnownAt:
        """The line of an event as the moment at which a finding became knowable."""
        dated = event.time is not None and event.time.year != NO_DATE
        time = event.time if dated else None
        return KnownAt(source=self.path(event.source), line=line or event.line, time=time)

    def evidence(self, *events: Event | None) -> list[Evidence]:
        """The first lines of events as evidence; None is left out."""
        return [
            Evidence(source=self.path(e.source), line=e.line, text=_line(e.text))
            for e in events
            if e is not None
        ]

    def raised(self, event: Event, raised: Raised) -> Evidence:
        """The exception line of a traceback as evidence."""
        text = f"{raised.type}: {raised.message}" if raised.message else raised.type
        return Evidence(
            source=self.path(event.source), line=raised.line or event.line, text=_line(text)
        )

    def failure_evidence(self, failure: Failure) -> list[Evidence]:
        """A failure's record, the innermost frame of its cause, and its exceptions."""
        shown = self.evidence(failure.event)
        if failure.traceback:
            for raised in failure.traceback.chain:
                if raised.type:
                    shown.append(self.raised(failure.event, raised))
        return _once(shown)

    def finding(
        self,
        rule: str,
        class_: str,
        event: Event,
        *,
        severity: Severity = "critical",
        role: Role = "root_cause",
        title: str,
        explanation: str,
        evidence: Iterable[Evidence] = (),
        remedies: Iterable[Remedy] = (),
        known_at: KnownAt | None = None,
        **more: Any,
    ) -> Finding:
        """A finding that begins at an event; what is not given follows from the event."""
        values: dict[str, Any] = {
            "rule": rule,
            "class": class_,
            "severity": severity,
            "role": role,
            "title": redact(title),
            "explanation": redact(explanation),
            "rank": event.rank,
            "phase": event.phase,
            "first": self.place(event),
            "known_at": known_at or self.known(event, event.end_line),
            "evidence": _once(evidence) or self.evidence(event),
            "remedies": list(remedies),
            "playbook": rule,
        }
        return Finding.model_validate({**values, **more})

    @cached_property
    def config(self) -> dict[str, Any]:
        """The model's `config.json`: from the user, or from the logged path if it exists here."""
        found: dict[str, Any] = {}
        if self.config_path is not None:
            with suppress(OSError, ShapeError):
                found = read_config(self.config_path)
        found = found or config_beside(self.run.launch.get("model_path"))
        inner = found.get("text_config")
        return {**found, **inner} if isinstance(inner, dict) else found

    def before(self, event: Event) -> Iterable[Event]:
        """Events of the run up to and without this one, in reading order."""
        for other in self.run.events:
            if other is event:
                return
            yield other


def _once(evidence: Iterable[Evidence]) -> list[Evidence]:
    """Each line once: of two readings of it the later, which names the exception."""
    return list({(e.source, e.line): e for e in evidence}.values())


def _line(text: str) -> str:
    return redact(text.split("\n", 1)[0])[:_LONGEST]
