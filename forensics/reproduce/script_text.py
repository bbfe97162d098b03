"""A plan as a plain POSIX shell script, for people who run it elsewhere.

Text of a log stands in it in quotes or, as one clean line, in a comment. A secret never does: the
script asks for it in a variable.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence

from forensics.launch.arguments import groups
from forensics.launch.redact import is_secret
from forensics.redact import REDACTED, redact, redact_argv
from forensics.reproduce.model import ReproductionPlan, TrialPlan
from forensics.views.clean import one_line

_WIDTH = 96
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CONTROLS = re.compile(r"[\x01-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]+")
"""Controls and the marks that turn text around; a tab and a new line are themselves in quotes."""
_FUNCTIONS = {"control": "control", "fix": "fix"}
_GOALS = {
    "capture": "all graphs are captured",
    "ready": "the log says that it is ready ('The server is fired up and ready to roll!')",
    "health": "it is ready and answers at /health",
    "generate": "it is ready and answers a request at /generate",
    "load": "it is ready and answers a burst of requests",
}


def script_text(plan: ReproductionPlan, tool: str) -> str:
    """Control and fix as functions of a script; `tool` is the name and version to sign with.

    Raises ValueError for what no command line can hold: a NUL byte, a variable's impossible name.
    """
    trials = _launches(plan)
    names = "|".join(_FUNCTIONS[trial.role] for trial in trials)
    lines = ["#!/bin/sh", *_comments([f"Written by {tool}. Usage: sh THIS-FILE {names}"])]
    lines += _comments(_about(plan))
    lines += ["", "set -eu"]
    for trial in trials:
        lines += ["", *_comments(_expected(trial, plan))]
        lines += [f"{_FUNCTIONS[trial.role]}() {{", *_body(trial), "}"]
    lines += ["", 'case "${1-}" in']
    lines += [f"  {_FUNCTIONS[trial.role]}) {_FUNCTIONS[trial.role]} ;;" for trial in trials]
    lines += [f'  *) echo "usage: sh $0 {names}" >&2; exit 2 ;;', "esac"]
    return "\n".join(lines) + "\n"


def _launches(plan: ReproductionPlan) -> list[TrialPlan]:
    """One launch of each kind: confirmations are the fix again."""
    found: dict[str, TrialPlan] = {}
    for trial in plan.trials:
        if trial.role in _FUNCTIONS:
            found.setdefault(trial.role, trial)
    return [found[role] for role in _FUNCTIONS if role in found]


def _about(plan: ReproductionPlan) -> Iterator[str]:
    if plan.logs:
        run = f", launch {plan.run}" if plan.run is not None else ""
        yield f"The launch of {', '.join(plan.logs)}{run}."
    yield "A launch that comes up stays up: stop it (Ctrl-C) before the next one."
    if plan.diff:
        yield ""
        yield "From control to fix:"
        yield from (f"  {line[:1]} {line[1:]}".rstrip() for line in plan.diff)
    for title, sentences in (
        ("Of the launch:", plan.notes),
        ("This runs foreign code:", [f"{c.what}: {c.because}" for c in plan.consents]),
        ("What these launches cannot prove:", plan.limits),
    ):
        if sentences:
            yield ""
            yield title
            yield from (f"- {sentence}" for sentence in sentences)


def _expected(trial: TrialPlan, plan: ReproductionPlan) -> Iterator[str]:
    if trial.expects == "fails":
        told = plan.failure
        yield f"{trial.role}: fails" + (f" in phase {told.phase}: {told.title}" if told else "")
        if told is not None and told.text:
            yield f"  {told.text}"
    else:
        yield f"{trial.role}: passes when {_GOALS[trial.goal]}"
    if (free := trial.predicted.free_gib_at_capture) is not None:
        yield f"  predicted: {free:.2f} GiB free when capture begins"
    yield f"  decided within {trial.timeout_s:.0f} s, or call it undecided"


def _body(trial: TrialPlan) -> Iterator[str]:
    if any("\0" in word for word in (*trial.command, *trial.env.values())):
        raise ValueError("a word with a NUL byte is on no command line")
    if not all(_NAME.fullmatch(name) for name in (*trial.env, *trial.unset_env)):
        raise ValueError("a variable's name is made of letters, digits and _")
    if trial.unset_env:
        yield f"  unset {shlex.join(trial.unset_env)}"
    for name, value in trial.env.items():
        if is_secret(name) or redact(value) != value:
            yield f'  : "${{{name}:?set it first: the launch had a secret here}}"'
            yield f"  export {name}"
        else:
            yield f"  export {name}={_quoted(value)}"
    yield "  exec " + " \\\n    ".join(_rows(trial.command))


def _rows(command: Sequence[str]) -> Iterator[str]:
    """The program, then a flag with its values a line."""
    first = next((i for i, word in enumerate(command) if word.startswith("--")), len(command))
    yield " ".join(map(_quoted, command[:first]))
    for group in groups(list(command[first:]), None):
        yield " ".join(_word(group.tokens, i) for i in range(len(group.tokens)))


def _word(tokens: Sequence[str], index: int) -> str:
    """A quoted word; in place of a secret a variable that must be set."""
    word, shown = tokens[index], redact_argv(list(tokens))[index]
    if shown == word and REDACTED not in word:
        return _quoted(word)
    flag, equals, _ = word.partition("=")
    name = re.sub(r"\W", "_", tokens[0].split("=", 1)[0].lstrip("-"), flags=re.ASCII).upper()
    variable = f'"${{{name}:?set it to the secret of this flag}}"'
    is_joined = equals and flag.startswith("--") and index == 0
    return f"{shlex.quote(flag)}={variable}" if is_joined else variable


def _quoted(word: str) -> str:
    """A word in quotes; what a terminal would obey is written as what prints it."""
    return _CONTROLS.sub(_printed, shlex.quote(word))


def _printed(controls: re.Match[str]) -> str:
    octal = "".join(f"\\{byte:03o}" for byte in controls[0].encode("utf-8", "surrogateescape"))
    return f"""'"$(printf '{octal}')"'"""


def _comments(sentences: Iterable[str]) -> Iterator[str]:
    """Sentences as comments of one line each, however they were made."""
    for sentence in sentences:
        indent = sentence[: len(sentence) - len(sentence.lstrip(" "))]
        text = f"{indent}{one_line(sentence)}"
        yield f"# {text if len(text) <= 4 * _WIDTH else text[: 4 * _WIDTH] + '...'}".rstrip()
