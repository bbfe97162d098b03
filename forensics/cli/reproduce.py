"""The command `reproduce`: a launch is made again, and once more with one thing changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from forensics.cli.options import AsColor, AsFormat, Color, Debug, Format, ModelConfig
from forensics.cli.program import USAGE, app, guarded
from forensics.cli.reproduce_options import (
    AllowForeignCode,
    Confirm,
    DryRun,
    Env,
    Folder,
    Force,
    Goal,
    KnownGood,
    LaunchFile,
    Load,
    Logs,
    Margin,
    On,
    Python,
    RemedyNumber,
    Resume,
    RunNumber,
    Scale,
    Script,
    Search,
    Set,
    SkipControl,
    Timeout,
    Unset,
    Until,
    With,
    Yes,
)
from forensics.cli.site import site

if TYPE_CHECKING:
    from forensics.reproduce.model import Goal as GoalName

_BESIDE_RESUME = frozenset(
    {
        *("resume", "env", "with_", "dry_run", "yes", "allow_foreign_code", "force"),
        *("format", "color", "debug"),
    }
)
"""Parameters that ask and show; `env` and `with_` give again the secrets that no folder keeps."""


@app.command()
@guarded
def reproduce(
    context: typer.Context,
    logs: Logs = None,
    launch: LaunchFile = None,
    run: RunNumber = None,
    python: Python = None,
    env: Env = None,
    with_: With = None,
    remedy: RemedyNumber = None,
    set: Set = None,
    unset: Unset = None,
    search: Search = None,
    known_good: KnownGood = None,
    margin: Margin = 0.0,
    goal: Until = None,
    load: Load = None,
    confirm: Confirm = 1,
    skip_control: SkipControl = False,
    timeout: Timeout = None,
    on: On = None,
    scale: Scale = False,
    model_config: ModelConfig = None,
    folder: Folder = None,
    resume: Resume = None,
    dry_run: DryRun = False,
    script: Script = None,
    yes: Yes = False,
    allow_foreign_code: AllowForeignCode = False,
    force: Force = False,
    format: AsFormat = Format.text,
    color: AsColor = Color.auto,
    debug: Debug = False,
) -> None:
    """Make a failed launch again, then with one thing changed, and say whether the fix holds.

    Shows the plan first; nothing runs without a yes. Exit code: 0 the fix holds, or only the plan
    was shown; 4 it does not; 5 nothing was decided.
    """
    from forensics.cli.reproducing import Asking, go_on, new_plan
    from forensics.memory.model_shape import ShapeError
    from forensics.reproduce.choosing import PlanError
    from forensics.reproduce.folder import FolderError
    from forensics.reproduce.plan import Wishes
    from forensics.reproduce.transport import TransportError
    from forensics.views.console import error_line

    settings = site(context)
    asking = Asking(
        settings, dry_run, script, yes, allow_foreign_code, force, format is Format.json, logs or []
    )
    wishes = Wishes(
        remedy=remedy,
        settings=set or (),
        unset=unset or (),
        goal=_goal(goal, load),
        load=load,
        confirmations=confirm,
        skip_control=skip_control,
        timeout_s=timeout,
        search=_search(search, known_good, margin),
        known_good=known_good,
        margin_gib=margin,
        own_env=_variables(env),
        everywhere=with_ or (),
        on=on,
        scale=scale,
    )
    try:
        if resume is not None:
            _alone(context)
            code = go_on(asking, resume, _variables(env), with_ or ())
        else:
            code = new_plan(asking, wishes, launch, run, python, folder)
    except (PlanError, FolderError, TransportError, ShapeError) as error:
        error_line(str(error))
        code = USAGE
    raise typer.Exit(code)


def _goal(goal: Goal | None, load: int | None) -> GoalName | None:
    """The goal; a load is one of its own."""
    if load is not None and goal not in (None, Goal.load):
        raise typer.BadParameter("--load N goes with the goal load alone")
    return goal.value if goal is not None else None


def _search(search: str | None, known_good: float | None, margin: float) -> str | None:
    if search is None and (known_good is not None or margin):
        raise typer.BadParameter("--known-good and --margin go with --search FLAG")
    return search


def _variables(texts: list[str] | None) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals or not name.replace("_", "a").isalnum() or name[0].isdigit():
            raise typer.BadParameter(f"--env {name}: give it as NAME=VALUE")
        found[name] = value
    return found


def _alone(context: typer.Context) -> None:
    """Refuse what would change a plan that is fixed."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        given = source is not None and source.name == "COMMANDLINE"
        if given and parameter.name not in _BESIDE_RESUME:
            what = parameter.opts[0] if parameter.opts[0].startswith("-") else "a log"
            raise typer.BadParameter(f"--resume has its plan, which is fixed: {what} does not go")
