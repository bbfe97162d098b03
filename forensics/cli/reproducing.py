"""What `reproduce` does: make the plan, show it, ask, run it, show the verdict."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from forensics.cli.program import USAGE
from forensics.reproduce.choosing import PlanError
from forensics.views.clean import one_line
from forensics.views.console import console_for, error_line

if TYPE_CHECKING:
    from forensics.reproduce.model import Difference, Reproduction, ReproductionPlan
    from forensics.reproduce.plan import Wishes
    from forensics.reproduce.preflight import Preflight
    from forensics.reproduce.run import Complete, Extras
    from forensics.reproduce.scale_plan import Scaling
    from forensics.reproduce.subject import Subject
    from forensics.settings import Effective

NOTHING_DECIDED = 5
SHOWN = 0
_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Asking:
    """What the user has said of asking and showing."""

    settings: Effective
    dry_run: bool
    script: str | None
    """Where to write a script instead of running anything."""
    yes: bool
    allow_foreign_code: bool
    force: bool
    as_json: bool
    logs: Sequence[str]

    @property
    def has_terminal(self) -> bool:
        """Whether somebody is there to be asked."""
        return sys.stdin.isatty() and sys.stderr.isatty()


def new_plan(
    asking: Asking,
    wishes: Wishes,
    launch: Path | None,
    run: int | None,
    python: str | None,
    folder: Path | None,
) -> int:
    """Plan, show, ask, run; gives the exit code. Raises PlanError, FolderError."""
    from forensics.reproduce.folder import RunFolder
    from forensics.reproduce.plan import make_plan
    from forensics.reproduce.preflight import preflight
    from forensics.reproduce.subject import with_env, with_python, with_settings
    from forensics.reproduce.transport import Transport

    subject = _subject(asking, launch, run)
    if python is not None:
        with_python(subject, python)
    with_env(subject, wishes.own_env)
    with_settings(subject, wishes.everywhere)
    place = folder or _new_folder([*asking.logs, str(launch or "")])
    if not asking.dry_run and asking.script is None:
        RunFolder(place).check_new()
    wrap = Transport.parse(wishes.on).ask if wishes.on else None
    looked = preflight(subject, wishes.own_env, str(place.absolute()), wrap)
    if asking.script is not None:
        looked.subject = subject  # it is taken elsewhere: in the words of the log's release
    scaling = _scaling(asking, wishes, looked, place) if wishes.scale else None
    plan = make_plan(wishes, looked, scaling.trials if scaling else None)
    plan = scaling.plan(plan) if scaling else plan
    if asking.script is not None:
        return _written(asking, plan, asking.script)
    if (stop := _shown(asking, plan)) is not None:
        return stop
    if scaling is not None:
        scaling.write_model()
    return _carried_out(asking, plan, place)


def go_on(asking: Asking, folder: Path, env: Mapping[str, str], settings: Sequence[str]) -> int:
    """Go on with the plan of a folder; gives the exit code. Raises FolderError, PlanError.

    `env` and `settings` give again what the folder does not keep: secrets.
    """
    from forensics.reproduce.folder import RunFolder
    from forensics.reproduce.resuming import completed

    kept = RunFolder(folder.absolute())

    def complete(plan: ReproductionPlan) -> ReproductionPlan:
        done = [trial.name for trial in plan.trials if kept.result(trial.name) is not None]
        return completed(plan, done, env, settings, os.environ if plan.on is None else {})

    plan = kept.plan()
    if not asking.dry_run:
        complete(plan)
    if (stop := _shown(asking, plan)) is not None:
        return stop
    if plan.cwd is not None:
        os.chdir(plan.cwd)  # the commands' relative paths go by it
    return _carried_out(asking, plan, kept.path, complete)


def _subject(asking: Asking, launch: Path | None, run: int | None) -> Subject:
    """The launch of the logs, with the user's own command in its place where there is one."""
    from forensics import pipeline
    from forensics.reproduce.subject import of_file, of_log
    from forensics.views.progress import ReadingProgress

    if launch is not None and not asking.logs:
        return of_file(launch)
    if not asking.logs:
        raise PlanError("name a log, or --launch FILE")
    with ReadingProgress(asking.as_json) as progress:
        diagnosis = pipeline.analyze(asking.logs, asking.settings.for_rules(), progress)
    return of_log(diagnosis, asking.logs, run, launch)


def _scaling(asking: Asking, wishes: Wishes, looked: Preflight, place: Path) -> Scaling:
    """How the launch is scaled down to this machine. Raises PlanError, ShapeError."""
    from forensics.cli.model_config import config_of
    from forensics.reproduce.scale import Here
    from forensics.reproduce.scale_plan import scaling_of

    others = [("--search", wishes.search), ("--on", wishes.on), ("--script", asking.script)]
    if clash := next((name for name, value in others if value is not None), None):
        raise PlanError(f"--scale does not go with {clash}")
    subject, gpus = looked.subject, looked.found.machine.gpus
    config = config_of(asking.settings["model_config"], subject.launch.get("model_path"))
    free = min((gpu.free_gib for gpu in gpus), default=0.0)
    folder = place.absolute().with_name(f"{place.name}-model")
    here = Here(len(gpus), free)
    return scaling_of(config, subject.launch, subject.figures, subject.total_gib, here, folder)


