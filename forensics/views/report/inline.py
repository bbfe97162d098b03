"""Running text in pieces: what is code and what is prose, for Markdown and HTML alike.

Text may come from a log. What looks like code (flags, names, values, addresses) is set as code,
where nothing is read as markup, mention or link; the rest is escaped by whoever draws it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

_WHOLE = re.compile(r"`([^`\n]+)`|((?:\w+=)?<[A-Za-z][^<>`\n]{0,80}>)")
"""What is code though it has blanks: text between backticks, a placeholder `<your value>`."""
_WORD = re.compile(r"(\s+)")
_EDGES = re.compile(r"^([(\"']*)(.*?)([)\"',.;:!?]*)$", re.S)
_CODE = re.compile(
    r"--\w[\w-]*(=\S+)?$"  # a flag
    r"|\w*[A-Za-z0-9]_\w+([=(]\S*)?$"  # snake_case, NAME_X=value, call_it()
    r"|[A-Z][A-Z0-9]+=\S+$"
    r"|\w[\w+.-]*://\S+$|www\.\S+$"  # what would become a link
    r"|\S*@\S+$|#\d+$|GH-\d+$"  # a mention, a reference to an issue
    r"|~?/\S+$|[\w.-]+/[\w.-]+[/.]\S*$|(?=\S{13})[\w.-]+/[\w.-]+$"  # a path, a model's name
    r"|\S*[\\<{}$|~^`]\S*$"  # a tag, a formula
    r"|[\w.-]+:\d+$|(?=\D)\w+(?::\w+){2,}\S*$"  # log.txt:142, PCI:0000:a9:00.0
)
_VERSION = re.compile(r"(?:[<>=!~]=|[<>])\d[\w.]*$")


def pieces(text: str) -> Iterator[tuple[bool, str]]:
    """The parts of a text in order: whether each is code, and the part; no two alike in a row."""
    for code, parts in groupby(_parts(text), key=lambda part: part[0]):
        yield code, "".join(part for _, part in parts)


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    at = 0
    for match in _WHOLE.finditer(text):
        yield from _words(text[at : match.start()])
        yield True, match[1] or match[2]
        at = match.end()
    yield from _words(text[at:])


def _words(text: str) -> Iterator[tuple[bool, str]]:
    plain: list[str] = []
    for word in _WORD.split(text):
        edges = _EDGES.match(word)
        if not edges or not is_code(edges[2]):
            plain.append(word)
            continue
        before, after = "".join([*plain, edges[1]]), edges[3]
        if before:
            yield False, before
        yield True, edges[2]
        plain = [after]
    if rest := "".join(plain):
        yield False, rest


def is_code(word: str) -> bool:
    """Whether a word is set as code: `--tp-size`, `mem_fraction_static`, `log.txt:142`."""
    return bool(_CODE.match(word) or _VERSION.match(word))
