"""The launch in a shell script or a command line that somebody keeps.

The script is read, never run: variables are expanded from assignments in it, conditions and loops
are not followed, and where only a shell would know, it says so with the line.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from forensics.launch.shell import Array, Command, LaunchError, Word, commands
from forensics.launch.variables import Assignment, Unknown, Variables, assignment, names_in
from forensics.launch.wrappers import SHELLS, Wrapped, unwrapped

_MENTION = re.compile(r"sglang\.(?:launch_server|compile_deep_gemm)|launch_server\.py|\bsglang\b")
_OPENING = frozenset({"if", "for", "while", "until", "select", "case"})
_CLOSING = frozenset({"fi", "done", "esac", "}"})
_WITHIN = frozenset({"then", "do", "else", "elif", "!"})
_EXPORTING = frozenset({"export", "declare", "typeset", "readonly", "local"})
_SETTING = frozenset(
    {"source", ".", "module", "conda", "ulimit", "cd", "pushd", "modprobe", "umask"}
)
_FOR_THE_SERVER = re.compile(r"(?:SGL|SGLANG|NCCL|CUDA|PYTORCH|HF|TRITON|FLASHINFER)_")
_INNER_SHELLS = 3


@dataclass(slots=True)
class ScriptLaunch:
    """The command that a script starts the server with."""

    program: list[str]
    arguments: list[str]
    line: int
    env: dict[str, str] = field(default_factory=dict)
    unset_env: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """What the script does besides, and is not done here."""


@dataclass(slots=True)
class _Reader:
    variables: Variables = field(default_factory=Variables)
    notes: list[str] = field(default_factory=list)
    found: list[ScriptLaunch] = field(default_factory=list)
    blocks: list[tuple[str, int]] = field(default_factory=list)
    """Open blocks, a word and a line each; `{` of a group that always runs has no word."""
    function: str | None = None
    mentions: list[int] = field(default_factory=list)

    def read(self, found: Sequence[Command], inner: int = 0, line: int | None = None) -> None:
        for command in found:
            words = list(command.items)
            if command.function:
                self.function = _literal(words[0]) if words else ""
                continue
            words = self._through_blocks(words)
            if words:
                self._command(words, line or command.line, inner)

    def _through_blocks(self, words: list[Word | Array]) -> list[Word | Array]:
        while words and (name := _literal(words[0])) is not None:
            line = words[0].line
            if name == "function" and len(words) > 1:
                self.function, words = _literal(words[1]) or "", words[2:]
            elif name in _OPENING:
                self.blocks.append((name, line))
                if name in ("for", "select") and len(words) > 1:
                    doubt = Unknown(f"it is set by `{name}` at line {line}")
                    self.variables.values[_literal(words[1]) or ""] = doubt
                words = [] if name in ("for", "select", "case") else words[1:]
            elif name == "{":
                inside = "" if self.function is None else f"{self.function}()"
                self.blocks.append((inside, line))
                self.function, words = None, words[1:]
            elif name in _CLOSING:
                self.blocks = self.blocks[:-1]
                words = words[1:]
            elif name in _WITHIN:
                words = words[1:]
            else:
                break
        return words

    def _block(self) -> tuple[str, int] | None:
        return next((block for block in self.blocks if block[0]), None)

    def _command(self, words: list[Word | Array], line: int, inner: int) -> None:
        block = self._block()
        doubt = block and f"it is set within `{block[0]}` at line {block[1]}"
        own: list[Assignment] = []
        while words:
            first = words[0]
            assigned = assignment(first) if isinstance(first, Word) else None
            if isinstance(first, Array):
                self.variables.assign_array(first, doubt)
            elif assigned is not None:
                own.append(assigned)
            else:
                break
            words = words[1:]
        if not words:
            for assigned in own:
                self.variables.assign(assigned, doubt)
            return
        plain = [word for word in words if isinstance(word, Word)]
        name = _literal(plain[0]) if plain else None
        if name in _EXPORTING:
            self._export(words[1:], doubt, exports=name == "export" or _has_flag(plain, "x"))
        elif name == "unset":
            for word in plain[1:]:
                self.variables.remove(_literal(word) or "")
        elif name in _SETTING and not self._mentions(plain):
            self.notes.append(f"line {line}: `{_shown(plain)}` is not done here")
        elif self._mentions(plain):
            self._server(plain, own, line, inner)

    def _export(self, words: Sequence[Word | Array], doubt: str | None, *, exports: bool) -> None:
        for word in words:
            if isinstance(word, Array):
                self.variables.assign_array(word, doubt)
                continue
            assigned = assignment(word)
            name = assigned.name if assigned else _literal(word) or ""
            if assigned is not None:
                self.variables.assign(assigned, doubt)
            if exports and not name.startswith("-"):
                self.variables.exported.add(name)

    def _mentions(self, words: Sequence[Word]) -> bool:
        """Whether a command, or a variable in it, holds the server's name."""
        texts = [piece.text for word in words for piece in word.pieces]
        for name in names_in(Command(tuple(words), 0)):
            value = self.variables.values.get(name)
            texts += [value] if isinstance(value, str) else value if isinstance(value, list) else []
        return any(_MENTION.search(text) for text in texts)

    def _server(self, words: list[Word], own: list[Assignment], line: int, inner: int) -> None:
        if _literal(words[0]) == "eval":
            raise LaunchError(
                f"line {line}: the server stands behind `eval`: write the command out"
            )
        try:
            texts = self.variables.words(words)
        except LaunchError:
            plain = [_unexpanded(word) for word in words]
            if _inner_command(plain) is None and unwrapped(plain, line, {}) is None:
                self.mentions.append(line)
                return
            self._refuse_in_block(line)
            raise
        env = self._environment(own)
        inside = _inner_command(texts)
        if inside is not None and inner < _INNER_SHELLS:
            self._inner_shell(texts, inside, env, line, inner)
            return
        wrapped = unwrapped(texts, line, env)
        if wrapped is None:
            self.mentions.append(line)
            return
        self._refuse_in_block(line)
        self.found.append(self._launch(wrapped, env, line))

    def _refuse_in_block(self, line: int) -> None:
        if block := self._block():
            raise LaunchError(
                f"line {line}: the server is started within `{block[0]}` (line {block[1]}):"
                " keep the plain command alone"
            )

    def _launch(self, wrapped: Wrapped, env: dict[str, str], line: int) -> ScriptLaunch:
        outside = {} if wrapped.container else env
        gone = [] if wrapped.container else sorted(self.variables.unset)
        found = ScriptLaunch(wrapped.program, wrapped.arguments, line)
        found.unset_env = [
            n for n in dict.fromkeys([*gone, *wrapped.unset]) if n not in wrapped.env
        ]
        kept = {n: v for n, v in outside.items() if n not in found.unset_env}
        found.env = {**kept, **wrapped.env}
        found.notes = [*self.notes, *wrapped.notes]
        return found

    def _inner_shell(
        self, texts: list[str], inside: tuple[int, str], env: dict[str, str], line: int, inner: int
    ) -> None:
        """`bash -c "..."`: the servers of its text, with the wrappers in front of the shell."""
        position, text = inside
        stand_in = ["python3", "-m", "sglang.launch_server"]
        outer = unwrapped([*texts[:position], *stand_in], line, env)
        if outer is None:
            self.mentions.append(line)
            return
        base = outer.env if outer.container else {**env, **outer.env}
        deeper = _Reader(notes=self.notes, blocks=list(self.blocks), mentions=self.mentions)
        deeper.variables = Variables(dict(base), set(base), set(outer.unset))
        deeper.read(commands(text), inner + 1, line)
        for launch in deeper.found:
            wrapped = replace(outer, env={**outer.env, **launch.env}, arguments=launch.arguments)
            wrapped.program = [*outer.program[: -len(stand_in)], *launch.program]
            wrapped.unset = [*outer.unset, *launch.unset_env]
            self.found.append(self._launch(wrapped, env, line))

    def _environment(self, own: Sequence[Assignment]) -> dict[str, str]:
        """What the server would see of the script's variables."""
        variables = self.variables
        env: dict[str, str] = {}
        for name, value in variables.values.items():
            if name not in variables.exported:
                if _FOR_THE_SERVER.match(name):
                    self._note(f"{name} is set but not exported: the server does not see it")
            elif isinstance(value, Unknown):
                self._note(f"{name} is left as it is here: {value.why}")
            elif isinstance(value, str):
                env[name] = value
        for assigned in own:
            env[assigned.name] = variables.text(assigned.word)
        return env

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


