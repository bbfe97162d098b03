"""What is to be reproduced: a launch of a log with its failure, or a launch that the user has."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from forensics.diagnosis import Diagnosis, RunReport
from forensics.launch import Launch, with_changes
from forensics.redact import REDACTED
from forensics.releases import Release
from forensics.reproduce.choosing import PlanError
from forensics.reproduce.figures import measured
from forensics.reproduce.judge import failure_of
from forensics.reproduce.model import Failure, Figures
from forensics.reproduce.rebuild import LaunchError, Rebuilt, from_file, from_run
from forensics.reproduce.wished import of_words

_BAD = ("failed", "hung", "degraded")
_SMI_GIB = 0.65
"""What nvidia-smi's total is above the allocator's (memory model, section 1)."""


@dataclass(slots=True)
class Subject:
    """A launch that can be made again."""

    launch: Launch
    """Its `command` is the argument list that is run."""
    release: Release
    """Whose words that command is in."""
    env: dict[str, str] = field(default_factory=dict)
    unset: list[str] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)
    run: int | None = None
    report: RunReport | None = None
    failure: Failure | None = None
    figures: Figures = field(default_factory=Figures)
    total_gib: float | None = None
    """Of a card, as an allocator's message says."""
    notes: list[str] = field(default_factory=list)

    @property
    def argv(self) -> list[str]:
        """The argument list of the control."""
        return list(self.launch.command or [])

    def in_words_of(self, release: Release, command: list[str]) -> Subject:
        """The same with its command in the words of another release."""
        launch = dataclasses.replace(
            self.launch, command=command, release=release.version, release_range=None
        )
        return dataclasses.replace(self, launch=launch, release=release)


def of_log(
    diagnosis: Diagnosis,
    paths: Sequence[str],
    number: int | None = None,
    launch: Path | None = None,
) -> Subject:
    """A launch of a log: the numbered one, else the last that failed, else the last.

    `launch` names a file with the command, where the user has that. Raises PlanError where the
    launch is not there, or where nothing shows how it was started.
    """
    report = _chosen(diagnosis, number)
    run = report.run
    total = min((one.total_gib for one in run.ledgers() if one.total_gib), default=None)
    if launch is not None:
        subject = of_file(launch, run.launch.release)
    else:
        smi_mib = None if total is None else (total + _SMI_GIB) * 1024
        subject = _subject(_rebuilt(lambda: from_run(run, smi_mib)))
    subject.logs, subject.run, subject.report = list(paths), run.number, report
    subject.failure = failure_of(report) if run.outcome in _BAD else None
    subject.figures, subject.total_gib = measured(run), total
    return subject


def of_file(path: Path, version: str | None = None) -> Subject:
    """A launch from a script or a command that the user has; raises PlanError."""
    return _subject(_rebuilt(lambda: from_file(path, version)))


def _rebuilt(make: Callable[[], Rebuilt]) -> Rebuilt:
    try:
        return make()
    except LaunchError as error:
        raise PlanError(str(error)) from None


def with_python(subject: Subject, python: str) -> None:
    """Start the launch with another interpreter; of `sglang serve` its neighbour is taken."""
    launch, argv = subject.launch, subject.argv
    name = PurePath(argv[0]).name
    if name.startswith("python"):
        argv[0] = python
    elif name == "sglang":
        argv[0] = str(PurePath(python).with_name("sglang")) if "/" in python else "sglang"
    else:
        raise PlanError(f"--python does not fit a launch that begins with {argv[0]}")
    program = argv[: len(launch.program)]
    subject.launch = dataclasses.replace(launch, command=argv, program=program)


def with_settings(subject: Subject, words: Sequence[str]) -> None:
    """Set flags and variables of the user for every trial; raises PlanError."""
    choice = of_words(words, (), subject.launch)
    subject.launch = with_changes(subject.launch, choice.flags, {})
    with_env(subject, {name: text for name, text in choice.env.items() if text is not None})


def with_env(subject: Subject, env: Mapping[str, str]) -> None:
    """Set variables of the user for every trial."""
    subject.env = {**subject.env, **env}
    subject.unset = [name for name in subject.unset if name not in env]


def _subject(rebuilt: Rebuilt) -> Subject:
    """A launch as it was rebuilt; a value that the log hides is not set."""
    env = {name: value for name, value in rebuilt.env.items() if REDACTED not in value}
    notes = [f"From {rebuilt.source}.", *rebuilt.notes]
    if hidden := sorted(set(rebuilt.env) - set(env)):
        notes.append(f"Not set, since the log hides it: {', '.join(hidden)} (--env sets it).")
    launch = dataclasses.replace(rebuilt.launch, command=list(rebuilt.argv), env=dict(env))
    return Subject(launch, launch.table(), env, list(rebuilt.unset_env), notes=notes)


def _chosen(diagnosis: Diagnosis, number: int | None) -> RunReport:
    reports = diagnosis.reports
    if number is not None:
        found = [report for report in reports if report.run.number == number]
        if not found:
            has = f"{len(reports)} launch{'es' * (len(reports) != 1)}"
            raise PlanError(f"--run {number}: the input has {has}")
        return found[0]
    if not reports:
        raise PlanError("no launch was found in the input")
    bad = [report for report in reports if report.run.outcome in _BAD]
    return bad[-1] if bad else reports[-1]
