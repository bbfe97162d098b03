"""Copies text to the clipboard of the terminal that the user looks at, and says what it copied.

Terminals take it by OSC 52, also over ssh. tmux takes no OSC 52 from programs in its default
settings, but it takes a buffer from its own client and hands it on to the terminal (`-w`).
"""

from __future__ import annotations

import os
import subprocess
import threading
from typing import TYPE_CHECKING, Any

from forensics.redact import REDACTED
from forensics.views.changes import command_lines, effect_words, phrase
from forensics.views.clean import clean, one_line
from forensics.views.words import Places, ended, sentence

if TYPE_CHECKING:
    from textual.app import App

    from forensics.diagnosis import RunReport
    from forensics.findings import Finding
    from forensics.tui.desk import Desk

WIDTH = 100
"""Columns at which a copied launch is broken."""

_TMUX_S = 5.0


def copy(app: App[Any], text: str, what: str) -> None:
    """Copy, and show a notice; the text is cleaned of secrets and escapes first."""
    safe = clean(text)
    app.copy_to_clipboard(safe)
    if os.environ.get("TMUX"):
        threading.Thread(target=_to_tmux, args=(safe,), daemon=True).start()
    hint = f"; put your own value where it says {REDACTED}" if REDACTED in safe else ""
    app.notify(f"Copied {what}{hint}", markup=False, timeout=4)


def text_of(what: str, desk: Desk | None) -> str:
    """The new launch or the finding that is looked at, as text; empty where there is none."""
    if desk is None:
        return ""
    if what == "new launch":
        return launch_text(desk.report)
    return finding_text(desk.finding, Places(desk.loaded.paths)) if desk.finding else ""


def launch_text(report: RunReport) -> str:
    """The new launch as a command to paste into a shell; empty where there is none."""
    return "\n".join(command_lines(report, WIDTH))


def finding_text(finding: Finding, places: Places) -> str:
    """A finding for a message to somebody: what, why, where, and what to change."""
    lines = [f"{finding.severity}: {ended(one_line(finding.title))} ({finding.rule})"]
    lines += [clean(finding.explanation).strip(), ""]
    lines += [f"{places.at(item)}: {one_line(item.text)}" for item in finding.evidence]
    if finding.remedies:
        lines.append("")
    for number, remedy in enumerate(finding.remedies, start=1):
        effect = effect_words(remedy)
        lines.append(f"{number}. {sentence(phrase(remedy))}{f': {effect}' if effect else ''}")
    return "\n".join(lines).strip() + "\n"


def _to_tmux(text: str) -> None:
    """Hand the text to tmux; where there is no tmux after all, OSC 52 has to do."""
    try:
        subprocess.run(
            ["tmux", "load-buffer", "-w", "-"],
            input=text.encode("utf-8", "replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_TMUX_S,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return
