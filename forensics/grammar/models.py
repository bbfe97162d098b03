"""A pydantic class for each kind of event, derived from its grammar rule.

The classes describe rows of `forensics events`: the columns that every event has, then the typed
fields of the rule. They are built on demand; reading a log needs none of them.
"""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import Annotated, Any, Literal, Union

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model

from forensics.events import OTHER, PHASES
from forensics.grammar import Kind, load
from forensics.grammar.values import PYTHON_TYPES

UNRULED = {
    OTHER: "A record that no rule knows.",
    "traceback": "A traceback that no record announced.",
    "exception": "The last line of a traceback that is not there.",
}
"""Kinds without a rule of their own, and what they mean."""


class Row(BaseModel):
    """The columns that every event has."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    source: str
    line: int = Field(ge=1)
    time: datetime | None
    """In the log's own clock; with a zone only where the log names one."""
    run: int = Field(ge=1)
    rank: str | None
    phase: str = Field(json_schema_extra={"enum": list(PHASES)})
    kind: str
    text: str


@cache
def event_model(name: str) -> type[Row]:
    """The class of one kind; its docstring is an example of the message.

    Raises:
        KeyError: there is no such kind.
    """
    kind = load().kinds.get(name)
    if kind is None and name not in UNRULED:
        raise KeyError(name)
    literal: Any = Literal  # a checker cannot know names from the grammar
    return create_model(
        "".join(part.title() for part in name.split("_")),
        __base__=Row,
        __doc__=kind.example if kind else UNRULED[name],
        kind=(literal[name], ...),
        **(_columns(kind) if kind else {}),
    )


def event_models() -> dict[str, type[Row]]:
    """The classes of all kinds, by name."""
    return {name: event_model(name) for name in sorted({*load().kinds, *UNRULED})}


def events_adapter() -> TypeAdapter[Row]:
    """Reads a row into the class of its kind."""
    either: Any = Union[tuple(event_models().values())]  # noqa: UP007
    return TypeAdapter(Annotated[either, Field(discriminator="kind")])


def column(field: str) -> str:
    """The column of a field: its name, or `field_<name>` where that is a common column."""
    return f"field_{field}" if field in Row.model_fields else field


def _columns(kind: Kind) -> dict[str, Any]:
    """Fields are optional: a rule may leave them out, and a number may be illegible."""
    return {
        column(name): (PYTHON_TYPES.get(terminal, str) | None, None)
        for name, terminal in sorted(kind.fields.items())
    }
