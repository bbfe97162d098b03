"""The options of the live commands."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from forensics.cli.options import LiveFormat


class Until(StrEnum):
    """What is waited for."""

    ready = "ready"
    serving = "serving"
    failed = "failed"


class End(StrEnum):
    """When a command that runs well is ended."""

    exit = "exit"
    ready = "ready"
    serving = "serving"


class Bar(StrEnum):
    """From which severity on a finding ends the waiting."""

    critical = "critical"
    warning = "warning"
    never = "never"


LiveAs = Annotated[LiveFormat, typer.Option("--format", help="Lines for people, or one JSON each.")]
QuietLive = Annotated[bool, typer.Option("-q", "--quiet", help="Only the verdict line.")]
OnFinding = Annotated[
    list[str] | None,
    typer.Option(
        "--on-finding",
        metavar="CMD",
        help="Run this for each finding, with the finding as JSON on its standard input. "
        "One string is split into words; or give the option once for each word. No shell.",
    ),
]
Logs = Annotated[list[str], typer.Argument(metavar="LOG...", help="Growing logs; - reads a pipe.")]
WaitFor = Annotated[Until, typer.Option("--until", help="What to wait for.")]
GiveUp = Annotated[
    float | None,
    typer.Option("--timeout", metavar="S", min=0.0, help="Exit with 7 after S seconds."),
]
FailAt = Annotated[
    Bar,
    typer.Option("--fail-on", help="Exit with 6 at once on a precursor from this severity on."),
]
IgnorePast = Annotated[
    bool,
    typer.Option("--ignore-past", help="Wait for a new launch where the last one has ended."),
]

Command = Annotated[
    list[str], typer.Argument(metavar="-- CMD ARG...", help="The launch, word by word.")
]
KeepLog = Annotated[
    Path | None, typer.Option("--log", metavar="FILE", help="Where its output is kept as well.")
]
EndWhen = Annotated[End, typer.Option("--until", help="End the command, well, once it is so far.")]
StartLimit = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="S",
        min=0.0,
        help="End the command, and exit with 7, if it is not ready after S seconds.",
    ),
]
StopOn = Annotated[
    Bar, typer.Option("--stop-on", help="End the command on a finding from this severity on.")
]
Grace = Annotated[
    float, typer.Option("--grace", metavar="S", min=0.0, help="From SIGTERM to SIGKILL.")
]
InTimeline = Annotated[
    bool, typer.Option("--tui", help="Show it in the timeline instead of passing its output on.")
]
