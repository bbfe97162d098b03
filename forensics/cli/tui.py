"""The interactive timeline: `tui`, and what `run --tui` shows."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from forensics.cli.options import Bar, Debug, Ignore, ModelConfig, Select
from forensics.cli.program import FOUND, app, guarded
from forensics.cli.site import site

if TYPE_CHECKING:
    from forensics.diagnosis import Diagnosis
    from forensics.live.supervise import Plan
    from forensics.live.watch import Goal
    from forensics.tui.engine import Engine

FollowLog = Annotated[
    bool, typer.Option("--follow", help="The log still grows: follow it, as watch does.")
]
FailBar = Annotated[
    Bar, typer.Option("--fail-on", help="Exit with 1 from this severity on, once the log is read.")
]


@app.command()
@guarded
def tui(
    context: typer.Context,
    logs: Annotated[
        list[str], typer.Argument(metavar="LOG...", help="Logs or folders; - reads a pipe.")
    ],
    follow: FollowLog = False,
    fail_on: FailBar = Bar.never,
    model_config: ModelConfig = None,
    select: Select = None,
    ignore: Ignore = None,
    debug: Debug = False,
) -> None:
    """Look at a launch: its ranks on one clock, memory, findings, the log itself.

    `?` shows the keys. Exit code: 0 unless --fail-on says otherwise; with --follow that of watch.
    """
    _needs_terminal()
    follow = follow or "-" in logs
    pipe = _keys_beside_pipe(logs) if "-" in logs else None
    _check(logs, follow)

    def make() -> Engine:
        settings = site(context).for_rules()
        if follow:
            from forensics.tui.following import LogFollower

            return LogFollower(logs, settings, pipe)
        from forensics.tui.engine import Reader

        return Reader(logs, settings)

    from forensics.tui.program import show

    engine = show(make, f"forensics: reading {_names(logs)} ...").engine
    verdict = engine.wait() if engine else None
    if verdict is not None:
        raise typer.Exit(verdict.exit_code)
    if _at_bar(getattr(engine, "diagnosis", None), fail_on):
        raise typer.Exit(FOUND)


def show_launch(context: typer.Context, plan: Plan, goal: Goal) -> int:
    """Start a command and show it; the exit code of its verdict once it has ended."""
    _needs_terminal()
    from forensics.tui.program import show
    from forensics.views.console import error_line

    def make() -> Engine:
        from forensics.live.surroundings import surroundings_of
        from forensics.tui.launched import Launched

        around = surroundings_of(plan.command, plan.env)
        return Launched(plan, goal, site(context).for_rules(), around.add_to)

    engine = show(make, f"forensics: starting {plan.command[0]} ...").engine
    if engine is None:
        return 0
    if engine.runs_command:
        error_line("ending the command")
    verdict = engine.wait()
    error_line(f"the log of the command is {plan.log}")
    return verdict.exit_code if verdict else 0


def _needs_terminal() -> None:
    if not sys.stdout.isatty():
        raise typer.BadParameter("the timeline needs a terminal; `forensics analyze` needs none")


def _check(logs: list[str], follow: bool) -> None:
    """Errors that can be told before anything is drawn. Raises `InputError`."""
    if not follow and not all(os.path.isfile(path) for path in logs):
        from forensics.reading import find_sources  # not loaded for files that are there

        find_sources(logs)
    for path in logs:
        if follow and os.path.isdir(path):
            raise typer.BadParameter(f"{path} is a folder: name the log that is being written")


def _keys_beside_pipe(logs: list[str]) -> int:
    """The log comes by standard input: keys come from the terminal itself."""
    if sys.stdin.isatty():
        raise typer.BadParameter("- reads a pipe, and standard input is the keyboard")
    from forensics.tui.terminal import keyboard_beside_pipe

    return keyboard_beside_pipe()


def _names(logs: list[str]) -> str:
    names = [os.path.basename(path.rstrip("/")) or path for path in logs]
    text = ", ".join(names[:3])
    return "".join(char for char in text if char.isprintable())


def _at_bar(diagnosis: Diagnosis | None, bar: Bar) -> bool:
    """Whether a finding reaches the bar."""
    worst = diagnosis.worst() if diagnosis else None
    order = ("info", "warning", "critical")
    return bar is not Bar.never and worst is not None and order.index(worst) >= order.index(bar)
