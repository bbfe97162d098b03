"""The commands for launches that are running: `watch`, `run`, `replay`."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from forensics.cli.live_options import (
    Bar,
    Command,
    End,
    EndWhen,
    FailAt,
    GiveUp,
    Grace,
    IgnorePast,
    InTimeline,
    KeepLog,
    LiveAs,
    Logs,
    OnFinding,
    QuietLive,
    StartLimit,
    StopOn,
    Until,
    WaitFor,
)
from forensics.cli.options import AsColor, Color, Debug, LiveFormat, ModelConfig
from forensics.cli.program import NOT_A_LOG, app, guarded
from forensics.cli.site import site
from forensics.cli.telling import hook, run_view, sinks, watch_view

if TYPE_CHECKING:
    from collections.abc import Callable

    from forensics.findings import Severity
    from forensics.live.notices import Notice, Verdict

    Tell = Callable[[Notice], None]


@app.command()
@guarded
def watch(
    context: typer.Context,
    logs: Logs,
    until: WaitFor = Until.ready,
    timeout: GiveUp = None,
    fail_on: FailAt = Bar.critical,
    format: LiveAs = LiveFormat.text,
    quiet: QuietLive = False,
    on_finding: OnFinding = None,
    ignore_past: IgnorePast = False,
    model_config: ModelConfig = None,
    color: AsColor = Color.auto,
    debug: Debug = False,
) -> None:
    """Wait until a launch is ready, has failed or is about to fail, and say which.

    Exit code: 0 ready, 1 failed, 6 about to fail, 7 timed out.
    """
    from forensics.live.loop import follow
    from forensics.live.processes import WriterVigil
    from forensics.live.session import Session
    from forensics.live.watch import Goal, Watch
    from forensics.views.live.screen import Screen

    _no_folders(logs)
    goal = Goal(until.value, _severity(fail_on), timeout, None, ignore_past)
    settings = site(context)
    session = Session(logs, settings.for_rules())
    with hook(on_finding) as hand_over, watch_view(format, quiet, settings["color"]) as view:
        vigil = WriterVigil()
        watching = Watch(session, goal, _both(view.tell, hand_over), vigil=vigil)
        draw = (lambda: view.draw(watching.state())) if isinstance(view, Screen) else None
        verdict = follow(logs, session, watching, vigil, draw)
        view.tell(verdict)
    gc.freeze()  # or Python's end looks through all that was read, while somebody waits
    _exit(verdict, watching.is_log)


@app.command(context_settings={"allow_interspersed_args": False})
@guarded
def run(
    context: typer.Context,
    command: Command,
    log: KeepLog = None,
    until: EndWhen = End.exit,
    timeout: StartLimit = None,
    stop_on: StopOn = Bar.never,
    grace: Grace = 15.0,
    format: LiveAs = LiveFormat.text,
    quiet: QuietLive = False,
    on_finding: OnFinding = None,
    tui: InTimeline = False,
    model_config: ModelConfig = None,
    color: AsColor = Color.auto,
    debug: Debug = False,
) -> None:
    """Start a launch, pass its output on, keep its log, and say how it ends.

    Exit code: 0 ended well, 1 failed, 6 ended on a precursor, 7 timed out. With --format ndjson
    the events have standard output, and the command's output goes to standard error.
    """
    from forensics.live.session import Session
    from forensics.live.supervise import Plan, Supervisor
    from forensics.live.surroundings import surroundings_of
    from forensics.live.watch import Goal, Watch

    settings = site(context)
    path = str(log or _default_log())
    env = {"PYTHONUNBUFFERED": "1", **os.environ}
    goal = Goal(_goal_of(until), _severity(stop_on), start_timeout_s=timeout)
    if tui:
        from forensics.cli.tui import show_launch

        plan = Plan(command, path, env, grace, until is not End.exit, stop_on is not Bar.never)
        raise typer.Exit(show_launch(context, plan, goal))
    session = Session([path], settings.for_rules(), surroundings_of(command, env).add_to)
    with hook(on_finding) as hand_over:
        view = run_view(format, quiet, settings["color"])
        watching = Watch(session, goal, _both(view, hand_over))
        plan = Plan(command, path, env, grace, until is not End.exit, stop_on is not Bar.never)
        verdict = Supervisor(plan, watching, sinks(format, quiet)).run()
        view(verdict)
    raise typer.Exit(verdict.exit_code)


@app.command()
@guarded
def replay(
    log: Annotated[str, typer.Argument(metavar="LOG", help="A finished log; - reads a pipe.")],
    into: Annotated[Path, typer.Option("--into", metavar="FILE", help="The file to write.")],
    speed: Annotated[
        float, typer.Option("--speed", metavar="N", min=0.001, help="So many times as fast.")
    ] = 1.0,
    longest_pause: Annotated[
        float | None,
        typer.Option("--longest-pause", metavar="S", min=0.0, help="Cut longer pauses to S."),
    ] = None,
    debug: Debug = False,
) -> None:
    """Write a log anew at its own pace, as if its launch were running."""
    from forensics.live.replay import replay as write
    from forensics.live.replay import timed_lines

    if into.exists() and os.path.exists(log) and into.samefile(log):
        raise typer.BadParameter("--into is the log itself")
    with into.open("wb", buffering=0) as out:
        write(timed_lines(log), out, speed, longest_pause_s=longest_pause)


def _both(first: Tell, second: Tell) -> Tell:
    def tell(notice: Notice) -> None:
        first(notice)
        second(notice)

    return tell


def _no_folders(logs: list[str]) -> None:
    """Refuses folders: which of their files is being written cannot be told."""
    for path in logs:
        if os.path.isdir(path):
            raise typer.BadParameter(f"{path} is a folder: name the log that is being written")


def _goal_of(end: End) -> Literal["ready", "serving", "failed"]:
    """What is waited for before a command is ended; one that runs on is watched until it fails."""
    match end:
        case End.ready:
            return "ready"
        case End.serving:
            return "serving"
        case End.exit:
            return "failed"


def _severity(bar: Bar) -> Severity | None:
    match bar:
        case Bar.critical:
            return "critical"
        case Bar.warning:
            return "warning"
        case Bar.never:
            return None


def _exit(verdict: Verdict, is_log: bool) -> None:
    """The exit code of a watched log; what was no log at all has one of its own."""
    if not is_log and verdict.exit_code == 1:
        from forensics.views.console import error_line

        error_line("nothing in the input was recognised as a log of SGLang")
        raise typer.Exit(NOT_A_LOG)
    raise typer.Exit(verdict.exit_code)


def _default_log() -> Path:
    """A new file in the user's state folder."""
    from datetime import datetime

    from platformdirs import user_state_path

    folder = user_state_path("sglang-forensics") / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}.log"
