"""Playbooks as they are shown."""

from __future__ import annotations

import io

from forensics.views.catalogue import show_playbook
from forensics.views.console import ColorWhen, console_for

PLAYBOOK = """\
# A title

**What it means.** Words that go on and on until the line is wider than the forty columns there are.

- An item that is written
  on two lines and is folded at another place than there.

```
code stays as it is, however long its lines are written
# and is no heading
```
"""
FOLDED = """\
# A title

**What it means.** Words that go on and
on until the line is wider than the
forty columns there are.

- An item that is written on two lines
  and is folded at another place than
  there.

```
code stays as it is, however long its lines are written
# and is no heading
```
"""


def shown(color: ColorWhen) -> str:
    out = io.StringIO()
    console = console_for(out, color)
    console.width = 40
    show_playbook(PLAYBOOK, console)
    return out.getvalue()


def test_piped_it_is_markdown_at_the_width_there_is() -> None:
    assert shown("never") == FOLDED


def test_in_a_terminal_it_is_set_at_the_left() -> None:
    lines = shown("always").splitlines()
    assert lines[0].startswith("\x1b[1mA title")
    assert "**" not in "".join(lines)
