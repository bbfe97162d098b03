"""The published JSON document of `analyze`: pydantic models, and their JSON Schema.

Fields may be added within a schema version; those here keep their names and meanings.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from forensics.findings import Finding, MemoryRow, Model, SkippedRule

SCHEMA_VERSION = 1
"""Raised when a field changes its name or meaning."""

Outcome = Literal["ready", "serving", "stopped", "failed", "hung", "degraded", "unknown"]
Phase = Literal["init", "load", "kv_pool", "graph_capture", "warmup", "serving", "shutdown"]


class Tool(Model):
    """The program that wrote the document."""

    name: Literal["forensics"] = "forensics"
    version: str


class Source(Model):
    """One input, its path as it was given."""

    path: str
    bytes: int
    lines: int
    recognised_lines: int
    node: str | None = None
    notice: str | None = None
    """What the reader had to say: an archive cut short, repaired bytes."""


class LaunchDocument(Model):
    """What was started, as far as the log tells; what is not known is absent."""

    flags: dict[str, Any] = Field(default_factory=dict)
    """By `ServerArgs` field name."""
    env: dict[str, str] = Field(default_factory=dict)
    versions: dict[str, str] = Field(default_factory=dict)
    command: list[str] | None = None


class RunDocument(Model):
    """One launch found in the input."""

    run: int
    outcome: Outcome
    phase: Phase
    started_at: datetime | None = None
    ended_at: datetime | None = None
    ranks: list[str]
    launch: LaunchDocument
    memory: list[MemoryRow]
    findings: list[Finding]
    """Most important first."""
    root_cause: str | None = None
    """`id` of the one finding with the role `root_cause`."""
    skipped_rules: list[SkippedRule]
    new_command: list[str] | None = None
    """The launch with the first remedy applied; an argument list, not for a shell."""
    new_env: dict[str, str] = Field(default_factory=dict)
    """The variables of that launch, as far as the log tells."""
    remove_env: list[str] = Field(default_factory=list)
    """Variables that it must not have: `env -u NAME`."""
    not_repeated: list[str] = Field(default_factory=list)
    """Flags that `new_command` leaves out, since SGLang may have picked their values itself."""
    reproduce: list[str] | None = None
    """What to type to have the failure shown again and the fix tried; null where nothing can be."""


class CoverageDocument(Model):
    """How much of the input was understood."""

    lines: int
    recognised: int
    ranks: list[str]
    phases: list[str]
    release: str | None = None
    skipped: list[str]
    """Inputs that were not read, each with the reason."""


class Document(Model):
    """What `forensics analyze --format json` prints."""

    schema_version: Literal[1] = 1
    tool: Tool
    sources: list[Source]
    runs: list[RunDocument]
    """In time order."""
    coverage: CoverageDocument


def json_schema() -> dict[str, Any]:
    """The JSON Schema of the document; unknown fields are allowed, since fields may be added."""
    schema = Document.model_json_schema(by_alias=True, mode="serialization")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    found: dict[str, Any] = opened(schema)
    return found


def opened(schema: Any) -> Any:
    """The schema without its bans on additional fields."""
    if isinstance(schema, dict):
        closed = ("additionalProperties", False)
        return {key: opened(value) for key, value in schema.items() if (key, value) != closed}
    return [opened(item) for item in schema] if isinstance(schema, list) else schema


def events_schema() -> dict[str, Any]:
    """The JSON Schema of a row of `forensics events --format ndjson`: one class for each kind."""
    from forensics.grammar.models import events_adapter

    schema = events_adapter().json_schema(mode="validation")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Event"
    found: dict[str, Any] = opened(schema)
    return found