def _literal(word: Word | Array) -> str | None:
    """The text of a word without quotes and expansions; None for any other."""
    if isinstance(word, Array) or len(word.pieces) != 1:
        return None
    piece = word.pieces[0]
    return piece.text if piece.kind == "text" and not piece.quoted else None


def _unexpanded(word: Word) -> str:
    return "".join(piece.text for piece in word.pieces)


def _shown(words: Sequence[Word]) -> str:
    text = " ".join(_unexpanded(word) for word in words)
    text = "".join(c if c.isprintable() else " " for c in text)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _has_flag(words: Sequence[Word], letter: str) -> bool:
    flags = [text for word in words[1:] if (text := _literal(word)) and text.startswith("-")]
    return any(letter in flag for flag in flags)


def _inner_command(words: list[str]) -> tuple[int, str] | None:
    """Where `bash -c TEXT` begins among words, and its text."""
    for i, word in enumerate(words):
        if PurePosixPath(word).name in SHELLS:
            for k in range(i + 1, len(words) - 1):
                if re.fullmatch(r"-[a-z]*c", words[k]):
                    return i, words[k + 1]
                if not words[k].startswith("-"):
                    break
    return None


def read_script(text: str) -> ScriptLaunch:
    """The one server that a script or command line starts.

    Raises LaunchError, one line, where there is none, more than one, or where something is needed
    that only a shell would know (the output of a command, a variable from outside).
    """
    reader = _Reader()
    reader.read(commands(text))
    if len(reader.found) > 1:
        lines = list(dict.fromkeys(launch.line for launch in reader.found))[:2]
        where = f"lines {lines[0]} and {lines[-1]}" if len(lines) > 1 else f"line {lines[0]}"
        raise LaunchError(f"more than one server is started, {where}: keep one of them")
    if not reader.found:
        if reader.mentions:
            raise LaunchError(
                f"line {reader.mentions[0]} names SGLang, but not as a command that is understood"
            )
        raise LaunchError("no command that starts an SGLang server")
    return reader.found[0]
