"""The objects of SARIF 2.1.0 that a diagnosis needs, under the names that the standard gives them.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

VERSION = "2.1.0"
SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

Level = Literal["none", "note", "warning", "error"]


class _Object(BaseModel):
    """Base: the standard's camel case, and nothing that it does not know."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True)


class Message(_Object):
    """Plain text, with the same as Markdown where there is more to say."""

    text: str
    markdown: str | None = None


class ArtifactLocation(_Object):
    """Where a log is: a URI reference, and its place among the artifacts."""

    uri: str
    index: int | None = None


class Artifact(_Object):
    """A log that was read."""

    location: ArtifactLocation
    length: int | None = None
    roles: list[str] = Field(default_factory=lambda: ["analysisTarget"])
    mime_type: str = "text/plain"


class Region(_Object):
    """A line of a log, counted from 1."""

    start_line: int = Field(ge=1)
    snippet: Message | None = None


class PhysicalLocation(_Object):
    """A line of a log, and which log."""

    artifact_location: ArtifactLocation
    region: Region


class Location(_Object):
    """A place of a result; related ones have an id and say what they show."""

    id: int | None = None
    physical_location: PhysicalLocation
    message: Message | None = None


class Configuration(_Object):
    """How grave the results of a rule are."""

    level: Level


class ReportingDescriptor(_Object):
    """A rule: what it finds, and its playbook as help."""

    id: str
    short_description: Message
    help: Message | None = None
    default_configuration: Configuration
    properties: dict[str, Any] = Field(default_factory=dict)


class ToolComponent(_Object):
    """The program."""

    name: str
    version: str
    rules: list[ReportingDescriptor]


class Tool(_Object):
    """The program that found it."""

    driver: ToolComponent


class Notification(_Object):
    """What the reader of the logs had to say."""

    level: Level = "note"
    message: Message


class Invocation(_Object):
    """How the reading went."""

    execution_successful: bool = True
    tool_execution_notifications: list[Notification] = Field(default_factory=list)


class Result(_Object):
    """A finding."""

    rule_id: str
    rule_index: int
    level: Level
    kind: Literal["fail"] = "fail"
    message: Message
    locations: list[Location]
    related_locations: list[Location] = Field(default_factory=list)
    partial_fingerprints: dict[str, str]
    properties: dict[str, Any] = Field(default_factory=dict)


class Run(_Object):
    """One reading of one incident."""

    tool: Tool
    invocations: list[Invocation]
    artifacts: list[Artifact]
    results: list[Result]
    column_kind: Literal["unicodeCodePoints"] = "unicodeCodePoints"


class Log(_Object):
    """The document."""

    schema_: str = Field(default=SCHEMA, alias="$schema")
    version: Literal["2.1.0"] = "2.1.0"
    runs: list[Run]
