"""The commands that read logs: `analyze`, `events`, `coverage`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forensics.cli.drawing import draw
from forensics.cli.options import (
    AsColor,
    AsFormat,
    AsResult,
    Bar,
    Color,
    Debug,
    FailOn,
    Format,
    Ignore,
    ModelConfig,
    Output,
    Paths,
    Quiet,
    Redact,
    ResultFormat,
    RunNumber,
    Select,
    Table,
    Verbose,
)
from forensics.cli.program import FOUND, app, guarded
from forensics.cli.site import site

if TYPE_CHECKING:
    from forensics.diagnosis import Diagnosis
    from forensics.rules import Settings


@app.command()
@guarded
def analyze(
    context: typer.Context,
    paths: Paths = None,
    format: AsResult = ResultFormat.text,
    json: Annotated[bool, typer.Option("--json", help="Short for --format json.")] = False,
    output: Output = None,
    redact: Redact = None,
    fail_on: FailOn = Bar.critical,
    model_config: ModelConfig = None,
    run: RunNumber = None,
    select: Select = None,
    ignore: Ignore = None,
    color: AsColor = Color.auto,
    quiet: Quiet = False,
    verbose: Verbose = False,
    debug: Debug = False,
) -> None:
    """Say what went wrong, why, and what to change."""
    from forensics.views.output import destination

    settings = site(context)
    diagnosis = analyzed(paths, quiet, output, settings.for_rules())
    if run is not None:
        keep_run(diagnosis, run)
    if redact:
        from forensics.views.privacy import anonymous

        diagnosis = anonymous(diagnosis)
    with destination(output) as out:
        chosen = ResultFormat.json if json else format
        draw(diagnosis, chosen, out, settings["color"], verbose=verbose, quiet=quiet)
    if at_bar(diagnosis, settings["fail_on"]):
        raise typer.Exit(FOUND)


@app.command()
@guarded
def events(
    paths: Paths = None,
    format: Annotated[
        Table | None, typer.Option("--format", help="Default: by the file's suffix, else ndjson.")
    ] = None,
    output: Output = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write every event of a log as data, one row an event."""
    from forensics import pipeline
    from forensics.views import export
    from forensics.views.output import destination, whole_file
    from forensics.views.progress import ReadingProgress

    inputs = _inputs(paths, output)
    table = format or _table_of(output)
    if table is Table.parquet and output in (None, "-"):
        raise typer.BadParameter("parquet needs a file: add -o FILE")
    with ReadingProgress(quiet) as progress:
        read = pipeline.events(inputs, progress)
        rows = (export.row(source.path, event) for source, event in read)
        if table is Table.parquet:
            with whole_file(str(output)) as part:
                export.write_parquet(rows, part)
            return
        write = export.write_csv if table is Table.csv else export.write_ndjson
        with destination(output) as out:
            write(rows, out)


@app.command()
@guarded
def coverage(
    context: typer.Context,
    paths: Paths = None,
    format: AsFormat = Format.text,
    unknown: Annotated[
        int, typer.Option("--unknown", metavar="N", min=0, help="Shapes of unknown lines to show.")
    ] = 20,
    output: Output = None,
    color: AsColor = Color.auto,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Show how much of each log was understood, and what was not."""
    from forensics.views import coverage as view
    from forensics.views.console import console_for
    from forensics.views.output import destination

    settings = site(context)
    diagnosis = analyzed(paths, quiet, output, settings.for_rules())
    with destination(output) as out:
        if format is Format.json:
            out.write(view.render_json(diagnosis, unknown))
        else:
            view.show(diagnosis, console_for(out, settings["color"]), unknown)


def analyzed(
    paths: list[str] | None, quiet: bool, output: str | None, settings: Settings
) -> Diagnosis:
    """The whole line over some inputs, with a progress bar."""
    from forensics import pipeline
    from forensics.views.progress import ReadingProgress

    inputs = _inputs(paths, output)
    with ReadingProgress(quiet) as progress:
        return pipeline.analyze(inputs, settings, progress)


def _inputs(paths: list[str] | None, output: str | None) -> list[str]:
    """The inputs as given; refuses none at all, and an output that would overwrite one."""
    if not paths:
        raise typer.BadParameter("name a log or a folder, or - for standard input")
    if output and any(
        os.path.exists(output) and os.path.exists(path) and os.path.samefile(path, output)
        for path in paths
    ):
        raise typer.BadParameter(f"-o {output} is one of the inputs")
    return paths


def keep_run(diagnosis: Diagnosis, number: int) -> None:
    """Leaves one launch of the input; refuses a number that none has."""
    kept = [report for report in diagnosis.reports if report.run.number == number]
    if not kept:
        found = len(diagnosis.reports)
        raise typer.BadParameter(
            f"--run {number}: the input has {found} launch{'es' * (found != 1)}"
        )
    diagnosis.reports = kept


def at_bar(diagnosis: Diagnosis, bar: str) -> bool:
    """Whether a finding reaches the bar."""
    from forensics.findings import SEVERITIES

    worst = diagnosis.worst()
    if bar == "never" or worst is None:
        return False
    order: list[str] = [*SEVERITIES]
    return order.index(worst) >= order.index(bar)


def _table_of(output: str | None) -> Table:
    suffix = Path(output or "").suffix.removeprefix(".")
    return Table(suffix) if suffix in {table.value for table in Table} else Table.ndjson
