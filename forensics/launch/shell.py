"""Shell text as data: commands, words, and the pieces that words are made of.

Read with the grammar `launch_script.lark`; nothing is expanded here and nothing is ever run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedInput

from forensics.grammar.nested import nested_parser

MAX_CHARS = 64 * 1024
MAX_NESTING = 40

_ANSI_ESCAPE = re.compile(
    r"\\(?:([abeEfnrtv\\'\"?])|x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})"
    r"|([0-7]{1,3}))"
)
_ANSI_NAMES = dict(zip("abeEfnrtv", "\a\b\x1b\x1b\f\n\r\t\v", strict=True))
_LAST_CONTINUED = re.compile(r"(?<!\\)\\\n*\Z")
"""The last line that was copied of a command often ends as if another followed."""
_IN_DOUBLE_QUOTES = re.compile(r"\\([$`\"\\\n])")


class LaunchError(ValueError):
    """Why a file gives no launch, in one line; `root` where that follows from an earlier line."""

    def __init__(self, text: str, root: str | None = None) -> None:
        super().__init__(text)
        self.root = root or text


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a word: text, a variable, or something whose text only a shell would know."""

    kind: Literal["text", "parameter", "unknown"]
    text: str
    """Of a variable as it is written, `${TP:-8}`; of something unknown, what it is."""
    quoted: bool
    line: int


