"""How much of each source was understood, and what the rest looks like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from forensics.diagnosis import Diagnosis
from forensics.views.clean import one_line, window
from forensics.views.json import dumps
from forensics.views.terminal.page import Page
from forensics.views.words import percent

if TYPE_CHECKING:
    from forensics.incident import SourceFacts


def render_json(diagnosis: Diagnosis, unknown: int) -> str:
    """The figures as a JSON document."""
    data: dict[str, Any] = {
        "sources": [
            {
                "path": source.path,
                "lines": source.lines,
                "blank_lines": source.blank_lines,
                "recognised_lines": source.recognised_lines,
                "share": source.recognised_lines / _written(source) if _written(source) else None,
            }
            for source in diagnosis.incident.sources
        ],
        "unknown": [
            {"shape": text, "count": number}
            for text, number in diagnosis.coverage.unknown_shapes[:unknown]
        ],
    }
    return dumps(data, indent=2) + "\n"


def show(diagnosis: Diagnosis, console: Console, unknown: int) -> None:
    """The figures as a table, then the shapes."""
    page = Page(console, console.width)
    page.raw(Text(f"{'lines':>12}  {'recognised':>12}  {'share':>7}  source", style="bold"))
    for source in diagnosis.incident.sources:
        share = percent(source.recognised_lines, _written(source))
        numbers = f"{source.lines:>12,}  {source.recognised_lines:>12,}  {share:>7}  "
        page.raw(Text(numbers + one_line(source.path)))
    shapes = diagnosis.coverage.unknown_shapes[:unknown]
    if shapes:
        page.heading("Not understood", "most frequent first, numbers masked")
    for text, number in shapes:
        page.raw(Text(f"{number:>8,}  {window(one_line(text), page.width - 10)}"))
    page.show()


def _written(source: SourceFacts) -> int:
    """Lines that are not blank."""
    return source.lines - source.blank_lines
