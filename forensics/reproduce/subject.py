"""What is to be reproduced: a launch of a log with its failure, or a launch that the user has."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from forensics.diagnosis import Diagnosis, RunReport
from forensics.incident import Run
from forensics.launch import Launch, with_changes
from forensics.launch.arguments import groups
from forensics.redact import REDACTED
from forensics.releases import Release, table
from forensics.reproduce.choosing import PlanError
from forensics.reproduce.figures import measured
from forensics.reproduce.judge import failure_of
from forensics.reproduce.model import Failure, Figures
from forensics.reproduce.wished import of_words


@dataclass
class Rebuilt:
    """A launch with its argument list."""

    launch: Launch
    argv: list[str]
    env: dict[str, str]
    unset_env: list[str]
    source: str
    notes: list[str]


def from_run(run: Run, gpu_total_mib: float | None = None) -> Rebuilt:
    """The launch of a run."""
    from forensics.launch import not_repeated

    notes = []
    if left := not_repeated(run.launch, gpu_total_mib):
        notes.append(f"Not repeated, since SGLang may have picked them itself: {', '.join(left)}")
    return Rebuilt(
        run.launch,
        run.launch.argv(gpu_total_mib),
        dict(run.launch.env),
        [],
        "From the dump.",
        notes,
    )


def from_file(path: Path, release: Release | None = None) -> Rebuilt:
    """The launch of a file."""
    from forensics.launch import parse_command

    launch = parse_command(path.read_text(), release)
    if launch is None:
        raise PlanError(f"{path}: no launch of SGLang")
    return Rebuilt(launch, launch.command or [], dict(launch.env), [], str(path), [])


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
    if launch is None and not run.launch.flags and run.launch.command is None:
        raise PlanError(
            f"the log does not show how launch {run.number} was started: --launch FILE names a "
            "script or a file that holds its command"
        )
    total = min((one.total_gib for one in run.ledgers() if one.total_gib), default=None)
    if launch is not None:
        subject = of_file(launch, run.launch.release)
    else:
        rebuilt = from_run(run, None if total is None else (total + _SMI_GIB) * 1024)
        subject = _subject(rebuilt, trusted=False)
    subject.logs, subject.run, subject.report = list(paths), run.number, report
    subject.failure = failure_of(report) if run.outcome in _BAD else None
    subject.figures, subject.total_gib = measured(run), total
    return subject


def of_file(path: Path, version: str | None = None) -> Subject:
    """A launch from a script or a command that the user has; raises PlanError."""
    return _subject(from_file(path, table(version) if version else None), trusted=True)


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


def _subject(rebuilt: Rebuilt, *, trusted: bool) -> Subject:
    """`trusted`: the user has typed it, so that its program may be asked for its version."""
    notes = [rebuilt.source, *rebuilt.notes]
    argv = list(rebuilt.argv)
    if not trusted:
        argv = _own_program(argv, notes)
    argv = _without_secrets(argv, rebuilt.launch, notes)
    env = {name: value for name, value in rebuilt.env.items() if REDACTED not in value}
    if hidden := sorted(set(rebuilt.env) - set(env)):
        notes.append(f"Not set, since the log hides it: {', '.join(hidden)} (--env sets it)")
    program = argv[: len(rebuilt.launch.program)]
    launch = dataclasses.replace(rebuilt.launch, command=argv, program=program, env=dict(env))
    return Subject(launch, launch.table(), env, list(rebuilt.unset_env), notes=notes)


def _own_program(argv: list[str], notes: list[str]) -> list[str]:
    """A program named by a path of the log is not started: its name is looked up here."""
    if "/" not in argv[0]:
        return argv
    name = PurePath(argv[0]).name
    name = "python3" if name.startswith("python") else name
    notes.append(f"The log has {argv[0]}: {name} is started here, --python names another")
    return [name, *argv[1:]]


def _without_secrets(argv: list[str], launch: Launch, notes: list[str]) -> list[str]:
    """The command without the flags whose values are hidden."""
    length = len(launch.program)
    words = argv[:length]
    for group in groups(argv[length:], launch.table()):
        if any(REDACTED in token for token in group.tokens) and group.tokens[0].startswith("--"):
            flag = group.tokens[0].split("=", 1)[0]
            notes.append(f"Left out, since its value is hidden: {flag} (--set gives it)")
        else:
            words += group.tokens
    return words


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
