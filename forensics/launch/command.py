"""A launch from the command that a log shows: a shell's echo, its `Killed` line, a compose file.

Split with shlex, as words only; nothing is ever given to a shell.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePosixPath

from forensics.launch.arguments import groups
from forensics.launch.model import Launch, Value
from forensics.launch.redact import is_secret, redact_named
from forensics.redact import REDACTED, redact
from forensics.releases import Release

MAX_CHARS = 64 * 1024
_MODULES = ("sglang.launch_server", "sglang.compile_deep_gemm")
_MENTION = re.compile(r"sglang\.launch_server|sglang\.compile_deep_gemm|\bsglang['\",\s]+serve\b")
_QUOTED = re.compile(r"`[^`\n]{0,200}sglang|['\"](?:python3? -m )?sglang[. ]\w+['\"] is")
_HELP = re.compile(r"\busage:|\bExample:|\[options\]|\[-h\]", re.IGNORECASE)
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_QUOTED_ITEM = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"")
_BLOCK_ITEM = re.compile(r"^\s*-\s+", re.MULTILINE)
_OPERATOR = re.compile(r"[;()<>|&]+")


def parse_command(text: str, release: Release | None = None) -> Launch | None:
    """The launch that a line of shell, `docker run` or compose YAML starts; None if it does not.

    A line that only mentions the command (help, advice, a traceback) starts nothing. Environment
    assignments in front, and `-e NAME=VALUE` of a container, are read too. Unknown flags stay in
    `command`. Without a release, flags mean what the newest release that has them says.
    """
    text = text[:MAX_CHARS]
    if not _MENTION.search(text) or _HELP.search(text) or _QUOTED.search(text):
        return None
    words = _words(text)
    start, length = _program(words)
    if length == 0:
        inner = next((w for w in words if " " in w and _MENTION.search(w)), "")
        words = _words(inner)
        start, length = _program(words)
    if length == 0:
        return None
    program = words[start : start + length]
    arguments = _own(words[start + length :])
    positional = program[-1] == "serve" and arguments[:1] and not arguments[0].startswith("-")
    if not positional and not any(word.startswith("--") for word in arguments):
        return None
    arguments = _redact(arguments)
    flags = read_flags(arguments, release)
    if positional:
        flags = {"model_path": arguments[0], **flags}
    if not flags:
        return None
    return Launch(
        flags=flags,
        env=_environment(words[:start]),
        command=[*program, *arguments],
        program=program,
        typed=set(flags),
    )


def read_flags(arguments: Sequence[str], release: Release | None) -> dict[str, Value]:
    """The fields that arguments set; the last word on a field counts."""
    return {g.field: g.value for g in groups(arguments, release) if g.field is not None}


def _words(text: str) -> list[str]:
    if re.search(r"['\"]sglang(?:\.launch_server)?['\"]\s*,", text):
        return [_unescaped(a or b) for a, b in _QUOTED_ITEM.findall(text)]
    if _BLOCK_ITEM.match(text.split("\n", 1)[-1]):
        text = _BLOCK_ITEM.sub(" ", text)
    text = text.replace("\\\n", " ")
    for candidate in (text, text + "'", text + '"'):
        lexer = shlex.shlex(candidate, posix=True, punctuation_chars="();<>|&")
        lexer.whitespace_split = True
        lexer.commenters = ""
        try:
            return list(lexer)
        except ValueError:
            continue
    return text.split()


def _unescaped(text: str) -> str:
    return text.replace('\\"', '"').replace("\\'", "'").replace("\\\\", "\\")


def _program(words: list[str]) -> tuple[int, int]:
    """Where the program's words start and how many they are; length 0 if there is none."""
    for i, word in enumerate(words):
        if word in _MODULES and i >= 2 and words[i - 1] == "-m":
            first = i - 2
            while first > 0 and words[first].startswith("-") and i - first < 8:
                first -= 1
            return first, i - first + 1
        if word == "serve" and i >= 1 and PurePosixPath(words[i - 1]).name == "sglang":
            return i - 1, 2
        if word.endswith("sglang/launch_server.py") and i >= 1 and "python" in words[i - 1]:
            return i - 1, 2
    return 0, 0


def _own(words: list[str]) -> list[str]:
    """The words up to the shell operator that ends the command."""
    for i, word in enumerate(words):
        if _OPERATOR.fullmatch(word):
            redirected = word.startswith((">", "<")) or word in ("&>", ">&")
            return words[: i - 1] if redirected and i and words[i - 1].isdigit() else words[:i]
    return words


def _redact(arguments: list[str]) -> list[str]:
    clean: list[str] = []
    for i, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        before = arguments[i - 1] if i else ""
        if name.startswith("--") and equals:
            clean.append(f"{name}={redact_named(name, value)}")
        elif before.startswith("--") and "=" not in before and is_secret(before):
            clean.append(word if word.startswith("--") else REDACTED)
        else:
            clean.append(redact(word))
    return clean


def _environment(words: list[str]) -> dict[str, str]:
    """Assignments in front of the program, of the same command."""
    env: dict[str, str] = {}
    for word in words:
        if _OPERATOR.fullmatch(word) and word != "&&":
            env.clear()
        elif _ASSIGNMENT.match(word):
            name, _, value = word.partition("=")
            env[name] = redact_named(name, value)
    return env
