"""The arguments and variables of a launch as a log shows them, put right where it spoiled them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable

from forensics.launch.arguments import Group, groups, tokens, untypable
from forensics.launch.minimal import RESOLVED, minimal_flags
from forensics.launch.model import Launch, Value
from forensics.redact import REDACTED
from forensics.releases import Release, names_of

EXPANSION = re.compile(r"\$(?:\w|\{|\()|`")
"""What a shell would have put something else for: the log shows the text before it did."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,200}")
_SAID = {
    "attention_backend": frozenset(
        {"attention_backend_default", "attention_backend_chosen", "attention_backend_for"}
        | {"attention_backend_overridden"}
    )
}
"""What SGLang prints when it picks a value itself ("Attention backend not specified. Use ...").

Some models' own rules are silent; then the value is given, which comes to the same launch.
"""
_LOADS_CODE = re.compile(
    r"(?:LD|DYLD|PYTHON|BASH|PERL|GIT|PIP|UV|CONDA)[_A-Z0-9]*|ENV|PATH|SHELLOPTS|IFS"
)


def dumped_arguments(
    launch: Launch, gpu_total_mib: float | None, kinds: Collection[str], notes: list[str]
) -> list[str]:
    """The flags that must be typed to come to a dumped launch; what is left out goes to `notes`.

    `kinds` are the kinds of line that the log has: SGLang says when it picks a backend itself.
    """
    found = minimal_flags(launch, gpu_total_mib)
    words: list[str] = []
    left: list[str] = []
    for argument in found:
        own = argument.mark == RESOLVED
        if own and _may_be_typed(argument.field, argument.value, kinds):
            notes.append(f"{shown(argument.tokens)} is kept: the log does not say who chose it.")
            own = False
        if own:
            left.append(shown(argument.tokens))
        elif any(REDACTED in token for token in argument.tokens):
            notes.append(_redacted(argument.tokens[0]))
        else:
            words += argument.tokens
    if left:
        notes.append(f"Left to SGLang, which may have chosen them itself: {', '.join(left)}.")
    release = launch.table()
    for name, value in launch.flags.items():
        why = untypable(name, value, release) if release.has(name) else None
        if value is not None and why and release.flag(name) and not release.is_default(name, value):
            notes.append(f"{name} is left out: its value {why}.")
    unknown = [n for n, v in launch.flags.items() if not release.has(n) and v]
    if unknown:
        names = ", ".join(unknown[:8])
        notes.append(f"Fields that SGLang {release.version} does not have are left out: {names}.")
    if launch.truncated:
        notes.append("The log's arguments are cut: flags behind the cut are not known.")
    return words


def _may_be_typed(name: str, value: Value, kinds: Collection[str]) -> bool:
    """Of a value that may be SGLang's own choice: whether to give it all the same.

    On the same machine that comes to the same launch, and it does not hinge on a guess.
    """
    if name in _SAID:
        return not _SAID[name] & set(kinds)
    if name == "mem_fraction_static":  # its own choices have three decimals
        return isinstance(value, float) and round(value, 2) == value
    return name == "page_size" and value != 1


def typed_arguments(launch: Launch, notes: list[str]) -> list[str]:
    """The arguments as they were typed, with what the log spoiled put right from the dump.

    What is left out goes to `notes`.
    """
    command = launch.command or []
    release = launch.table() if launch.release or launch.release_range else None
    words: list[str] = []
    for i, group in enumerate(groups(command[len(launch.program) :], release)):
        dumped = _dumped(launch, group)
        text = " ".join(group.tokens)
        if not group.tokens[0].startswith("--"):
            if i == 0 and launch.program[-1:] == ["serve"]:
                words += _positional(group.tokens[0], launch, notes)
            elif not launch.release_range:  # with a dump the parser took all: it is an artefact
                words += group.tokens
        elif REDACTED in text:
            notes.append(_redacted(group.tokens[0].split("=", 1)[0]))
        elif _spoiled(text, group.value, dumped):
            words += _put_right(group, dumped, release, notes)
        else:
            words += group.tokens
    return words


def _dumped(launch: Launch, group: Group) -> Value:
    names = names_of(group.field) if group.field is not None and launch.release_range else ()
    return next((launch.flags[name] for name in names if name in launch.flags), None)


def _positional(model: str, launch: Launch, notes: list[str]) -> list[str]:
    if not EXPANSION.search(model) and REDACTED not in model:
        return [model]
    dumped = launch.flags.get("model_path")
    if launch.release_range and isinstance(dumped, str) and REDACTED not in dumped:
        return ["--model-path", dumped]
    notes.append(f"The model is written as {shown([model])}, which the log does not resolve.")
    return []


def _put_right(group: Group, dumped: Value, release: Release | None, notes: list[str]) -> list[str]:
    flag = group.tokens[0].split("=", 1)[0]
    words = tokens(group.field, dumped, release) if group.field and release else None
    if words and not any(REDACTED in word or EXPANSION.search(word) for word in words):
        return words
    notes.append(
        f"{shown([flag])} is left out: the log shows {shown(group.tokens[1:] or group.tokens)},"
        " and not what a shell made of it."
    )
    return []


def _spoiled(text: str, typed: Value, dumped: Value) -> bool:
    return EXPANSION.search(text) is not None or _lost_quotes(typed, dumped)


def _lost_quotes(typed: Value, dumped: Value) -> bool:
    """Whether a value lost its quotes on the way into the log, as in a row of `ps`."""
    if typed == dumped or dumped is None or isinstance(typed, bool | int | float):
        return False
    whole = str(dumped)
    if not set(whole) & set("\"'\\ {["):
        return False
    bare = [re.sub(r"[\"'\\\s]", "", str(value)) for value in (typed, whole)]
    return bool(bare[0]) and bare[1].startswith(bare[0])


def _redacted(flag: str) -> str:
    return (
        f"{shown([flag])} is left out: its value is a secret, which no log is read for;"
        " give it with --launch FILE."
    )


def environment(env: dict[str, str], notes: list[str]) -> dict[str, str]:
    """The variables of a log's launch that may be set again: they configure, and load no code."""
    kept: dict[str, str] = {}
    for name, value in env.items():
        if not _VARIABLE.fullmatch(name) or "\0" in value:
            continue
        if REDACTED in value:
            notes.append(f"{name} was set to a secret: set it in your environment.")
        elif _LOADS_CODE.fullmatch(name):
            notes.append(f"{name} is left as it is here: from a log it could load foreign code.")
        elif EXPANSION.search(value):
            notes.append(f"{name} is left as it is here: the log shows {shown([value])}.")
        else:
            kept[name] = value
    return kept


def shown(words: Iterable[str]) -> str:
    """Words of a log, quoted, in one line of a note."""
    text = "".join(c if c.isprintable() else "?" for c in shlex.join(words))
    return text if len(text) <= 120 else f"{text[:117]}..."
