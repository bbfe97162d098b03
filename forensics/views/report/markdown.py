"""Markdown that reads right on GitHub and in a pager, whatever the log says.

Every text is either set as code or escaped, so that nothing from a log becomes a heading, a
link, an image, HTML, a mention or a table.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence

from forensics.views.report.inline import pieces

WIDTH = 80
"""Prose is wrapped here; one line a paragraph (None) is for places that keep line breaks."""

NO_BREAK = "\x00"
"""Stands for the blanks of code until all is wrapped; no clean text holds it."""

_SPECIAL = re.compile(
    r"[\\`<|~]"
    r"|(?<!\s)\*|\*(?!\s)"
    r"|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])"
    r"|(?<=\])[(\[:]|!(?=\[)"
    r"|&(?=#?\w+;)|:(?=[A-Za-z_+-][\w+-]*:)|\$"
)
_BLOCK = re.compile(r"(?:[-+*](?=\s|$)|[#>|\[]|(?:[-_*=]\s*)+$|(?=\d{1,9}[.)](?:\s|$)))")
_NUMBERED = re.compile(r"(\d+)([.)])")


def prose(text: str) -> str:
    """Text as one line of Markdown."""
    return "".join(code(part) if is_code else escaped(part) for is_code, part in pieces(text))


def escaped(text: str) -> str:
    """Text in which nothing is markup."""
    return _SPECIAL.sub(lambda match: f"\\{match[0]}", " ".join(text.split(" ")))


def code(text: str) -> str:
    """A code span that holds any text; it is not wrapped."""
    text = NO_BREAK.join(text.split())
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = NO_BREAK if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def cell(text: str, *, as_code: bool = False) -> str:
    """Text in a cell of a table: a bar would end it, even in code."""
    set_ = code(text) if as_code and text else prose(text)
    return re.sub(r"(?<!\\)\|", r"\\|", set_)


def fence(lines: Sequence[str], language: str = "text") -> str:
    """A block of code that no line of it can end."""
    text = "\n".join(line.replace("\r", "") for line in lines)
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    mark = "`" * (longest + 1)
    return f"{mark}{language}\n{text}\n{mark}"


def wrapped(markdown: str, width: int | None = WIDTH, hang: str = "", lead: str = "") -> str:
    """A paragraph or item in lines; code spans stay whole, no line begins a block.

    `lead` stands before the first line, `hang` before the others.
    """
    lines = _lines(markdown, width - len(hang)) if width else [markdown]
    return lead + f"\n{hang}".join(map(_inert, lines))


def _lines(text: str, room: int) -> list[str]:
    return textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]


def _inert(line: str) -> str:
    """A line whose first characters begin no block."""
    if not _BLOCK.match(line):
        return line
    if number := _NUMBERED.match(line):
        return f"{number[1]}\\{line[number.end(1) :]}"
    return line if line.startswith("`") else f"\\{line}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: int = 0) -> str:
    """A table whose columns line up in a pager; the last `numbers` columns are set right.

    Cells are Markdown already.
    """
    columns = list(zip(header, *rows, strict=True))
    widths = [max(3, *(len(cell) for cell in column)) for column in columns]
    first_number = len(header) - numbers
    marks = [
        "-" * (width - 1) + ":" if number >= first_number else "-" * width
        for number, width in enumerate(widths)
    ]

    def line(cells: Sequence[str]) -> str:
        padded = [
            text.rjust(width) if number >= first_number else text.ljust(width)
            for number, (text, width) in enumerate(zip(cells, widths, strict=True))
        ]
        padded[-1] = padded[-1] if numbers else padded[-1].rstrip()
        return f"| {' | '.join(padded)} |"

    return "\n".join([line(header), line(marks), *map(line, rows)])
