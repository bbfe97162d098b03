"""The console a view is drawn on: where to, how wide, in colour or not."""

from __future__ import annotations

import os
import sys
from typing import Any, Literal, TextIO

from rich.console import Console

ColorWhen = Literal["auto", "always", "never"]

MIN_WIDTH = 24
"""Narrower terminals wrap by themselves."""

PIPED_WIDTH = 80
"""Width of what goes to a file or a pipe, unless COLUMNS says otherwise."""


class _Console(Console):
    """A console that leaves a closed pipe to its caller; rich would end the program with 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console_for(out: TextIO, color: ColorWhen = "auto") -> Console:
    """A console on a stream. `auto`: colour on a terminal, NO_COLOR and FORCE_COLOR decide."""
    options: dict[str, Any] = {}
    if color == "always":
        options = {"force_terminal": True, "color_system": "standard", "no_color": False}
    elif color == "never":
        options = {"color_system": None}
    console = _Console(file=out, highlight=False, markup=False, emoji=False, **options)
    if not os.environ.get("COLUMNS", "").isdigit() and not out.isatty():
        console.width = PIPED_WIDTH
    console.width = max(console.width, MIN_WIDTH)
    return console


def error_line(text: str) -> None:
    """One line on standard error, after the program's name."""
    from forensics.views.clean import one_line

    print(f"forensics: {one_line(text)}", file=sys.stderr)
