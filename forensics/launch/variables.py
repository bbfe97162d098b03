"""What words come to: variables from assignments of the same file, and from nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from forensics.launch.shell import Array, Command, LaunchError, Piece, Word, commands

MAX_VALUE = 64 * 1024
MAX_DEPTH = 8

_PARAMETER = re.compile(
    r"\$(?:\{(?P<name>\w+|[@*])(?P<all>\[[@*]\])?(?:(?P<op>:?[-=+?])(?P<word>.*))?\}|(?P<plain>.+))",
    re.DOTALL,
)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)", re.DOTALL)
_BRACES = re.compile(r"\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}")
_GLOB = re.compile(r"[*?]|\[[^\]]+\]")
_MASK = "\x00"
"""Stands for a quoted character while it is looked for what a shell would expand."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Why a variable's value is not known, in one line."""

    why: str


Value = str | list[str] | Unknown


@dataclass(frozen=True, slots=True)
class Assignment:
    """`NAME=word` or `NAME+=word`."""

    name: str
    append: bool
    word: Word


@dataclass(slots=True)
class Variables:
    """The variables of a script as far as it was read, and which of them a server would see."""

    values: dict[str, Value] = field(default_factory=dict)
    exported: set[str] = field(default_factory=set)
    unset: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    depth: int = 0

    def assign(self, assignment: Assignment, doubt: str | None = None) -> None:
        """Keep an assignment; what its value hinges on may be unknown, and is told when used."""
        try:
            value: Value = Unknown(doubt) if doubt else self.text(assignment.word)
        except LaunchError as error:
            value = Unknown(error.root)
        self._keep(assignment.name, assignment.append, value)

    def assign_array(self, array: Array, doubt: str | None = None) -> None:
        """The same for an array."""
        try:
            value: Value = Unknown(doubt) if doubt else self.words(array.words)
        except LaunchError as error:
            value = Unknown(error.root)
        self._keep(array.name, array.append, value)

    def _keep(self, name: str, append: bool, value: Value) -> None:
        before = self.values.get(name)
        if append and isinstance(before, Unknown):
            value = before
        elif append and isinstance(before, list):
            value = [*before, *value] if isinstance(value, list) else value
        elif append and isinstance(before, str) and isinstance(value, str):
            value = _bounded(before + value, 0)
        self.values[name] = value
        self.unset.discard(name)

    def remove(self, name: str) -> None:
        """`unset NAME`."""
        self.values.pop(name, None)
        self.exported.discard(name)
        self.unset.add(name)

    def words(self, words: Iterable[Word]) -> list[str]:
        """The arguments that words come to. Raises LaunchError where only a shell would know."""
        return [text for word in words for text in self._fields(word)]

    def text(self, word: Word) -> str:
        """The text of an assigned word, which is not split."""
        pieces = [Piece(p.kind, p.text, True, p.line) for p in word.pieces]
        first = word.pieces[0] if word.pieces else None
        if first and not first.quoted and first.kind == "text" and first.text.startswith("~"):
            raise LaunchError(f"line {word.line}: `~` is not expanded: write the folder out")
        return _bounded(" ".join(self._fields(Word(tuple(pieces), word.line))), word.line)

    def _fields(self, word: Word) -> list[str]:
        """Text and mask of each field grow together: the mask shows what was not quoted."""
        fields: list[tuple[str, str]] = []
        now: tuple[str, str] | None = None
        for piece in self._without_empty_list(word.pieces):
            for text, splits in self._parts(piece):
                if splits:
                    fields += [now] if now is not None else []
                    now = None
                    continue
                mask = _MASK * len(text) if piece.quoted else text
                now = (text, mask) if now is None else (now[0] + text, now[1] + mask)
        fields += [now] if now is not None else []
        for text, mask in fields:
            _refuse_expansion(mask, word.line)
            _bounded(text, word.line)
        return [text for text, _ in fields]

    def _without_empty_list(self, pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
        """`"$@"` without arguments, or an empty array, is no word, though it has quotes."""
        if len(pieces) == 2 and pieces[0].text == "" and pieces[1].kind == "parameter":
            return () if pieces[1].quoted and self._value(pieces[1]) == [] else pieces
        return pieces

    def _parts(self, piece: Piece) -> Iterator[tuple[str, bool]]:
        """Texts, and breaks between fields as ("", True)."""
        if piece.kind == "unknown":
            raise LaunchError(f"line {piece.line}: {piece.text}")
        if piece.kind == "text":
            yield piece.text, False
            return
        value = self._value(piece)
        if isinstance(value, tuple):
            for i, text in enumerate(value):
                yield from ([("", True), (text, False)] if i else [(text, False)])
            return
        if piece.quoted and isinstance(value, str):
            yield value, False
            return
        texts = value if isinstance(value, list) else [value]
        for i, text in enumerate(texts):
            if i:
                yield "", True
            if piece.quoted:
                yield text, False
            else:
                yield from _split(text)

    def _value(self, piece: Piece) -> str | list[str] | tuple[str, ...]:
        """A text, the items of an array, or the fields of a default, which are split already."""
        found = _PARAMETER.fullmatch(piece.text)
        assert found is not None
        name = found["name"] or found["plain"]
        value = self._looked_up(name, piece)
        op = found["op"] or ""
        is_set = value is not None and not (op.startswith(":") and value in ("", []))
        if op.endswith("+"):
            return self._default(found["word"], piece) if is_set else () if not piece.quoted else ""
        if is_set and value is not None:
            if isinstance(value, list) and piece.quoted and found["all"] == "[*]":
                return " ".join(value)
            return "".join(value[:1]) if isinstance(value, list) and not found["all"] else value
        if op.endswith(("-", "=")):
            return self._default(found["word"], piece)
        if name in ("@", "*"):
            return []
        raise LaunchError(f"line {piece.line}: `{name}` is not set in this file")

    def _looked_up(self, name: str, piece: Piece) -> str | list[str] | None:
        value = self.values.get(name)
        if isinstance(value, Unknown):
            told = f"line {piece.line}: `{name}` is not known ({value.why})"
            raise LaunchError(told, root=value.why)
        return value

    def _default(self, text: str, piece: Piece) -> str | tuple[str, ...]:
        """The word after `:-`, which may hold quotes and variables itself."""
        if self.depth >= MAX_DEPTH:
            raise LaunchError(f"line {piece.line}: defaults within defaults")
        self.depth += 1
        try:
            inner = f'"{text.replace(chr(34), "")}"' if piece.quoted else text
            found = commands(inner) if inner.strip() else []
            if not found:
                return "" if piece.quoted else ()
            words = [word for word in found[0].items if isinstance(word, Word)]
            fields = self.words(words)
        except LaunchError as error:
            text = re.sub(r"^line \d+: ", "", str(error))
            raise LaunchError(f"line {piece.line}: {text}") from None
        finally:
            self.depth -= 1
        return " ".join(fields) if piece.quoted else tuple(fields)


def assignment(word: Word) -> Assignment | None:
    """A word that assigns; None for any other."""
    if not word.pieces or word.pieces[0].kind != "text" or word.pieces[0].quoted:
        return None
    found = _ASSIGNMENT.fullmatch(word.pieces[0].text)
    if found is None:
        return None
    first = Piece("text", found[3], False, word.line)
    rest = (first, *word.pieces[1:]) if found[3] else word.pieces[1:]
    return Assignment(found[1], bool(found[2]), Word(rest, word.line))


def names_in(command: Command) -> set[str]:
    """The variables that a command mentions."""
    found = set()
    for word in command.items:
        for piece in word.pieces if isinstance(word, Word) else ():
            if piece.kind == "parameter" and (match := _PARAMETER.fullmatch(piece.text)):
                found.add(match["name"] or match["plain"])
    return found


def _split(text: str) -> Iterator[tuple[str, bool]]:
    """An unquoted value, broken at its blanks as a shell does."""
    parts = re.split(r"([ \t\n]+)", text)
    for part in parts:
        if part and part.strip(" \t\n") == "":
            yield "", True
        elif part:
            yield part, False


def _refuse_expansion(mask: str, line: int) -> None:
    if mask.startswith("~"):
        raise LaunchError(f"line {line}: `~` is not expanded: write the folder out")
    if found := _BRACES.search(mask):
        shown = found[0].replace(_MASK, "?")
        raise LaunchError(f"line {line}: `{shown}` is not expanded: write it out, or quote it")
    if found := _GLOB.search(mask):
        shown = found[0].replace(_MASK, "?")
        raise LaunchError(f"line {line}: `{shown}` is not expanded: quote it")


def _bounded(text: str, line: int) -> str:
    if len(text) > MAX_VALUE:
        raise LaunchError(f"line {line}: a value of more than {MAX_VALUE // 1024} kB")
    return text