def _written(asking: Asking, plan: ReproductionPlan, script: str) -> int:
    """Write the plan as a script, and show it where the script is not printed itself."""
    from forensics import __version__
    from forensics.reproduce.script_text import script_text
    from forensics.views.output import STDOUT, destination
    from forensics.views.reproduce.plan import show_plan

    try:
        text = script_text(plan, f"forensics {__version__}")
    except ValueError as error:
        raise PlanError(f"no script can hold this launch: {error}") from None
    with destination(script) as out:
        out.write(text)
    if script != STDOUT:
        show_plan(plan, console_for(sys.stdout, asking.settings["color"]))
        error_line(f"nothing ran; the script is {script}")
    return SHOWN


def _shown(asking: Asking, plan: ReproductionPlan) -> int | None:
    """Show the plan and ask; an exit code where it is not to run."""
    from forensics.views.reproduce.json import render
    from forensics.views.reproduce.plan import show_plan

    only_shown = asking.dry_run or not (asking.yes or asking.has_terminal)
    if asking.as_json and only_shown:
        sys.stdout.write(render(plan))
    elif not asking.as_json or not asking.yes:
        out = sys.stderr if asking.as_json else sys.stdout
        show_plan(plan, console_for(out, asking.settings["color"]))
    if asking.dry_run:
        return SHOWN
    blocking = [one for one in plan.differences if one.weight == "blocking"]
    if only_shown:
        more = " --allow-foreign-code" if plan.consents else ""
        how = f"add --yes{more} to run it"
        if blocking:
            how = f"it cannot run here ({_named(blocking)})"
        error_line(f"only the plan was shown, nothing ran; {how}")
        return SHOWN
    if blocking and not asking.force:
        named = _named(blocking)
        error_line(f"not run, since it cannot run here ({named}); --force runs it all the same")
        return NOTHING_DECIDED
    return _refused(asking, plan)


def _refused(asking: Asking, plan: ReproductionPlan) -> int | None:
    """Ask for what is not consented to yet; an exit code where it is refused."""
    if plan.consents and not asking.allow_foreign_code:
        named = ", ".join(consent.what for consent in plan.consents)
        if asking.yes:
            error_line(f"--yes does not cover foreign code ({named}): add --allow-foreign-code")
            return USAGE
        if not _agrees(f"Execute foreign code ({one_line(named)})?"):
            return SHOWN
    if asking.yes:
        return None
    count = len(plan.trials)
    what = "this launch" if count == 1 else f"these {count} launches"
    if plan.search is not None:
        what = f"this search, up to {count + plan.search.trials + 1} launches"
    return None if _agrees(f"Run {what}?") else SHOWN


def _agrees(question: str) -> bool:
    """Ask on the terminal; its end is a no. Raises KeyboardInterrupt."""
    try:
        agreed = typer.confirm(question, err=True)
    except typer.Abort as stop:
        typer.echo(err=True)
        if isinstance(stop.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        agreed = False
    if not agreed:
        error_line("nothing ran")
    return agreed


def _named(blocking: Sequence[Difference]) -> str:
    return "; ".join(f"{one.what}: {one.because}" for one in blocking)


def _carried_out(
    asking: Asking, plan: ReproductionPlan, folder: Path, again: Complete | None = None
) -> int:
    """Run it, or go on with it where `again` completes what is kept, and show what came of it."""
    from forensics.reproduce.run import resume, run_plan
    from forensics.views.reproduce.json import render
    from forensics.views.reproduce.progress import TrialsView
    from forensics.views.reproduce.verdict import show_verdict

    color = asking.settings["color"]
    extras = _extras(asking, plan)
    with TrialsView(console_for(sys.stderr, color)) as view:
        if again is not None:
            found = resume(folder, view.tell, extras, again)
        else:
            found = run_plan(plan, folder, view.tell, extras)
    _keep_report(found, folder)
    if asking.as_json:
        sys.stdout.write(render(found))
    else:
        show_verdict(found, str(folder), console_for(sys.stdout, color))
    return found.exit_code


def _extras(asking: Asking, plan: ReproductionPlan) -> Extras:
    from forensics.reproduce.elsewhere import terms_on
    from forensics.reproduce.run import Extras
    from forensics.reproduce.search import best, next_trial
    from forensics.reproduce.transport import Transport
    from forensics.reproduce.trial import Terms

    terms = Terms(settings=asking.settings.for_rules())
    if plan.on is not None:
        terms = terms_on(Transport.parse(plan.on), terms)
    extras = Extras(terms=terms)
    ask = plan.search
    if ask is not None:
        extras.next_search = lambda plan, results: next_trial(plan, results, ask)
        extras.best = best
    return extras


def _keep_report(found: Reproduction, folder: Path) -> None:
    from forensics.reproduce.folder import REPORT, write
    from forensics.views.reproduce.report import render_report

    write(folder / REPORT, render_report(found))


def _new_folder(names: Sequence[str]) -> Path:
    """A new folder among the user's state, named by the log, the time and this process."""
    from platformdirs import user_state_path

    stem = next((Path(name).stem for name in names if name not in ("", "-")), "launch")
    plain = _PLAIN.sub("-", stem).strip("-.")[:40] or "launch"
    state = user_state_path("sglang-forensics") / "reproduce"
    return state / f"{plain}-{datetime.now():%Y%m%d-%H%M%S}-{os.getpid()}"
