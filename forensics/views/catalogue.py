"""The rules as a table, and one rule's playbook."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markdown import Markdown
from rich.text import Text

from forensics.views.json import dumps
from forensics.views.terminal.page import Page
from forensics.views.terminal.words import SEVERITY_STYLE

if TYPE_CHECKING:
    from forensics.rules import Rule

_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n+", re.DOTALL)


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
    """A playbook: set in a terminal, as it is written elsewhere."""
    text = _FRONT_MATTER.sub("", playbook)
    if console.is_terminal:
        console.print(Markdown(text, hyperlinks=False), width=min(console.width, 100))
    else:
        console.file.write(text if text.endswith("\n") else f"{text}\n")
