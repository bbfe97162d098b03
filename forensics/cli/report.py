"""The command that writes a report: `report`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forensics.cli.drawing import draw
from forensics.cli.options import (
    Bar,
    Debug,
    FailOn,
    Ignore,
    ModelConfig,
    Output,
    Paths,
    Quiet,
    Redact,
    ResultFormat,
    RunNumber,
    Select,
)
from forensics.cli.program import FOUND, app, guarded
from forensics.cli.reading import analyzed, at_bar, keep_run
from forensics.cli.site import site

if TYPE_CHECKING:
    from forensics.reproduce.model import Reproduction


class Reader(StrEnum):
    """Whom a report is for."""

    team = "team"
    issue = "issue"


@app.command()
@guarded
def report(
    context: typer.Context,
    paths: Paths = None,
    format: Annotated[
        ResultFormat | None,
        typer.Option("--format", help="Default: by the file's suffix, else markdown."),
    ] = None,
    output: Output = None,
    reader: Annotated[
        Reader, typer.Option("--for", help="issue: the body of a bug report to SGLang.")
    ] = Reader.team,
    redact: Redact = None,
    reproduction: Annotated[
        Path | None,
        typer.Option(
            "--reproduction", metavar="FILE", help="What `reproduce` found: its file or folder."
        ),
    ] = None,
    fail_on: FailOn = Bar.critical,
    model_config: ModelConfig = None,
    run: RunNumber = None,
    select: Select = None,
    ignore: Ignore = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a report for a postmortem, a bug tracker or CI."""
    from forensics.views.output import destination
    from forensics.views.privacy import Names, anonymous, hidden
    from forensics.views.report import Wish

    for_issue = reader is Reader.issue
    chosen = format or _format_of(output)
    if for_issue and chosen is not ResultFormat.markdown:
        raise typer.BadParameter("--for issue writes markdown")
    found = _reproduction(reproduction) if reproduction else None
    settings = site(context)
    diagnosis = analyzed(paths, quiet, output, settings.for_rules())
    if run is not None:
        keep_run(diagnosis, run)
    hide = for_issue if redact is None else redact
    if hide:
        names = Names()
        diagnosis = anonymous(diagnosis, names)
        found = hidden(found, names)
    wish = Wish(for_issue, run, hide, found)
    with destination(output) as out:
        draw(diagnosis, chosen, out, "never", quiet=quiet, wish=wish)
    if at_bar(diagnosis, settings["fail_on"]):
        raise typer.Exit(FOUND)


def _format_of(output: str | None) -> ResultFormat:
    """The format that a file's name asks for; markdown where it asks for none."""
    suffixes = {
        ".html": ResultFormat.html,
        ".htm": ResultFormat.html,
        ".sarif": ResultFormat.sarif,
        ".xml": ResultFormat.junit,
        ".json": ResultFormat.json,
        ".txt": ResultFormat.text,
    }
    return suffixes.get(Path(output or "").suffix.lower(), ResultFormat.markdown)


def _reproduction(path: Path) -> Reproduction:
    """What a reproduction wrote: its file, or the folder that holds it."""
    from pydantic import ValidationError

    from forensics.reproduce.model import Reproduction

    file = path / "reproduction.json" if path.is_dir() else path
    try:
        return Reproduction.model_validate_json(file.read_text(encoding="utf-8"))
    except (ValidationError, UnicodeDecodeError) as error:
        said = str(error).splitlines()[0]
        raise typer.BadParameter(f"{file} is no reproduction.json: {said}") from None
