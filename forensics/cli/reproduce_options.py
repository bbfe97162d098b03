"""The options of `reproduce`: the launch, the change, the trials, asking."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Goal(StrEnum):
    """How far a trial must come to pass."""

    capture = "capture"
    ready = "ready"
    health = "health"
    generate = "generate"
    load = "load"


Logs = Annotated[
    list[str] | None, typer.Argument(metavar="LOG", help="Logs of one launch that failed.")
]

LaunchFile = Annotated[
    Path | None,
    typer.Option(
        "--launch",
        metavar="FILE",
        help="A script or a file with the command, in place of what the log shows, or without a "
        "log; it is read, and never run by a shell.",
    ),
]
RunNumber = Annotated[
    int | None,
    typer.Option(
        "--run", metavar="N", min=1, help="This launch of the log; else the last that failed."
    ),
]
Python = Annotated[
    str | None,
    typer.Option(
        "--python",
        metavar="PATH",
        help="The interpreter that starts the launch, instead of python3.",
    ),
]
Env = Annotated[
    list[str] | None,
    typer.Option(
        "--env", metavar="NAME=VALUE", help="A variable for every trial; may be repeated."
    ),
]

With = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        metavar="FLAG=VALUE",
        help="What is different here in every trial, the control too: --with model_path=...",
    ),
]

RemedyNumber = Annotated[
    int | None,
    typer.Option(
        "--remedy",
        metavar="N",
        min=1,
        help="This remedy, as `analyze` numbers them; else the best that can be typed.",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="FLAG=VALUE",
        help="What the fix has different: a flag, a field or a VARIABLE; may be repeated.",
    ),
]
Unset = Annotated[
    list[str] | None,
    typer.Option(
        "--unset",
        metavar="FLAG",
        help="A flag back to its default, or a VARIABLE taken away; may be repeated.",
    ),
]
Search = Annotated[
    str | None,
    typer.Option(
        "--search",
        metavar="FLAG",
        help="Search the best value of a number that still holds, and confirm it.",
    ),
]
KnownGood = Annotated[
    float | None,
    typer.Option("--known-good", metavar="VALUE", help="With --search: a value that holds."),
]
Margin = Annotated[
    float,
    typer.Option(
        "--margin",
        metavar="GIB",
        min=0.0,
        help="With --search: memory to be left free after capture.",
    ),
]

Until = Annotated[
    Goal | None,
    typer.Option(
        "--goal",
        help="How far a trial must come; else ready, or load for what failed while serving.",
    ),
]
Load = Annotated[
    int | None,
    typer.Option("--load", metavar="N", min=1, help="The goal load, with N requests at once."),
]
Confirm = Annotated[
    int,
    typer.Option(
        "--confirm", metavar="N", min=0, max=20, help="So many times the fix must pass again."
    ),
]
SkipControl = Annotated[
    bool,
    typer.Option(
        "--skip-control",
        help="Do not show first that it fails here: the verdict is fix-holds at best.",
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="S",
        min=1.0,
        help="Limit of each trial; else 1800, or twice what the log's launch took.",
    ),
]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        metavar="DIR",
        help="Where all is kept; else a new folder among the user's state.",
    ),
]
Resume = Annotated[
    Path | None,
    typer.Option(
        "--resume",
        metavar="DIR",
        help="Go on with the plan of a folder; finished trials are kept. Its secrets are not: "
        "--env and --with give them again.",
    ),
]

On = Annotated[
    str | None,
    typer.Option(
        "--on",
        metavar="WHERE",
        help="Run elsewhere: ssh:[USER@]HOST[:PORT], docker:IMAGE, docker-exec:CONTAINER, "
        "kube:[NAMESPACE/]POD[/CONTAINER].",
    ),
]

DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Show the plan and end."),
]
Scale = Annotated[
    bool,
    typer.Option(
        "--scale",
        help="Fewer or smaller GPUs than the log's: a smaller model with random weights and the "
        "same memory geometry of a rank; needs its config.json.",
    ),
]
Script = Annotated[
    str | None,
    typer.Option(
        "--script",
        metavar="FILE",
        help="Write control and fix as a shell script to take elsewhere, and end; - prints it.",
    ),
]
Yes = Annotated[
    bool,
    typer.Option("--yes", "-y", help="Run without asking; foreign code aside."),
]
AllowForeignCode = Annotated[
    bool,
    typer.Option("--allow-foreign-code", help="Consent to the foreign code that the plan names."),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Run though a difference is marked as blocking."),
]
