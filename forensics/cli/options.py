"""The arguments and options that commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Format(StrEnum):
    """How a result is printed."""

    text = "text"
    json = "json"


class Table(StrEnum):
    """How events are written."""

    ndjson = "ndjson"
    csv = "csv"
    parquet = "parquet"


class Color(StrEnum):
    """When to use colour."""

    auto = "auto"
    always = "always"
    never = "never"


class Bar(StrEnum):
    """The severity from which a finding makes the exit code 1."""

    critical = "critical"
    warning = "warning"
    info = "info"
    never = "never"


Paths = Annotated[
    list[str] | None,
    typer.Argument(metavar="PATHS", help="Logs or folders; - reads standard input."),
]
Output = Annotated[
    str | None,
    typer.Option("-o", "--output", metavar="FILE", help="Write to a file, whole or not at all."),
]
AsFormat = Annotated[Format, typer.Option("--format", help="How to print the result.")]
AsColor = Annotated[Color, typer.Option("--color", help="When to use colour.")]
Quiet = Annotated[
    bool, typer.Option("-q", "--quiet", help="No progress; of the text, the verdict alone.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an internal error.")]
