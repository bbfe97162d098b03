"""The command line: parse arguments, call the line, choose a view, exit code.

Each module registers its commands on `app` by being imported here, in the order of the help.
Commands import what they use, so that `forensics --help` loads nothing but typer.
"""

from forensics.cli import reading  # noqa: F401 - registers commands

from forensics.cli import report, live, tui, reproduce, probe, reference  # noqa: F401  # isort: skip - the order of the help
from forensics.cli.program import app, main

__all__ = ["app", "main"]
