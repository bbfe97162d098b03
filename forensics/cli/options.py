"""The arguments and options that commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """How a result is printed."""

    text = "text"
    json = "json"


class ResultFormat(StrEnum):
    """How a diagnosis is drawn."""

    text = "text"
    json = "json"
    markdown = "markdown"
    html = "html"
    sarif = "sarif"
    junit = "junit"


class LiveFormat(StrEnum):
    """How live events are printed."""

    text = "text"
    ndjson = "ndjson"


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
AsResult = Annotated[ResultFormat, typer.Option("--format", help="How to print the result.")]
Redact = Annotated[
    bool | None,
    typer.Option(
        "--redact/--no-redact",
        help="Pseudonyms for hosts, addresses, users and folders; no texts of requests.",
        show_default=False,
    ),
]
AsColor = Annotated[Color, typer.Option("--color", help="When to use colour.")]
Quiet = Annotated[
    bool, typer.Option("-q", "--quiet", help="No progress; of the text, the verdict alone.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an internal error.")]
FailOn = Annotated[Bar, typer.Option("--fail-on", help="Exit with 1 from this severity on.")]
ModelConfig = Annotated[
    Path | None,
    typer.Option(
        "--model-config", metavar="FILE", help="The model's config.json, for more arithmetic."
    ),
]
RunNumber = Annotated[
    int | None, typer.Option("--run", metavar="N", min=1, help="Only this launch of the log.")
]
Select = Annotated[
    list[str] | None, typer.Option("--select", metavar="RULE", help="Only these rules.")
]
Ignore = Annotated[
    list[str] | None, typer.Option("--ignore", metavar="RULE", help="Not these rules.")
]
Verbose = Annotated[
    bool, typer.Option("-v", "--verbose", help="All evidence, and the rules that were skipped.")
]
