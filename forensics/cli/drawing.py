"""A diagnosis in the format that was asked for: one list of formats, for `analyze` and `report`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from forensics.cli.options import ResultFormat

if TYPE_CHECKING:
    from forensics.diagnosis import Diagnosis
    from forensics.views.console import ColorWhen
    from forensics.views.report import Wish


def draw(
    diagnosis: Diagnosis,
    format: ResultFormat,
    out: TextIO,
    color: ColorWhen,
    *,
    verbose: bool = False,
    quiet: bool = False,
    wish: Wish | None = None,
) -> None:
    """Writes a diagnosis; `verbose` and `quiet` are for the text alone."""
    match format:
        case ResultFormat.text:
            from forensics.views.console import console_for
            from forensics.views.terminal import show

            show(diagnosis, console_for(out, color), verbose=verbose, quiet=quiet)
        case ResultFormat.json:
            from forensics.views.json import render as json

            out.write(json(diagnosis))
        case _:
            from forensics.views.report import render

            out.write(render(diagnosis, format.value, wish))
