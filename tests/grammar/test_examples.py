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


ALLOCATOR_MESSAGES = {
    "current": "CUDA out of memory. Tried to allocate 694.00 MiB. GPU 4 has a total capacity of "
    "94.97 GiB of which 247.44 MiB is free. Including non-PyTorch memory, this process has 94.72 "
    "GiB memory in use. Of the allocated memory 87.43 GiB is allocated by PyTorch, and 6.44 GiB is "
    "reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting "
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.",
    "no_nvml": "CUDA out of memory. Tried to allocate 6.37 GiB. GPU 0 has a total capacty of 79.11 "
    "GiB of which 2.93 GiB is free. Process 4242 has 76.17 GiB memory in use. Of the allocated "
    "memory 68.61 GiB is allocated by PyTorch, and 5.63 GiB is reserved by PyTorch but "
    "unallocated.",
    "private_pools": "HIP out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of "
    "255.98 GiB of which 244.65 GiB is free. 1.05 GiB allowed; Of the allocated memory 1017.01 MiB "
    "is allocated by PyTorch, with 17.00 MiB allocated in private pools (e.g., HIP Graphs), and "
    "54.99 MiB is reserved by PyTorch but unallocated.",
    "old": "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.69 GiB total capacity; 20.06 "
    "GiB already allocated; 1.41 GiB free; 20.50 GiB reserved in total by PyTorch) If reserved "
    "memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.",
    "xpu": "XPU out of memory. Tried to allocate 512 bytes. GPU 1 has a total capacity of 63.98 "
    "GiB. Of the allocated memory 62.10 GiB is allocated by PyTorch, and 1.00 GiB is reserved by "
    "PyTorch but unallocated. Please use `empty_cache` to release all unoccupied cached memory.",
}
CLAUSES = {
    "current": ["head", "capacity", "this_process", "allocated", "unallocated", "hint"],
    "no_nvml": ["head", "capacity", "process", "allocated", "unallocated"],
    "private_pools": ["head", "capacity", "allowed", "allocated", "private_pools", "unallocated"],
    "old": ["head", "old_body", "hint"],
    "xpu": ["head", "capacity", "allocated", "unallocated", "hint"],
}


@pytest.mark.parametrize("name", ALLOCATOR_MESSAGES)
def test_allocator_message_is_read_clause_by_clause(name: str) -> None:
    parser = lark.Lark((grammar_dir() / "torch_oom.lark").read_text("utf-8"), parser="lalr")
    tree = parser.parse(ALLOCATOR_MESSAGES[name])
    found = [str(part.data) for part in tree.children if isinstance(part, lark.Tree)]
    assert found == CLAUSES[name]
