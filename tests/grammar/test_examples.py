"""Every rule of the grammar files parses its own example, and every file is ordinary Lark."""

from __future__ import annotations

import re
from pathlib import Path

import lark
import pytest

from forensics.grammar import Kind, load
from forensics.grammar.values import PYTHON_TYPES
from forensics.resources import grammar_dir

KINDS = sorted(load().kinds.values(), key=lambda kind: (kind.file, kind.name))
FILES = sorted(grammar_dir().glob("*.lark"))
FLAT = sorted({kind.file for kind in KINDS})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_example_is_of_its_own_kind(kind: Kind) -> None:
    match = load().match(kind.example)
    assert match is not None
    assert match.kind == kind.name
    for name, value in match.fields.items():
        expected = PYTHON_TYPES.get(kind.fields[name], str)
        assert isinstance(value, list if expected == list[int] else expected), name


def test_equal_rank_never_decides_between_two_kinds() -> None:
    grammar = load()
    undecided = []
    for kind in KINDS:
        for other in KINDS:
            if other.name == kind.name or rank(other) != rank(kind):
                continue
            if grammar.messages.match_as(other.name, kind.example):
                undecided.append((kind.name, other.name))
    assert undecided == []


def rank(kind: Kind) -> tuple[int, int]:
    """What decides between kinds that both match."""
    return kind.priority, kind.weight


def test_kinds_are_named_once() -> None:
    names = re.findall(
        r"^// ?.*\n([a-z]\w*)(?:\.-?\d+)?:",
        "\n".join((grammar_dir() / f"{file}.lark").read_text("utf-8") for file in FLAT),
        re.M,
    )
    assert len(names) == len(set(names))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file_begins_with_its_title(path: Path) -> None:
    assert re.match(r"// [A-Z]", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("file", FLAT)
def test_file_is_ordinary_lark(file: str) -> None:
    starts = [kind.name for kind in KINDS if kind.file == file]
    path = grammar_dir() / f"{file}.lark"
    lark.Lark.open(str(path), start=starts, parser="earley")
