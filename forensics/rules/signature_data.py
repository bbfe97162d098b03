"""The format of a signature file: what a message means, as data.

Each `[[signature]]` of `forensics/rules/signatures/*.toml` is one rule. All conditions given
must hold. Regular expressions are searched without regard to case, not matched whole; named groups
of `message` can be used in the texts and in the values of remedies.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from forensics.findings import Basis, Direction, RemedyKind, Role, Severity
from forensics.rules import base

FOLDER = Path(__file__).with_name("signatures")

Weight = Literal["quiet", "failure", "degraded", "consequence"]
WEIGHTS: dict[Weight, int] = {
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
    """A text may name fields: `"=={version}"`; absent takes a flag back to its default."""
    reason: str
    cost: str = ""
    basis: Basis = "documented"
    flags: dict[str, str] = Field(default_factory=dict)
    """Only where these flags of the launch match (field to regular expression)."""
    unless_flags: dict[str, str] = Field(default_factory=dict)
    """Not where one of these flags matches."""
    below: str | None = None
    """Not where the release is known to be this one or newer."""
    only_if_known: bool = False
    """Left out where the value of `to` comes out as a placeholder."""


class Signature(Data):
    """One signature."""

    id: str
    class_: str = Field(alias="class")
    summary: str
    look_at: Literal["failure", "event", "any"] = "failure"
    """An exception of a process; a record; or the first, else the second of a failed run."""
    kinds: list[str] = Field(default_factory=list)
    """Grammar kinds: of any exception of the failure or its record, or of the record."""
    exception: str | None = None
    """Regular expression on the exception's class name."""
    message: str | None = None
    """Regular expression on the exception's message or the record's text."""
    unless: str | None = None
    """Regular expression that the same text must not hold."""
    opens: str | None = None
    """Regular expression on an earlier record at which the failure began; then it is `first`."""
    frames: str | None = None
    """Regular expression on a frame, as `path/file.py:function`."""
    inner: str | None = None
    """The same on the three innermost frames, and on the code of the last."""
    phases: list[str] = Field(default_factory=list)
    flags: dict[str, str] = Field(default_factory=dict)
    """Flags of the launch that must match: field to regular expression (`.` for "is set")."""
    unless_flags: dict[str, str] = Field(default_factory=dict)
    """Flags none of which may match."""
    unless_kinds: list[str] = Field(default_factory=list)
    """Grammar kinds of which the run must hold none: another rule reads them."""
    below: str | None = None
    """Not where the release is known to be this one or newer."""
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


def load_signatures(folder: Path = FOLDER) -> list[Signature]:
    """Every signature of a folder, in file order.

    Raises:
        ValueError: a file does not have the format, or a signature names no condition.
    """
    found = []
    for path in sorted(folder.glob("*.toml")):
        for data in tomllib.loads(path.read_text(encoding="utf-8"))["signature"]:
            signature = Signature.model_validate(data)
            if not (signature.kinds or signature.message or signature.frames or signature.inner):
                raise ValueError(f"{path.name}: {signature.id} names no condition")
            found.append(signature)
    return found
