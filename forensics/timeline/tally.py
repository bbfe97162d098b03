"""How much of a source was understood, counted in physical lines."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

_NUMBER = re.compile(r"\d+")


@dataclass(slots=True)
class LineTally:
    """Counts physical lines as blank, recognised or unknown, whatever pieces they hold."""

    line: int = -1
    blank: bool = True
    known: bool = False
    text: str = ""
    blanks: int = 0
    recognised: int = 0
    unknown: Counter[str] = field(default_factory=Counter)

    def saw(
        self,
        line: int,
        *,
        known: bool = False,
        blank: bool = False,
        text: str = "",
    ) -> None:
        """Note one piece of a line."""
        if line != self.line:
            self.turn(line)
        self.blank = self.blank and blank
        self.known = self.known or known
        self.text = self.text or text

    def turn(self, line: int) -> None:
        """Finish the line at hand and go to another."""
        if self.line >= 0:
            if self.known:
                self.recognised += 1
            elif self.blank:
                self.blanks += 1
            else:
                self.unknown[_shape(self.text)] += 1
        self.line, self.blank, self.known, self.text = line, True, False, ""

    def take(self) -> tuple[int, int, Counter[str]]:
        """The counts so far, without the line at hand."""
        taken = self.blanks, self.recognised, self.unknown
        self.blanks, self.recognised, self.unknown = 0, 0, Counter()
        return taken


def _shape(text: str) -> str:
    """A text with its numbers masked, so that like lines count together."""
    return _NUMBER.sub("0", text[:120])
