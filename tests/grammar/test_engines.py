"""One grammar, three engines: Python's `re`, the Rust engine in polars, and Lark itself.

Lines are generated from each rule by hypothesis; all engines must read the same fields from them.
Free text is drawn from letters that no rule spells, so that a line can be read in one way only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import lark
import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.extra.lark import from_lark

from forensics.grammar import Kind, load
from forensics.resources import grammar_dir

KINDS = sorted(
    (*load().kinds.values(), *load().heads.kinds.values()), key=lambda kind: (kind.file, kind.name)
)
IDS = [kind.name for kind in KINDS]
Texts = dict[str, str]

WORDS = st.text("qzQZé", min_size=1, max_size=6)
PRINTABLE = st.characters(min_codepoint=32, max_codepoint=126)
FREE = {
    "LEAD": st.builds("{}{}".format, WORDS, st.sampled_from([": ", "] ", " | "])),
    "TAIL": st.builds(" {}".format, WORDS),
    "REST": st.builds(", {}".format, WORDS),
}
"""What stands before and behind a message is set off by a blank, as it is in logs."""


@cache
def definitions(file: str) -> dict[str, str]:
    """The definitions of a grammar file, each of which is one line, by name."""
    text = (grammar_dir() / f"{file}.lark").read_text(encoding="utf-8")
    found = re.finditer(r"^(?P<name>\w+)(?:\.-?\d+)?: .*", text, re.M)
    return {one["name"]: one[0] for one in found}


def grammar_of(kind: Kind) -> str:
    """The part of a grammar file that one rule needs, as a Lark grammar of its own."""
    known = definitions("common") | definitions(kind.file)
    needed, todo = [], [kind.name]
    while todo:
        name = todo.pop()
        if name not in needed:
            needed.append(name)
            bare = re.sub(r'"(?:[^"\\]|\\.)*"', "", known[name]) if name.islower() else ""
            todo += [word for word in re.findall(r"\w+", bare) if word in known]
    return "\n".join(known[name] for name in needed)


def parser_of(kind: Kind) -> lark.Lark:
    return _parser(kind.name, grammar_of(kind))


@cache
def _parser(start: str, grammar: str) -> lark.Lark:
    return lark.Lark(grammar, start=start, parser="earley", lexer="dynamic_complete")


def lines_of(kind: Kind) -> st.SearchStrategy[str]:
    """Lines that the rule of a kind describes."""
    parser = parser_of(kind)
    free = {
        terminal.name: FREE.get(terminal.name, words_of(terminal.pattern.to_regexp()))
        for terminal in parser.terminals
        if terminal.name in FREE or re.fullmatch(terminal.pattern.to_regexp(), "qzQZ")
    }
    return from_lark(parser, start=kind.name, alphabet=PRINTABLE, explicit=free)


def words_of(regex: str) -> st.SearchStrategy[str]:
    """Words that a terminal of free text may be."""
    pattern = re.compile(regex)
    return WORDS.filter(lambda word: pattern.fullmatch(word) is not None)


def read_by_re(kind: Kind, line: str) -> Texts | None:
    if not (found := re.match(kind.regex, line)):
        return None
    return of_fields(kind, found.groupdict())


def read_by_polars(kind: Kind, line: str) -> Texts | None:
    lines = pl.Series([line])
    if not lines.str.contains(kind.regex)[0]:
        return None
    return of_fields(kind, lines.str.extract_groups(kind.regex)[0] if kind.groups else {})


def of_fields(kind: Kind, groups: dict[str, str | None]) -> Texts:
    """Texts of the groups by field; a field that stands twice in a rule has two groups."""
    found = {group: text for group, text in groups.items() if text is not None}
    return {kind.groups[group][0]: text for group, text in found.items()}


def read_by_lark(kind: Kind, line: str) -> Texts | None:
    try:
        tree = parser_of(kind).parse(line)
    except lark.exceptions.UnexpectedInput:
        return None
    return {
        str(part.data): "".join(map(str, part.children))
        for part in parts_of(tree)
        if part.data in kind.fields
    }


def parts_of(tree: lark.ParseTree) -> Iterator[lark.ParseTree]:
    """The rules that took part, in the order of the line."""
    for child in tree.children:
        if isinstance(child, lark.Tree):
            yield child
            yield from parts_of(child)


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_engines_read_generated_lines_alike(kind: Kind) -> None:
    @settings(
        max_examples=8,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],  # lines are short; making them shorter takes long
    )
    @given(line=lines_of(kind))
    def alike(line: str) -> None:
        by_re = read_by_re(kind, line)
        assert by_re is not None
        assert read_by_polars(kind, line) == by_re
        assert read_by_lark(kind, line) == by_re

    alike()


@pytest.mark.parametrize("kind", KINDS, ids=IDS)
def test_engines_read_the_example_alike(kind: Kind) -> None:
    by_re = read_by_re(kind, kind.example)
    assert by_re is not None
    assert read_by_polars(kind, kind.example) == by_re
    assert read_by_lark(kind, kind.example) == by_re