@dataclass(frozen=True, slots=True)
class Word:
    """Pieces without a blank between them."""

    pieces: tuple[Piece, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Array:
    """`NAME=( words )`, or `NAME+=( words )`."""

    name: str
    append: bool
    words: tuple[Word, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Command:
    """The words of one command, redirections left out."""

    items: tuple[Word | Array, ...]
    line: int
    function: bool = False
    """It only begins the definition of a function."""


@v_args(inline=True)
class _Commands(Transformer[Token, Any]):
    """Turns every finished piece into its value, so that no tree is built."""

    def start(self, commands: list[Command]) -> list[Command]:
        return commands

    def script(self, *parts: Any) -> list[Command]:
        return [command for part in parts if isinstance(part, list) for command in part]

    group = trail = script

    def line(self, *parts: Any) -> list[Command]:
        found: list[Command] = []
        for part in parts:
            if isinstance(part, Command):
                found.append(part)
            elif isinstance(part, list):
                if part and isinstance(part[0], Command):
                    found += part
                elif items := _items(part):
                    found.append(Command(items, items[0].line))
        return found

    def command(self, items: list[Any], _: Any = None) -> list[Any]:
        return items

    def items(self, *parts: Any) -> list[Any]:
        first = parts[0] if isinstance(parts[0], list) else [parts[0]]
        return first if len(parts) == 1 else [*first, parts[-1]]

    def function(self, items: list[Any], *rest: Any) -> list[Command]:
        found = _items(items)
        body = next((_items(part) for part in rest if isinstance(part, list)), ())
        head = Command(found, found[0].line if found else 0, function=True)
        return [head, Command(body, body[0].line)] if body else [head]

    def redirect(self, *_: Any) -> None:
        return None

    def array(self, name: Token, *parts: Any) -> Array:
        words = [w for part in parts if isinstance(part, list) for w in part]
        append = name.endswith("+=(")
        bare = name.removesuffix("(").removesuffix("=").removesuffix("+")
        return Array(bare, append, tuple(words), name.line or 0)

    def elements(self, *parts: Any) -> list[Word]:
        first = parts[0] if isinstance(parts[0], list) else []
        return [*first, parts[-1]]

    def gaps(self, *_: Any) -> None:
        return None

    def word(self, *parts: Any) -> Word:
        pieces = [p for part in parts for p in (part if isinstance(part, list) else [part]) if p]
        return Word(tuple(pieces), pieces[0].line if pieces else 0)

    def text(self, token: Token) -> Piece:
        return Piece("text", str(token), False, token.line or 0)

    quoted_text = text

    def nothing(self, _: Token) -> None:
        return None

    def escaped(self, token: Token) -> Piece:
        return Piece("text", token[1:], True, token.line or 0)

    def single(self, token: Token) -> Piece:
        return Piece("text", token[1:-1], True, token.line or 0)

    def ansi_c(self, token: Token) -> Piece:
        return Piece("text", _ANSI_ESCAPE.sub(_unescape, token[2:-1]), True, token.line or 0)

    def double_text(self, token: Token) -> Piece:
        text = _IN_DOUBLE_QUOTES.sub(lambda m: m[1].replace("\n", ""), token)
        return Piece("text", text, True, token.line or 0)

    def double(self, opening: Token, *parts: Any) -> list[Piece]:
        pieces = [Piece(p.kind, p.text, True, p.line) for p in parts if isinstance(p, Piece)]
        return [Piece("text", "", True, opening.line or 0), *pieces]

    def parameter(self, token: Token) -> Piece:
        return Piece("parameter", str(token), False, token.line or 0)

    quoted_parameter = parameter

    def substitution(self, opening: Token, *_: Any) -> Piece:
        return _unknown("the output of a command, which is not run", opening)

    def process(self, opening: Token, *_: Any) -> Piece:
        return _unknown("a process substitution, which is not run", opening)

    def arithmetic(self, token: Token) -> Piece:
        return _unknown("arithmetic, which is not computed", token)

    def other_parameter(self, token: Token) -> Piece:
        return _unknown(f"`{token}`, an expansion that is not supported", token)


def _unknown(what: str, token: Token) -> Piece:
    return Piece("unknown", what, False, token.line or 0)


def _items(parts: Iterable[Any]) -> tuple[Word | Array, ...]:
    return tuple(part for part in parts if isinstance(part, Word | Array))


def _unescape(match: re.Match[str]) -> str:
    letter, byte, short, long, octal = match.groups()
    if letter is not None:
        return _ANSI_NAMES.get(letter, letter)
    code = int(octal, 8) & 0xFF if octal else int(byte or short or long, 16)
    return chr(code) if code <= 0x10FFFF and not 0xD800 <= code < 0xE000 else ""


@cache
def _parser() -> Lark:
    return nested_parser(
        "launch_script", transformer=_Commands(), maybe_placeholders=True, keep_all_tokens=True
    )


def commands(text: str) -> list[Command]:
    """The commands of a shell text in their order, those of subshells among them.

    Raises LaunchError, with the line, where it is not understood.
    """
    if len(text) > MAX_CHARS:
        raise LaunchError(f"more than {MAX_CHARS // 1024} kB: this is no launch script")
    text = _LAST_CONTINUED.sub("", text.removeprefix("\ufeff").replace("\r\n", "\n"))
    depth = 0
    parser = _parser().parse_interactive(text)
    try:
        for token in parser.iter_parse():
            if token.type == "HEREDOC":
                raise LaunchError(f"line {token.line}: here-documents are not understood")
            depth += (token.type in _OPENING) - (token == ")")
            if depth > MAX_NESTING:
                raise LaunchError(f"line {token.line}: nested too deeply")
        found: list[Command] = parser.feed_token(Token("$END", ""))
    except UnexpectedInput as error:
        raise LaunchError(_described(error, text)) from None
    return found


_OPENING = frozenset({"LPAR", "SUBSTITUTION_OPEN", "PROCESS_OPEN", "ARRAY_OPEN"})


def _described(error: UnexpectedInput, text: str) -> str:
    line = error.line if isinstance(error.line, int) and error.line > 0 else text.count("\n") + 1
    token = getattr(error, "token", None)
    at = error.pos_in_stream if isinstance(error, UnexpectedCharacters) else None
    if token is not None and token.type == "$END":
        return f"line {line}: the text ends within quotes, `$(` or a bracket"
    near = text[at : at + 12] if at is not None else str(token or "")
    near = "".join(c for c in near.split("\n")[0] if c.isprintable())
    if near[:1] in ("'", '"', "`"):
        return f"line {line}: a quote is not closed"
    return f"line {line}: `{near}` is not understood"
