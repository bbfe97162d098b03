"""The `.lark` files as a small syntax tree.

The files are read with the grammar of grammars that Lark ships (`lark/grammars/lark.lark`), so
that they stay ordinary Lark grammars. An example is the comment line directly above a rule.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeAlias

import lark

_EXAMPLE = re.compile(r"^// ?(?P<example>.*)\n(?P<rule>[a-z][a-z0-9_]*)(?:\.-?\d+)?[ \t]*:", re.M)
_TITLE = re.compile(r"\A// ?(?P<title>\S.*)\n")


@dataclass(frozen=True, slots=True)
class Literal:
    """Fixed text."""

    text: str
    ignore_case: bool = False


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression."""

    regex: str


@dataclass(frozen=True, slots=True)
class Name:
    """A reference to a rule or a terminal."""

    name: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """Items one after the other."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several alternatives, the first that fits."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """An item `?`, `*`, `+`, or so many times: `{0,5}`."""

    item: Node
    suffix: str


Node: TypeAlias = Literal | Pattern | Name | Sequence | Choice | Repeat


@dataclass(frozen=True, slots=True)
class Definition:
    """One rule or terminal of a grammar file."""

    name: str
    body: Node
    priority: int = 0
    example: str | None = None


@dataclass(slots=True)
class GrammarFile:
    """One grammar file: its title and its definitions by name, in order."""

    name: str
    title: str
    definitions: dict[str, Definition] = field(default_factory=dict)


class GrammarError(ValueError):
    """A grammar file uses something that a flat rule cannot express."""


@cache
def _reader() -> lark.Lark:
    return lark.Lark.open(
        "lark.lark", rel_to=str(Path(lark.__file__).parent / "grammars" / "_"), parser="lalr"
    )


def read_grammar(path: Path) -> GrammarFile:
    """Read one grammar file.

    Raises:
        GrammarError: the file is not a Lark grammar or has no title comment.
    """
    text = path.read_text(encoding="utf-8")
    if not (title := _TITLE.match(text)):
        raise GrammarError(f"{path.name}: the first line must be a title comment")
    try:
        tree = _reader().parse(text + "\n")
    except lark.exceptions.LarkError as error:
        raise GrammarError(f"{path.name}: {error}") from error
    examples = {found["rule"]: found["example"] for found in _EXAMPLE.finditer(text)}
    grammar = GrammarFile(path.stem, title["title"])
    for item in tree.children:
        if isinstance(item, lark.Tree) and item.data in ("rule", "token"):
            definition = _definition(item, examples)
            grammar.definitions[definition.name] = definition
    return grammar


def _definition(tree: lark.Tree[lark.Token], examples: dict[str, str]) -> Definition:
    name, priority = str(tree.children[0]).lstrip("?!"), 0
    for child in tree.children[1:-1]:
        if isinstance(child, lark.Tree) and child.data == "priority":
            priority = int(str(child.children[0]))
    return Definition(name, _node(tree.children[-1]), priority, examples.get(name))


def _node(item: lark.Tree[lark.Token] | lark.Token) -> Node:
    if isinstance(item, lark.Token):
        raise GrammarError(f"unexpected {item!r}")
    parts = item.children
    match item.data:
        case "name":
            return Name(str(parts[0]).lstrip("?!"))
        case "literal":
            return _literal(str(parts[0]))
        case "expansions":
            return _one_or(Choice, parts)
        case "alias":
            return _node(parts[0])
        case "expansion":
            return _one_or(Sequence, parts)
        case "maybe":
            return Repeat(_node(parts[0]), "?")
        case "expr":
            suffix = [str(part) for part in parts[1:] if part is not None and part != "~"]
            return _repeat(_node(parts[0]), suffix) if suffix else _node(parts[0])
    raise GrammarError(f"flat rules cannot express {item.data}")


def _one_or(
    kind: type[Choice] | type[Sequence], parts: list[lark.Tree[lark.Token] | lark.Token]
) -> Node:
    nodes = tuple(_node(part) for part in parts)
    return nodes[0] if len(nodes) == 1 else kind(nodes)


def _repeat(item: Node, suffix: list[str]) -> Node:
    """`?`, `*`, `+`, or the bounds of `~2` and `~0..5`."""
    bounded = suffix[0].isdigit()
    return Repeat(item, "{" + ",".join(suffix) + "}" if bounded else suffix[0])


def _literal(text: str) -> Node:
    if text.startswith('"'):
        ignore_case = text.endswith("i")
        return Literal(ast.literal_eval(text.removesuffix("i")), ignore_case)
    body, _, flags = text[1:].rpartition("/")
    body = body.replace(r"\/", "/")
    return Pattern(f"(?{flags}:{body})" if flags else body)
