"""The `server_args=` line, read with the grammar `server_args.lark`, however it was cut.

Two forms (launch arguments, section 1): a Python call to 0.5.18, a dict from 0.5.19. The text
is untrusted: it is parsed, never evaluated, and depth and length are bounded.
"""

from __future__ import annotations

import ast
import math
import re
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

from lark import Lark, Token, Transformer, v_args
from lark.exceptions import UnexpectedCharacters, UnexpectedInput

from forensics.grammar.nested import nested_parser
from forensics.launch.model import Launch, Value
from forensics.launch.redact import redact_named
from forensics.redact import redact
from forensics.releases import guess_release, releases

_START = re.compile(r"(?<![\w)])server_args=\s*(?=ServerArgs\(|\{)")
_NEXT_FIELD = re.compile(r",\s*(?=[a-z_]\w*=)")
_NAME = re.compile(r"[A-Za-z_]\w{0,99}")
_OPENING, _CLOSING = frozenset({"LPAR", "LSQB", "LBRACE"}), frozenset({"RPAR", "RSQB", "RBRACE"})

MAX_DEPTH = 24
MAX_TOKENS = 60_000
MAX_CHARS = 1 << 20
MAX_RECOVERIES = 8
LAST_CALL_RELEASE = "0.5.18"
FIRST_DICT_RELEASE = "0.5.19"


class _Pairs(list[tuple[str, Value]]):
    """Fields read so far."""


class _Entries(list[tuple[Value, Value]]):
    """Entries of a dict read so far."""


@v_args(inline=True)
class _Values(Transformer[Token, Any]):
    """Turns every finished piece into its value, so that no tree is built."""

    def start(self, *parts: Any) -> Any:
        return parts[0] if parts and parts[0] is not None else _Pairs()

    def fields(self, before: _Pairs | None, keyword: Token, value: Value) -> _Pairs:
        pairs = _Pairs() if before is None else before
        pairs.append((keyword[:-1], value))
        return pairs

    def entries(self, before: _Entries | None, key: Value, value: Value) -> _Entries:
        entries = _Entries() if before is None else before
        entries.append((key, value))
        return entries

    def items(self, before: list[Value] | None, value: Value) -> list[Value]:
        items: list[Value] = [] if before is None else before
        items.append(value)
        return items

    arguments = items

    def argument(self, *parts: Any) -> Any:
        return parts[0] if len(parts) == 1 else (str(parts[0])[:-1], parts[1])

    def sequence(self, items: list[Value] | None = None) -> list[Value]:
        return items or []

    def mapping(self, entries: _Entries | None = None) -> Value:
        return {str(key): _named(str(key), value) for key, value in entries or ()}

    def call(self, name: Token, arguments: list[Any] | None = None) -> Value:
        named = {a[0]: _named(*a) for a in arguments or [] if isinstance(a, tuple)}
        plain = [a for a in arguments or [] if not isinstance(a, tuple)]
        if named:
            return {**named, "args": plain} if plain else named
        return plain[0] if len(plain) == 1 else plain or f"{name}()"

    def scalar(self, token: Token) -> Value:
        if token.type == "STRING":
            return redact(_string(token))
        if token.type == "NUMBER":
            return _number(token)
        return {"None": None, "True": True, "False": False}.get(token, str(token))


def _string(text: str) -> str:
    if "\\" not in text and text[0] in "'\"":
        return text[1:-1]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text.strip("'\"")
    return value if isinstance(value, str) else repr(value)


def _number(text: str) -> Value:
    try:
        value = float(text) if set(text) & set(".eE") else int(text)
    except ValueError:
        return text
    return value if math.isfinite(value) else text


def _named(name: str, value: Value) -> Value:
    return redact_named(name, value) if isinstance(value, str) else value


@cache
def _parser() -> Lark:
    return nested_parser("server_args", transformer=_Values(), maybe_placeholders=True)


def parse_dump(text: str) -> Launch | None:
    """The launch that a `server_args=` line prints; None if the text holds no such dump.

    The last dump of the text counts. A cut or damaged one gives the fields before the cut, and
    those after a damaged value, and is marked `truncated`.
    """
    found = _parsed(text)
    if found is None:
        return None
    return replace(found, flags=dict(found.flags), env={}, versions={}, typed=set())


@lru_cache(maxsize=32)
def _parsed(text: str) -> Launch | None:
    """Kept, since an incident that is still growing is built from the same dump again and again."""
    starts = list(_START.finditer(text))
    if not starts:
        return None
    body = text[starts[-1].end() : starts[-1].end() + MAX_CHARS]
    flags, complete = _read(body)
    if not flags and not complete:
        return None
    call = body.startswith("ServerArgs(")
    known = releases()
    within = (known[0], LAST_CALL_RELEASE) if call else (FIRST_DICT_RELEASE, known[-1])
    return Launch(
        flags={name: _named(name, value) for name, value in flags.items()},
        release_range=guess_release(flags.keys(), within),
        truncated=not complete,
    )


@dataclass(slots=True)
class _Piece:
    """What one parse gave: the fields, whether the dump closed, and where a bad token stood."""

    pairs: list[tuple[str, Value]]
    closed: bool = False
    error_at: int | None = None
    """Position of a token that fits nowhere, at the top level of the call; else None."""


def _read(body: str) -> tuple[dict[str, Value], bool]:
    """Fields by name, and whether the dump was closed with nothing lost."""
    flags: dict[str, Value] = {}
    for attempt in range(MAX_RECOVERIES):
        piece = _read_piece(body)
        flags |= {key: value for key, value in piece.pairs if _NAME.fullmatch(key)}
        if piece.closed:
            return flags, attempt == 0
        if piece.error_at is None or not body.startswith("ServerArgs("):
            return flags, False
        resume = _NEXT_FIELD.search(body, max(piece.error_at, 1))
        if resume is None:
            return flags, False
        body = f"ServerArgs({body[resume.end() :]}"
    return flags, False


def _read_piece(body: str) -> _Piece:
    """Parse until the dump closes, ends, or cannot be read further."""
    parser = _parser().parse_interactive(body)
    depth, position = 0, 0
    piece = _Piece([])
    try:
        for count, token in enumerate(parser.iter_parse()):
            depth += (token.type in _OPENING) - (token.type in _CLOSING)
            position = token.end_pos or position
            piece.closed = depth == 0 and count > 0
            if piece.closed or depth > MAX_DEPTH or count > MAX_TOKENS:
                parser.feed_token(token)
                break
    except UnexpectedInput as error:
        piece.closed = False
        at = error.pos_in_stream if isinstance(error, UnexpectedCharacters) else position
        piece.error_at = at if depth == 1 else None
    for value in parser.parser_state.value_stack:
        if isinstance(value, _Pairs):
            piece.pairs = value
        elif isinstance(value, _Entries):
            piece.pairs = [(str(key), item) for key, item in value]
        else:
            continue
        break
    return piece
