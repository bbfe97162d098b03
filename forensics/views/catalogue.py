"""The rules as a table, and one rule's playbook."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading, Markdown, MarkdownElement
from rich.text import Text
from rich.theme import Theme

from forensics.views.json import dumps
from forensics.views.report.playbook import plain
from forensics.views.terminal.page import Page
from forensics.views.words import SEVERITY_STYLE

if TYPE_CHECKING:
    from forensics.rules import Rule

MAX_WIDTH = 100
"""Text is not set wider than this, however wide the terminal."""

_MARKER = re.compile(r" *(?:[-*]|\d+\.) +")
_CODE = re.compile(r"(^```.*?^```$)", re.M | re.S)


def show_rules(rules: Sequence[Rule], console: Console) -> None:
    """One rule an item: id, severity and class, then what it says and what it needs."""
    page = Page(console, console.width)
    id_width = max((len(rule.id) for rule in rules), default=0)
    for rule in rules:
        line = Text(rule.id.ljust(id_width), style="bold").append("  ")
        line.append(
            f"{rule.severity:<8}", style=f"not bold {SEVERITY_STYLE.get(rule.severity, '')}"
        )
        page.raw(line.append(f"  {rule.class_}", style="not bold"))
        page.paragraph(rule.summary, indent=4)
        if rule.needs:
            page.paragraph(f"needs: {rule.needs}", indent=4, style="dim")
    page.show()


def rules_json(rules: Sequence[Rule]) -> str:
    """The rules as a JSON list."""
    data = [
        {
            "id": rule.id,
            "class": rule.class_,
            "severity": rule.severity,
            "role": rule.role,
            "needs": rule.needs,
            "summary": rule.summary,
            "playbook": rule.playbook,
        }
        for rule in rules
    ]
    return dumps(data, indent=2) + "\n"


def show_playbook(playbook: str, console: Console) -> None:
    """A playbook: set in a terminal; elsewhere as it is written, with its long lines folded."""
    text = plain(playbook)
    if not console.is_terminal:
        console.file.write(refolded(text.rstrip("\n"), console.width) + "\n")
        return
    with console.use_theme(_THEME):
        console.print(_Playbook(text, hyperlinks=False), width=min(console.width, MAX_WIDTH))


class _Title(Heading):
    """A heading at the left, as everything else that this program prints."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.justify = "left"
        yield self.text


class _Playbook(Markdown):
    elements: ClassVar[dict[str, type[MarkdownElement]]] = {
        **Markdown.elements,
        "heading_open": _Title,
    }


_THEME = Theme({"markdown.code": "cyan", "markdown.h1": "bold", "markdown.item.number": "none"})


def refolded(text: str, width: int) -> str:
    """Markdown with its paragraphs and items folded anew; code stays as it is."""
    parts = _CODE.split(text)
    parts[::2] = [
        "\n".join(_folded(line, width) for line in _unfolded(part)) for part in parts[::2]
    ]
    return "".join(parts)


def _unfolded(text: str) -> list[str]:
    """Paragraphs and items, each on one line; blank lines stay."""
    whole: list[str] = []
    for line in text.split("\n"):
        goes_on = whole and whole[-1] and line.strip() and not whole[-1].startswith("#")
        if goes_on and not _MARKER.match(line):
            whole[-1] += f" {line.strip()}"
        else:
            whole.append(line)
    return whole


def _folded(line: str, width: int) -> str:
    """A line of markdown in several: their continuation belongs to the same paragraph or item."""
    marker = _MARKER.match(line)
    hang = " " * (len(marker[0]) if marker else 0)
    return textwrap.fill(
        line, width, subsequent_indent=hang, break_long_words=False, break_on_hyphens=False
    )
