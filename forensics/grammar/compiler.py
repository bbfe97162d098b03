"""Flat rules to regular expressions.

Each kind (a rule with an example) becomes one expression with a named group for each leaf rule.
The expressions use only what Rust's engine knows, so polars can run them, and they are anchored
at both ends: a kind matches a whole message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from forensics.grammar.notation import (
    Choice,
    Definition,
    GrammarError,
    GrammarFile,
    Literal,
    Name,
    Node,
    Pattern,
    Repeat,
    Sequence,
)

COMMON = "common"
"""The file whose definitions every other file may import."""

SHORTEST = frozenset({"LEAD", "SOME"})
"""Terminals of free text that end where the rest of the rule can begin."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One line kind, ready to match.

    `groups` maps each group of `regex` to (field, terminal); a field that occurs twice in a rule
    has two groups. `starts` are the texts one of which begins every match (empty: any),
    `needles` are texts of which every match contains one (empty: nothing is known).
    """

    name: str
    file: str
    example: str
    priority: int
    regex: str
    groups: dict[str, tuple[str, str]]
    starts: tuple[str, ...]
    needles: tuple[str, ...]
    weight: int
    """Literal characters in the rule: of two kinds that match, the heavier one is meant."""
    labels: dict[str, tuple[str, str]]
    """Literal text directly in front of a field, to (field, terminal): the keys of batch lines."""

    @property
    def fields(self) -> dict[str, str]:
        """Field name to terminal name."""
        return dict(self.groups.values())


def compile_files(files: Iterable[GrammarFile]) -> list[Kind]:
    """Compile every kind of these files; definitions of `common.lark` are known everywhere."""
    by_name = {file.name: file for file in files}
    shared = by_name[COMMON].definitions if COMMON in by_name else {}
    kinds = []
    for file in by_name.values():
        scope = {**shared, **file.definitions}
        for definition in file.definitions.values():
            if definition.example is not None:
                kinds.append(compile_kind(definition, file.name, scope))
    return kinds


def compile_kind(rule: Definition, file: str, scope: Mapping[str, Definition]) -> Kind:
    """Compile one rule.

    Raises:
        GrammarError: a name is not defined, or the rule is recursive.
    """
    writer = _Writer(scope)
    try:
        regex = writer.write(rule.body, (rule.name,))
        starts, _ = _starts(rule.body, scope)
    except GrammarError as error:
        raise GrammarError(f"{file}.lark, rule {rule.name}: {error}") from error
    required = _required(rule.body, scope)
    return Kind(
        name=rule.name,
        file=file,
        example=rule.example or "",
        priority=rule.priority,
        regex=rf"^(?:{regex})$",
        groups=writer.groups,
        starts=() if "" in starts else tuple(sorted(starts)),
        needles=max(required, key=lambda texts: min(map(len, texts)), default=()),
        weight=sum(len(texts[0]) for texts in required if len(texts) == 1),
        labels=dict(_labels(rule.body, scope)),
    )


def leaf_terminal(definition: Definition) -> str | None:
    """The terminal of a leaf rule (a field), None for any other rule."""
    body = definition.body
    if isinstance(body, Name) and body.name.isupper() and not definition.name.isupper():
        return body.name
    return None


@dataclass(slots=True)
class _Writer:
    scope: Mapping[str, Definition]
    groups: dict[str, tuple[str, str]] = field(default_factory=dict)

    def write(self, node: Node, path: tuple[str, ...]) -> str:
        match node:
            case Literal(text, ignore_case):
                escaped = _escape(text)
                return f"(?i:{escaped})" if ignore_case else escaped
            case Pattern(regex):
                return f"(?:{regex})" if "|" in regex else regex
            case Sequence(items):
                return "".join(self.write(item, path) for item in items)
            case Choice(items):
                return "(?:" + "|".join(self.write(item, path) for item in items) + ")"
            case Repeat(item, suffix):
                lazy = "?" if isinstance(item, Name) and item.name in SHORTEST else ""
                return f"(?:{self.write(item, path)}){suffix}{lazy}"
            case Name(name):
                return self.refer(name, path)

    def refer(self, name: str, path: tuple[str, ...]) -> str:
        if name in path:
            raise GrammarError(f"{name} is recursive; flat rules cannot be")
        definition = _resolve(name, self.scope)
        body = self.write(definition.body, (*path, name))
        if (terminal := leaf_terminal(definition)) is None:
            return f"{body}?" if name in SHORTEST else body
        group, number = name, 2
        while group in self.groups:
            group, number = f"{name}__{number}", number + 1
        self.groups[group] = (name, terminal)
        return f"(?P<{group}>{body})"


def _escape(text: str) -> str:
    # re.escape would also escape characters that Rust's engine refuses to see escaped.
    return re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", text)


def _resolve(name: str, scope: Mapping[str, Definition]) -> Definition:
    if (definition := scope.get(name)) is None:
        raise GrammarError(f"{name} is not defined")
    return definition


def _starts(node: Node, scope: Mapping[str, Definition]) -> tuple[set[str], bool]:
    """Texts that begin every match, and whether they are the whole of it."""
    match node:
        case Literal(text, False):
            return {text}, True
        case Literal() | Pattern():
            return {""}, False
        case Name(name):
            return _starts(_resolve(name, scope).body, scope)
        case Choice(items):
            parts = [_starts(item, scope) for item in items]
            return set().union(*(texts for texts, _ in parts)), all(whole for _, whole in parts)
        case Repeat(item, "?"):
            texts, whole = _starts(item, scope)
            return texts | {""}, whole
        case Repeat(item, suffix):
            texts, _ = _starts(item, scope)
            return (texts if suffix == "+" else texts | {""}), False
        case Sequence(items):
            heads: set[str] = {""}
            for item in items:
                texts, whole = _starts(item, scope)
                heads = {head + text for head in heads for text in texts}
                if not whole or len(heads) > 32:
                    return heads, False
            return heads, True


def _required(node: Node, scope: Mapping[str, Definition]) -> list[tuple[str, ...]]:
    """Sets of texts, of each of which every match contains at least one."""
    match node:
        case Literal(text, False):
            return [(text,)]
        case Name(name):
            return _required(_resolve(name, scope).body, scope)
        case Repeat(item, "+"):
            return _required(item, scope)
        case Sequence(items):
            return [texts for item in items for texts in _required(item, scope)]
        case Choice(items):
            return _one_of([_required(item, scope) for item in items])
    return []


def _one_of(branches: list[list[tuple[str, ...]]]) -> list[tuple[str, ...]]:
    """For alternatives: the most telling text of each, if each has one."""
    if not all(branches):
        return []
    best = [max(texts, key=lambda found: min(map(len, found))) for texts in branches]
    return [tuple(dict.fromkeys(text for found in best for text in found))]


def _labels(node: Node, scope: Mapping[str, Definition]) -> Iterable[tuple[str, tuple[str, str]]]:
    """Literals directly followed by a field."""
    match node:
        case Sequence(items):
            for label, after in pairwise(items):
                if isinstance(label, Literal) and isinstance(after, Name):
                    terminal = leaf_terminal(_resolve(after.name, scope))
                    if terminal is not None:
                        yield label.text, (after.name, terminal)
            for item in items:
                yield from _labels(item, scope)
        case Choice(items):
            for item in items:
                yield from _labels(item, scope)
        case Repeat(item, _):
            yield from _labels(item, scope)
        case Name(name):
            if leaf_terminal(definition := _resolve(name, scope)) is None and not name.isupper():
                yield from _labels(definition.body, scope)
