"""A page of lines: headings, paragraphs and hanging items, wrapped to a width.

Lines never carry markup from data and never end in spaces, so that what is piped or pasted
stays as it was.
"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from forensics.views.clean import clean, one_line

_LEAST_COLUMN = 12
"""A label's column is given up for the text where both are narrower than this allows."""

_LEAST_ROOM = 8


class Page:
    """Lines of text, collected top to bottom."""

    def __init__(self, console: Console, width: int) -> None:
        self.console = console
        self.width = width
        self.lines: list[Text] = []

    def blank(self) -> None:
        """An empty line, never two in a row."""
        if self.lines and self.lines[-1].plain:
            self.lines.append(Text())

    def heading(self, title: str, note: str = "") -> None:
        """A section's title, with a note after it."""
        self.blank()
        head = Text(title.upper(), style="bold")
        if note:
            self._wrap(Text(one_line(note), style="dim"), head.append("  "), " " * len(head))
        else:
            self.raw(head)

    def paragraph(self, text: str | Text, indent: int = 2, style: str = "") -> None:
        """Running text; a string is cleaned first."""
        body = text if isinstance(text, Text) else Text(one_line(text), style=style)
        self._wrap(body, " " * indent, " " * indent)

    def item(
        self, label: str, text: str | Text, indent: int = 2, style: str = "", label_style: str = ""
    ) -> None:
        """A label, padded by the caller if it stands in a column, and a text that hangs behind."""
        label = clean(label).replace("\n", " ")
        body = text if isinstance(text, Text) else Text(one_line(text), style=style)
        hang = indent + Text(label).cell_len + 2
        if hang > self.width // 2 or self.width - hang < _LEAST_COLUMN < hang:
            self._wrap(Text(label.rstrip(), style=label_style), " " * indent, " " * indent)
            below = " " * min(indent + 4, self.width // 3)
            self._wrap(body, below, below)
            return
        first = Text(" " * indent).append(label, style=label_style).append("  ")
        self._wrap(body, first, " " * hang)

    def raw(self, line: Text) -> None:
        """A line that is laid out already."""
        line.rstrip()
        self.lines.append(line)

    def show(self) -> None:
        """Prints the page."""
        for line in self.lines:
            self.console.print(line, soft_wrap=True)

    def _wrap(self, text: Text, first: str | Text, rest: str) -> None:
        head = first if isinstance(first, Text) else Text(first)
        room = max(self.width - len(rest), _LEAST_ROOM)
        for number, line in enumerate(text.wrap(self.console, room)):
            line.rstrip()
            self.raw(Text.assemble(head if number == 0 else Text(rest), line))
