"""The folder of a reproduction: what was planned, what each trial said, what came of it.

    plan.json            fixed before the first launch; a search appends its trials, each before
                         it runs
    control/log          the launch's output, as it came
    control/events.ndjson, environment.json, result.json
    reproduction.json    plan, results and verdict
    report.md            the same for people

A trial with a `result.json` is finished. One without was cut short: its folder is put aside and
it runs again. Nothing here holds a secret but the logs, which are kept as they came; so the folder
is for its owner alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import tempfile
from collections.abc import Iterator
from json import JSONDecodeError, loads
from pathlib import Path

from pydantic import ValidationError

from forensics.findings import Model
from forensics.reproduce.model import AGAIN, Reproduction, ReproductionPlan, TrialPlan, TrialResult
from forensics.reproduce.takedown import Herd
from forensics.views.json import dumps

PLAN, LOG, ENVIRONMENT, RESULT = "plan.json", "log", "environment.json", "result.json"
REPRODUCTION, REPORT = "reproduction.json", "report.md"

_LOCK = ".lock"
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,62}[a-z0-9])?")


class FolderError(Exception):
    """The folder can't be used; the text is one line for the user."""


def checked_name(name: str) -> str:
    """A trial's name if it can be a folder's, inside and visible. Raises FolderError."""
    if not _NAME.fullmatch(name) or ".." in name or name in _files():
        raise FolderError(f"not a name for a trial: {name[:80]!r}")
    return name


def _files() -> tuple[str, ...]:
    return PLAN, REPRODUCTION, REPORT


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all. Raises OSError."""
    handle, draft = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise


class RunFolder:
    """One folder, held by one program at a time: use it in a `with` of `held`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextlib.contextmanager
    def held(self) -> Iterator[RunFolder]:
        """Keep others out. Raises FolderError where another program is at work."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = open(self.path / _LOCK, "a+", encoding="utf-8")  # noqa: SIM115
        except OSError as error:
            raise FolderError(f"{self.path}: {error.strerror}") from error
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                lock.seek(0)
                who = lock.read(20).strip() or "unknown"
                said = f"{self.path} is in use by another forensics, pid {who}"
                raise FolderError(said) from error
            lock.truncate(0)
            lock.write(f"{os.getpid()}\n")
            lock.flush()
            yield self

    def check_new(self) -> None:
        """Whether a plan could begin here, told before anybody is asked. Raises FolderError."""
        self._check_no_plan()
        nearest = next(p for p in (self.path, *self.path.absolute().parents) if p.exists())
        if not nearest.is_dir():
            raise FolderError(f"{nearest} is not a folder")
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise FolderError(f"{self.path}: {nearest} cannot be written to")

    def begin(self, plan: ReproductionPlan) -> None:
        """Fix the plan. Raises FolderError where there is one already."""
        self._check_no_plan()
        self.keep_plan(plan)

    def _check_no_plan(self) -> None:
        if (self.path / PLAN).exists():
            raise FolderError(f"{self.path} holds a plan already: resume it, or name a new folder")

    def keep_plan(self, plan: ReproductionPlan) -> None:
        """Write the plan, without its secrets. Raises FolderError, OSError."""
        names = [checked_name(trial.name) for trial in plan.trials]
        if len(set(names)) < len(names):
            raise FolderError("two trials of the plan have one name")
        write(self.path / PLAN, _json(plan))

    def plan(self) -> ReproductionPlan:
        """The plan as it was fixed. Raises FolderError."""
        try:
            text = (self.path / PLAN).read_text(encoding="utf-8")
            plan = ReproductionPlan.model_validate_json(text)
        except (OSError, ValueError) as error:
            raise FolderError(f"{self.path} holds no plan that can be resumed") from error
        for trial in plan.trials:
            checked_name(trial.name)
        return plan

    def result(self, name: str) -> TrialResult | None:
        """What a finished trial came to; None if it is to run."""
        try:
            text = (self._of(name) / RESULT).read_text(encoding="utf-8")
            result = TrialResult.model_validate_json(text)
        except (OSError, ValidationError, UnicodeDecodeError):
            return None
        return None if result.outcome in AGAIN else result

    def trial_folder(self, trial: TrialPlan) -> Path:
        """An empty folder for a trial; what an earlier try left is put aside."""
        folder = self._of(trial.name)
        if folder.exists():
            self._end_left_over(folder)
            number = 1
            while (aside := folder.with_name(f"{trial.name}.aside-{number}")).exists():
                number += 1
            folder.rename(aside)
        folder.mkdir(mode=0o700)
        return folder

    def keep_result(self, result: TrialResult) -> None:
        """Write what a trial came to: from now on it is finished."""
        write(self._of(result.name) / RESULT, _json(result))

    def keep_reproduction(self, reproduction: Reproduction) -> None:
        """Write the verdict with all that it rests on."""
        write(self.path / REPRODUCTION, _json(reproduction))

    def _of(self, name: str) -> Path:
        folder = self.path / checked_name(name)
        if folder.is_symlink():
            raise FolderError(f"{folder} is a link: it would lead outside the run's folder")
        return folder

    def _end_left_over(self, folder: Path) -> None:
        """End what a try left running when the tool and its guardian were both killed."""
        try:
            mark = loads((folder / ENVIRONMENT).read_text(encoding="utf-8"))["mark"]
            herd = Herd(mark)
        except (OSError, ValueError, KeyError, TypeError, JSONDecodeError):
            return
        herd.end(3.0)


def _json(model: Model) -> str:
    """A model as a document; `dumps` removes secrets, from argument lists too."""
    return dumps(model.model_dump(mode="json", by_alias=True), indent=2) + "\n"
