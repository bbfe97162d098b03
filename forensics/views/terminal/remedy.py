"""The change: a diff of the launch, the remedies in order, and what would not help."""

from __future__ import annotations

from rich.text import Text

from forensics.diagnosis import RunReport
from forensics.findings import Finding, Remedy
from forensics.redact import REDACTED
from forensics.views.changes import BASIS, command_lines, diff_lines, effect_words, phrase
from forensics.views.clean import one_line
from forensics.views.terminal.page import Page
from forensics.views.words import sentence

__all__ = ["draw_change", "draw_command"]

_SIGN_STYLE = {"+": "green", "-": "red", " ": "dim"}


def draw_change(page: Page, report: RunReport, finding: Finding, verbose: bool) -> None:
    """The section on what to change for a finding."""
    if not (finding.remedies or finding.not_helpful):
        return
    page.heading("Change", "one at a time, best first")
    if report.diff and report.root_cause is finding:
        _draw_diff(page, report, verbose)
        page.blank()
    for number, remedy in enumerate(finding.remedies, start=1):
        _draw_remedy(page, number, remedy)
    if finding.not_helpful:
        page.blank()
        page.paragraph("Would not help", style="bold")
    for reason in finding.not_helpful:
        page.item("-", sentence(one_line(reason)))


def draw_command(page: Page, report: RunReport) -> None:
    """The new launch as a command to copy."""
    lines = command_lines(report, page.width - 2)
    if not lines:
        return
    page.heading("New launch")
    for line in lines:
        page.raw(Text(f"  {line}"))
    if any(REDACTED in line for line in lines):
        page.paragraph(f"Put your own value where it says {REDACTED}.", style="dim")
    if report.not_repeated:
        left = ", ".join(one_line(words) for words in report.not_repeated)
        lead = "Not repeated, since SGLang may have picked them itself: "
        page.paragraph(f"{lead}{left}", style="dim")


def _draw_diff(page: Page, report: RunReport, verbose: bool) -> None:
    for sign, text in diff_lines(report.diff, whole=verbose):
        if sign == "...":
            page.paragraph(f"... {text}", indent=5, style="dim")
        else:
            page.item(sign, text, style=_SIGN_STYLE[sign], label_style=_SIGN_STYLE[sign])


def _draw_remedy(page: Page, number: int, remedy: Remedy) -> None:
    page.item(f"{number}.", sentence(phrase(remedy)), style="bold")
    page.item("why   ", sentence(one_line(remedy.reason)), indent=6, label_style="dim")
    effect = effect_words(remedy)
    if effect:
        page.item("effect", effect, indent=6, label_style="dim")
    if remedy.cost:
        page.item("cost  ", sentence(one_line(remedy.cost)), indent=6, label_style="dim")
    page.item("basis ", sentence(BASIS[remedy.basis]), indent=6, label_style="dim")
