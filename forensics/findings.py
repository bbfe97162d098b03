"""What the tool says about a launch: findings and their remedies, as published in the JSON.

The names and meanings are the contract's; `forensics schema` prints the JSON Schema of these
models. Facts (`facts`) stand apart from wording (`title`, `explanation`), so that every view
says the same.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Severity = Literal["critical", "warning", "info"]
Role = Literal["root_cause", "precursor", "consequence", "context"]
Confidence = Literal["high", "medium", "low"]
RemedyKind = Literal["flag", "env", "package", "action"]
Direction = Literal[
    "increase", "decrease", "set", "enable", "disable", "remove", "upgrade", "downgrade", "do"
]
Basis = Literal["observed", "computed", "lower_bound", "prior", "heuristic", "documented"]

SEVERITIES: tuple[Severity, ...] = ("info", "warning", "critical")
"""Severities, mildest first."""


class Model(BaseModel):
    """Base of the published models: unknown fields are an error, so typos cannot hide."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True, defer_build=True)


class Place(Model):
    """A line of a source, counted from 1."""

    source: str
    line: int


class KnownAt(Place):
    """The line at which a finding became knowable when reading forward."""

    time: datetime | None = None


class Evidence(Place):
    """A line that supports a finding, with its text (secrets removed)."""

    text: str


class Remedy(Model):
    """One change to the next launch, with what it rests on and what it should do."""

    kind: RemedyKind
    name: str
    direction: Direction
    from_: Any = Field(default=None, validation_alias="from", serialization_alias="from")
    to: Any = None
    reason: str
    effect: dict[str, Any] = Field(default_factory=dict)
    """Predicted numbers: `free_gib_at_capture`, `kv_tokens`, `kv_tokens_change`, ..."""
    basis: Basis = "documented"
    cost: str = ""
    """What the change costs, in words for a person."""


class Finding(Model):
    """One statement about a run, with evidence lines and, where it can, a remedy."""

    id: str = ""
    rule: str
    class_: str = Field(validation_alias="class", serialization_alias="class")
    severity: Severity
    role: Role
    title: str
    explanation: str
    confidence: Confidence = "high"
    rank: str | None = None
    phase: str | None = None
    """The phase in which it failed or will fail."""
    first: Place
    known_at: KnownAt
    evidence: list[Evidence]
    remedies: list[Remedy] = Field(default_factory=list)
    not_helpful: list[str] = Field(default_factory=list)
    """Changes that people try and that would not help here, each with its reason."""
    playbook: str = ""
    facts: dict[str, Any] = Field(default_factory=dict)
    lead_s: float | None = None
    """Seconds between `known_at` and the crash, for a precursor that came true."""
    weight: int = Field(default=0, exclude=True)
    """How strongly it explains the failure (`forensics.rules.base`); not published."""


class MemoryRow(Model):
    """One row of a rank's memory ledger, GiB; null where the log does not say."""

    rank: str
    phase: str
    at: datetime | None = None
    line: int
    source: str = ""
    total_gib: float | None = None
    free_gib: float | None = None
    weights_gib: float | None = None
    kv_pool_gib: float | None = None
    graphs_gib: float | None = None
    other_gib: float | None = None


class SkippedRule(Model):
    """A rule that could not judge a run, and why."""

    rule: str
    because: str
