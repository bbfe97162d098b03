"""The launch to repeat: rebuilt from what a log tells of it, or read from the user's own script.

A log is untrusted: of its launch the arguments are taken and variables that configure, never the
program that ran and nothing that would load code from elsewhere. What cannot be repeated (secrets,
which are never kept) is left out and said.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from forensics.incident.model import Run
from forensics.launch.arguments import groups
from forensics.launch.command import read_flags
from forensics.launch.model import SERVER, Launch
from forensics.launch.script import ScriptLaunch, read_script
from forensics.launch.shell import MAX_CHARS, LaunchError
from forensics.redact import REDACTED
from forensics.releases import releases, table, version_key
from forensics.reproduce.from_log import (
    EXPANSION,
    dumped_arguments,
    environment,
    shown,
    typed_arguments,
)

__all__ = ["LaunchError", "Rebuilt", "from_file", "from_run"]

SERVE = ("sglang", "serve")
FIRST_SERVE = "0.5.5"
"""The first release with `sglang serve` (its wheel declares the script; 0.5.4.post3 has none)."""

_SERVE_SHOWN = re.compile(
    r"sglang/cli/(?:serve|main)\.py|Selected serve backend|--model-type=\w+ \(skip"
)
_BINARY = re.compile(r"python(?:3(?:\.\d+)?)?")
_FILE_BYTES = 1 << 20
_CARDS_MIB = (
    *(15_360, 23_028, 24_564, 32_607, 40_960, 46_068, 49_140, 81_559, 97_871, 143_771, 183_359),
    *(196_592, 262_128, 275_040, 294_896),
)
"""T4, A10, 4090, 5090, A100, L40S, A6000, H100, H20, H200, B200, MI300X, MI325X, B300, MI355X."""
_NEARLY = 0.955
"""Less is free of a card in use, or of another card."""


@dataclass(slots=True)
class Rebuilt:
    """A launch as it will be run, before the environment of the tool is added."""

    launch: Launch
    """Its command is `argv`, so that changes to it keep what is here."""
    argv: list[str]
    env: dict[str, str] = field(default_factory=dict)
    """Variables to set on top of the environment at hand."""
    unset_env: list[str] = field(default_factory=list)
    source: str = ""
    """Where the launch is from, as a phrase: `the command that the log shows`."""
    notes: list[str] = field(default_factory=list)
    """What was left out or could not be known, a sentence each; text from a log stands in them."""


def from_run(run: Run, gpu_total_mib: float | None = None) -> Rebuilt:
    """The launch of a run, exactly as far as its log tells.

    `gpu_total_mib` is the smallest card's total in MiB; with it, values that SGLang picks by the
    card are told from typed ones. Raises LaunchError where the log shows no launch.
    """
    launch = run.launch
    if launch.command is None and not launch.flags:
        raise LaunchError(
            "the log shows neither the server's arguments nor its command: give it with --launch"
        )
    notes: list[str] = []
    if launch.command is not None and not _is_of_this_launch(launch):
        notes.append(
            "The log's command names another model than the server's arguments do: it is not used."
        )
        launch = dataclasses.replace(launch, command=None, typed=set(), program=list(SERVER))
    if launch.command is not None:
        source = "the command that the log shows"
        arguments = typed_arguments(launch, notes)
        program = _program(launch.program, run, launch)
    else:
        source = "the server's arguments that the log shows"
        total_mib = gpu_total_mib or _card_mib(run)
        arguments = dumped_arguments(launch, total_mib, run.counts.keys(), notes)
        program = _program([], run, launch)
    notes += _circumstances(run, launch)
    env = environment(launch.env, notes)
    return _rebuilt(launch, program, arguments, env, [], source, notes)


def from_file(path: Path, release: str | None = None) -> Rebuilt:
    """The launch of a shell script or command line that the user keeps; nothing of it is run.

    `release` says which flags mean what; None: the newest release that knows them. Secrets stay in
    `argv` and `env`, since the launch needs them: what prints those redacts them. Raises
    LaunchError, one line with the line of the file, where it is not understood.
    """
    found = read_script(_text(path))
    launch = Launch(env=found.env, release=release, program=found.program)
    known = table(release) if release is not None else None
    flags = read_flags(found.arguments, known)
    if found.program[-1] == "serve" and found.arguments[:1] and found.arguments[0][:1] != "-":
        flags = {"model_path": found.arguments[0], **flags}
    launch.flags = flags
    notes = [f"{_sentence(note)}" for note in found.notes]
    if not flags:
        notes.append(f"Line {found.line} gives the server no arguments that are known.")
    source = f"{path.name}, line {found.line}"
    _check(found)
    return _rebuilt(
        launch, found.program, found.arguments, found.env, found.unset_env, source, notes
    )


def _rebuilt(
    launch: Launch,
    program: list[str],
    arguments: list[str],
    env: dict[str, str],
    unset: list[str],
    source: str,
    notes: list[str],
) -> Rebuilt:
    argv = [*program, *arguments]
    release = launch.table() if launch.release or launch.release_range else None
    typed = {g.field for g in groups(arguments, release) if g.field is not None}
    kept = dataclasses.replace(
        launch,
        flags=dict(launch.flags),
        env=dict(env),
        versions=dict(launch.versions),
        command=list(argv),
        program=list(program),
        typed=typed | ({"model_path"} if program[-1] == "serve" else set()),
        removed=set(launch.removed),
    )
    return Rebuilt(kept, argv, dict(env), list(unset), source, notes)


def _text(path: Path) -> str:
    try:
        data = path.read_bytes() if path.stat().st_size <= _FILE_BYTES else None
    except OSError as error:
        raise LaunchError(f"cannot read {path}: {error.strerror}") from None
    if data is None or len(data) > MAX_CHARS:
        raise LaunchError(f"{path} has more than {MAX_CHARS // 1024} kB: this is no launch script")
    if b"\0" in data:
        raise LaunchError(f"{path} is not text")
    return data.decode("utf-8", "surrogateescape")


def _check(found: ScriptLaunch) -> None:
    if any(REDACTED in word for word in found.arguments):
        raise LaunchError(f"line {found.line}: {REDACTED} stands where a secret was: put it back")


def _is_of_this_launch(launch: Launch) -> bool:
    """Whether command and dump name one model; a variable in the command may be any."""
    dumped = launch.flags.get("model_path")
    words = launch.command or []
    named = read_flags(words[len(launch.program) :], launch.table()).get("model_path")
    if not isinstance(named, str) or not isinstance(dumped, str):
        return True
    return named == dumped or bool(EXPANSION.search(named)) or REDACTED in named + dumped


def _card_mib(run: Run) -> float | None:
    """The card by what was free at the start, where that is nearly all of a known one."""
    free = [row.free_gib for row in run.memory if row.free_gib is not None][:1]
    fitting = [mib for mib in _CARDS_MIB if free and _NEARLY * mib <= free[0] * 1024 <= mib]
    return fitting[0] if fitting else None


def _program(shown: list[str], run: Run, launch: Launch) -> list[str]:
    """The entry point that the log shows, as a name to be looked up: never a path of a log."""
    name = PurePosixPath(shown[0]).name if shown else ""
    if shown and shown[-1] == "serve":
        return list(SERVE)
    if "sglang.compile_deep_gemm" in shown:
        return [*SERVER[:2], "sglang.compile_deep_gemm"]
    if shown:
        return [name if _BINARY.fullmatch(name) else SERVER[0], *SERVER[1:]]
    first = version_key(launch.table().version) >= version_key(FIRST_SERVE)
    return list(SERVE if first and _shows_serve(run) else SERVER)


def _shows_serve(run: Run) -> bool:
    for event in run.events:
        frames = event.traceback.frames if event.traceback is not None else []
        if _SERVE_SHOWN.search(event.text) or any(_SERVE_SHOWN.search(f.file) for f in frames):
            return True
    return False


def _circumstances(run: Run, launch: Launch) -> list[str]:
    notes: list[str] = []
    nodes = launch.number("nnodes") or 1
    if nodes > 1:
        rank = int(launch.number("node_rank") or 0)
        address = launch.get("dist_init_addr")
        notes.append(
            f"The launch spans {int(nodes)} nodes, and this is node {rank}: start the same command"
            f" on every other node with its --node-rank; all must reach {shown([str(address)])}."
        )
    elif len({_model_and_rank(other) for other in run.launches.values()}) > 1:
        notes.append(f"The logs hold {len(run.launches)} launches; this is the first one.")
    mode = launch.get("disaggregation_mode")
    if mode in ("prefill", "decode"):
        notes.append(f"It is the {mode} side of a split deployment: the other side is not started.")
    known = launch.release or launch.versions.get("sglang")
    if known is None and launch.release_range and len(set(launch.release_range)) > 1:
        first, last = launch.release_range
        notes.append(f"The release is one of {first} to {last}; flags are written as in {last}.")
    elif known is not None and known not in releases():
        notes.append(
            f"SGLang {known} is read as {launch.table().version}, the nearest known release."
        )
    if launch.release_range and not launch.env:
        notes.append("The log does not show the environment; variables are those set here.")
    return notes


def _model_and_rank(launch: Launch) -> tuple[str, str]:
    return str(launch.get("model_path")), str(launch.get("node_rank"))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
