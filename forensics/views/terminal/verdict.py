"""The verdict: how the run ended and what to do, in a sentence each."""

from __future__ import annotations

from rich.text import Text

from forensics.diagnosis import RunReport
from forensics.views.changes import to_do
from forensics.views.clean import clean
from forensics.views.terminal.page import Page
from forensics.views.verdict import main_finding, verdict_words
from forensics.views.words import ended

_STYLE = {"bad": "bold red", "warn": "bold yellow", "good": "bold green"}


def draw_verdict(page: Page, report: RunReport, label: str = "") -> None:
    """What happened, and the fix."""
    word, tone, rest = verdict_words(report)
    sentence = Text().append(word, style=_STYLE[tone]).append(clean(rest))
    if label:
        page.item(label, sentence, indent=0, label_style="bold")
    else:
        page.paragraph(sentence, indent=0)
    finding = main_finding(report)
    if finding and finding.remedies:
        fix = Text("Fix: ", style="bold green")
        fix.append(ended(to_do(finding.remedies[0])), style="not green")
        page.paragraph(fix, indent=len(label) + 2 if label else 0)
