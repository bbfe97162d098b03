"""What was read and how much of it was understood."""

from __future__ import annotations

import shlex

from rich.text import Text

from forensics.diagnosis import Diagnosis
from forensics.views.clean import one_line
from forensics.views.terminal.page import Page
from forensics.views.verdict import in_full
from forensics.views.words import count, percent

LOW_SHARE = 0.8
"""Below this recognised share the reader is told how to see what was not understood."""


def draw_footer(page: Page, diagnosis: Diagnosis) -> None:
    """The coverage line, with what the reader of the input had to say."""
    coverage, sources = diagnosis.coverage, diagnosis.incident.sources
    page.blank()
    what = sources[0].path if len(sources) == 1 else count(len(sources), "source")
    share = percent(coverage.recognised, coverage.lines)
    parts = [f"{count(coverage.lines, 'line')}, {share} recognised"]
    if coverage.ranks:
        parts.append(count(len(coverage.ranks), "rank"))
    if coverage.release:
        parts.append(f"sglang {coverage.release}")
    page.paragraph(f"Read {what}: {'; '.join(parts)}.", indent=0, style="dim")
    for skipped in coverage.skipped:
        page.item("Notice:", skipped, indent=0, label_style="yellow")
    if coverage.lines and coverage.share < LOW_SHARE:
        hint = "`forensics coverage` shows the lines that no rule knows."
        page.paragraph(hint, indent=0, style="dim")
    full = in_full(diagnosis.reports)
    if full is not None and full.reproduce:
        words = shlex.join(one_line(word) for word in full.reproduce)
        page.raw(Text("Try the fix: ", style="bold").append(words, style="not bold"))
