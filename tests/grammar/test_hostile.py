"""A log is written by whoever likes to: no line may keep a pattern busy for long.

Every pattern is run against long texts of one repeated piece, and against its own example with
one piece of it repeated thousands of times in place, which is what makes alternatives and
repetitions try everything.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest

from forensics.grammar import Kind, load
from forensics.grammar.matcher import LONGEST

LENGTH = 20_000
LIMIT_S = 1.0
"""CPU time of one match; the slowest takes a tenth of it, a pattern that backtracks many times."""

PIECES = (
    *("[", "]", "{", "(", "(a ", " ", "0", "1.", "-", "a", "_", "A", "é", "<a>", "`", "\\", "|"),
    *("a: ", "a=1, ", "[1, ", '"', "'", ", ", ". ", ": ", "; ", "/", "a.b/", "a b ", "%|", "0x0"),
    *('{"a": ', "{'a': ", "#a: 1, ", "[Rank 5] "),
)
KINDS = sorted(
    (*load().kinds.values(), *load().heads.kinds.values()), key=lambda kind: (kind.file, kind.name)
)


def filled(piece: str) -> str:
    return piece * (LENGTH // len(piece) + 1)


def hostile(kind: Kind) -> Iterator[str]:
    yield from map(filled, PIECES)
    pieces = re.split(r"(?<=[ ,:(])", kind.example)
    for place, piece in enumerate(pieces):
        if piece:
            before, after = "".join(pieces[:place]), "".join(pieces[place + 1 :])
            yield f"{before}{filled(piece)}\0{after}"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_no_line_keeps_a_pattern_busy(kind: Kind) -> None:
    pattern = re.compile(kind.regex)
    slow = []
    for text in hostile(kind):
        start = time.thread_time()
        pattern.match(text)
        if (taken := time.thread_time() - start) > LIMIT_S:
            slow.append((round(taken, 1), text[:60]))
    assert slow == []


@pytest.mark.parametrize("piece", ["[", "a: ", " ", "7", "{'a': ", "Decode batch, #token: 1, "])
def test_a_line_of_megabytes_is_looked_at_in_part(piece: str) -> None:
    start = time.thread_time()
    load().match(piece * 1_000_000)
    load().match(piece * (LONGEST // len(piece)))
    assert time.thread_time() - start < 5 * LIMIT_S
