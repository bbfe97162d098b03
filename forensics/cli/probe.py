"""The command `probe`: what graph capture takes, tried on the GPU itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from forensics.cli.options import AsColor, AsFormat, Color, Debug, Format, ModelConfig, RunNumber
from forensics.cli.program import FOUND, USAGE, app, guarded
from forensics.cli.site import site

if TYPE_CHECKING:
    from forensics.incident import Run
    from forensics.probe.geometry import Asked
    from forensics.probe.model import ProbeReport

Log = Annotated[
    str | None, typer.Argument(metavar="[LOG]", help="The log of a launch: its sizes are tried.")
]
Fraction = Annotated[
    float | None,
    typer.Option("--mem-fraction-static", metavar="F", min=0.01, max=0.999, help="Another one."),
]
LargestBatch = Annotated[
    int | None,
    typer.Option("--max-bs", metavar="N", min=1, max=8192, help="Largest batch captured."),
]
Batches = Annotated[
    str | None, typer.Option("--bs", metavar="N,N...", help="The batch sizes captured.")
]
Backend = Annotated[
    str | None, typer.Option("--attention-backend", metavar="NAME", help="triton, flashinfer.")
]
TpSize = Annotated[
    int | None,
    typer.Option("--tp", metavar="N", min=1, max=1024, help="Ranks a model is split on."),
]
Context = Annotated[
    int | None, typer.Option("--context-length", metavar="N", min=1, help="Tokens of a request.")
]
Weights = Annotated[
    float | None, typer.Option("--weights", metavar="GIB", min=0, help="Of one rank.")
]
Pool = Annotated[float | None, typer.Option("--kv-pool", metavar="GIB", min=0, help="Of one rank.")]
Other = Annotated[
    float | None, typer.Option("--other", metavar="GIB", min=0, help="Taken beside these.")
]
Free = Annotated[
    float | None,
    typer.Option("--free", metavar="GIB", min=0.01, help="Free memory that capture begins with."),
]
Device = Annotated[int, typer.Option("--device", metavar="N", min=0, help="The GPU to use.")]
Dry = Annotated[bool, typer.Option("--dry-run", help="Show what would be tried; needs no GPU.")]


@app.command()
@guarded
def probe(
    context: typer.Context,
    log: Log = None,
    model_config: ModelConfig = None,
    mem_fraction_static: Fraction = None,
    max_bs: LargestBatch = None,
    bs: Batches = None,
    attention_backend: Backend = None,
    tp: TpSize = None,
    context_length: Context = None,
    weights: Weights = None,
    kv_pool: Pool = None,
    other: Other = None,
    free: Free = None,
    device: Device = 0,
    run: RunNumber = None,
    dry_run: Dry = False,
    format: AsFormat = Format.text,
    color: AsColor = Color.auto,
    debug: Debug = False,
) -> None:
    """Try on the GPU what graph capture takes, without a model: a minute instead of a launch.

    Fills the memory as a launch does, then captures real CUDA graphs with a stand-in of the
    model's shape. Needs PyTorch, a GPU that nothing else uses, and the model's config.json.
    Exit code: 0 captured, 1 out of memory.
    """
    from forensics.cli.model_config import config_of
    from forensics.memory.model_shape import ShapeError
    from forensics.probe.geometry import Asked
    from forensics.probe.model import ProbeError
    from forensics.views.console import console_for, error_line
    from forensics.views.output import destination
    from forensics.views.probe import probe_json, show_probe

    settings = site(context)
    asked = Asked(
        fraction=mem_fraction_static,
        largest_batch=max_bs,
        batch_sizes=_numbers(bs),
        backend=attention_backend,
        tp_size=tp,
        context_len=context_length,
        weights_gib=weights,
        kv_pool_gib=kv_pool,
        other_gib=other,
        free_gib=free,
    )
    try:
        found = _launch(log, run)
        model = found.launch.get("model_path") if found else None
        config = config_of(settings["model_config"], model)
        report = _probed(found, config, asked, device, dry_run)
    except (ProbeError, ShapeError) as error:
        error_line(str(error))
        raise typer.Exit(USAGE) from None
    with destination(None) as out:
        if format is Format.json:
            out.write(probe_json(report))
        else:
            show_probe(report, console_for(out, settings["color"]))
    if report.outcome == "out-of-memory":
        raise typer.Exit(FOUND)


def _probed(
    run: Run | None, config: dict[str, Any], asked: Asked, device: int, dry_run: bool
) -> ProbeReport:
    from forensics.probe.geometry import target_of
    from forensics.probe.model import ProbeReport

    target = target_of(run, config, asked)
    if dry_run:
        return ProbeReport(
            outcome="planned",
            geometry=target.geometry,
            foretold=target.foretold,
            notes=target.notes,
        )
    from forensics.probe.probing import probe as try_on
    from forensics.probe.torch_card import first_card

    return try_on(target, first_card(device))


def _launch(log: str | None, number: int | None) -> Run | None:
    """The launch to try: the last one that began to capture, else the last."""
    if log is None:
        return None
    from forensics import pipeline
    from forensics.probe.model import ProbeError

    runs = pipeline.analyze([log]).incident.runs
    if number is not None:
        runs = [one for one in runs if one.number == number]
        if not runs:
            raise ProbeError(f"{log}: there is no launch {number}")
    begun = [one for one in runs if any(r.capture_begin_gib for r in one.ledgers())]
    return (begun or runs)[-1]


def _numbers(text: str | None) -> list[int]:
    if text is None:
        return []
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() and 0 < int(part) <= 8192 for part in parts):
        raise typer.BadParameter(f"--bs {text}: give whole numbers from 1 to 8192, with commas")
    return [int(part) for part in parts]
