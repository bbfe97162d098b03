"""What one record of a log says: its place, its time, its rank, its kind and its fields.

A kind is the name of a grammar rule (`grammars/*.lark`); the fields of an event are the leaf
rules of that rule. `Event` is the light form that the pipeline passes around; `forensics.grammar`
derives a pydantic class for each kind from the same rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeAlias

Value: TypeAlias = "int | float | bool | str | list[int] | list[str] | dict[str, Value] | None"

OTHER = "other"
"""The kind of a record that no grammar rule knows."""

PHASES = ("init", "load", "kv_pool", "graph_capture", "warmup", "serving", "shutdown")
"""Phases of a launch, in order; what they mean stands in the JSON contract (`forensics schema`)."""


@dataclass(slots=True)
class Frame:
    """One line of a Python stack: where, and the source text when it was printed."""

    file: str
    line: int
    function: str
    code: str = ""

    @property
    def short(self) -> str:
        """`cuda_graph_runner.py:370 capture`, as people quote it."""
        return f"{self.file.rsplit('/', 1)[-1]}:{self.line} {self.function}"


@dataclass(slots=True)
class Raised:
    """One exception of a traceback: the innermost frames come last."""

    type: str
    message: str
    frames: list[Frame] = field(default_factory=list)
    first_line: int = 0
    line: int = 0
    """Line of the `Type: message` text (0 if the log ends before it)."""
    kind: str = OTHER
    """The grammar kind of the message, `other` if no rule knows it."""
    fields: dict[str, Value] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The class without its module: `OutOfMemoryError`."""
        return self.type.rsplit(".", 1)[-1]


@dataclass(slots=True)
class Traceback:
    """A traceback with its chain, in the order printed: the first exception is the cause."""

    chain: list[Raised] = field(default_factory=list)
    truncated: bool = False

    @property
    def cause(self) -> Raised:
        """The exception raised first; later ones were raised while it was handled."""
        return self.chain[0]

    @property
    def frames(self) -> list[Frame]:
        """Every frame of the chain."""
        return [frame for raised in self.chain for frame in raised.frames]


@dataclass(slots=True)
class Event:
    """One record of a log.

    `line` counts from 1 by `\\n` alone; a record over several lines ends at `end_line`.
    `time` is in the log's own clock, without a zone unless the log names one.
    `rank` is the tag text of the log (`"TP4"`, `"DP0 TP0"`), None for the main process.
    """

    source: int
    line: int
    kind: str
    text: str
    time: datetime | None = None
    rank: str | None = None
    node: str | None = None
    run: int = 1
    phase: str = "init"
    level: str | None = None
    fields: dict[str, Value] = field(default_factory=dict)
    end_line: int = 0
    uncertain: bool = False
    """The rank was inferred across another rank's lines."""
    traceback: Traceback | None = None

    def number(self, name: str) -> float | None:
        """A numeric field, or None when the record does not carry it."""
        value = self.fields.get(name)
        return float(value) if isinstance(value, int | float) else None

    def string(self, name: str) -> str:
        """A text field, empty when the record does not carry it."""
        value = self.fields.get(name)
        return "" if value is None else str(value)
