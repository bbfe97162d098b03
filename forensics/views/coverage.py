"""How much of each source was understood, and what the rest looks like."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from forensics.diagnosis import Diagnosis
from forensics.events import OTHER
from forensics.views.clean import one_line, window
from forensics.views.json import dumps
from forensics.views.terminal.page import Page
from forensics.views.terminal.words import percent

if TYPE_CHECKING:
    from forensics.incident import Incident

_HEX = re.compile(r"\b0x[0-9a-fA-F]+\b|\b[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_SHAPE_LENGTH = 200


def shape(text: str) -> str:
    """A line with its numbers and hexadecimal ids masked, so that like lines are equal."""
    return _NUMBER.sub("N", _HEX.sub("H", one_line(text[: 4 * _SHAPE_LENGTH])))[:_SHAPE_LENGTH]


def unknown_shapes(incident: Incident, most: int) -> list[tuple[str, int]]:
    """The shapes of lines that no rule knows, and how often each came, most frequent first."""
    shapes = Counter(
        shape(event.text)
        for run in incident.runs
        for event in run.events
        if event.kind == OTHER and event.traceback is None
    )
    return shapes.most_common(most)


def render_json(diagnosis: Diagnosis, unknown: int) -> str:
    """The figures as a JSON document."""
    data: dict[str, Any] = {
        "sources": [
            {
                "path": source.path,
                "lines": source.lines,
                "recognised_lines": source.recognised_lines,
                "share": source.recognised_lines / source.lines if source.lines else None,
            }
            for source in diagnosis.incident.sources
        ],
        "unknown": [
            {"shape": text, "count": number}
            for text, number in unknown_shapes(diagnosis.incident, unknown)
        ],
    }
    return dumps(data, indent=2) + "\n"


def show(diagnosis: Diagnosis, console: Console, unknown: int) -> None:
    """The figures as a table, then the shapes."""
    page = Page(console, console.width)
    page.raw(Text(f"{'lines':>12}  {'recognised':>12}  {'share':>7}  source", style="bold"))
    for source in diagnosis.incident.sources:
        share = percent(source.recognised_lines, source.lines)
        numbers = f"{source.lines:>12,}  {source.recognised_lines:>12,}  {share:>7}  "
        page.raw(Text(numbers + one_line(source.path)))
    shapes = unknown_shapes(diagnosis.incident, unknown)
    if shapes:
        page.heading("Not understood", "most frequent first; N is a number, H a hexadecimal id")
    for text, number in shapes:
        page.raw(Text(f"{number:>8,}  {window(text, page.width - 10)}"))
    page.show()
