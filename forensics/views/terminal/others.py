"""What stands beside the cause: earlier signs, echoes, standing risks, rules that were skipped."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from forensics.diagnosis import RunReport
from forensics.findings import Finding
from forensics.timeline.clock import NO_DATE
from forensics.views.changes import phrase
from forensics.views.clean import one_line
from forensics.views.moments import LONGEST_START_S
from forensics.views.terminal.cause import draw_evidence, draw_explanation
from forensics.views.terminal.page import Page
from forensics.views.words import BEFORE, SEVERITY_STYLE, Places, count, duration, fold_ranks

_MOST_ECHOES = 4
_MOST_RISKS = 5


def lead_words(finding: Finding, outcome: str) -> str:
    """How long before the failure a precursor was known: `5 s before the crash`; or nothing."""
    if not finding.lead_s or finding.lead_s <= 0 or outcome not in BEFORE:
        return ""
    undated = finding.known_at.time is None or finding.known_at.time.year == NO_DATE
    # Two clocks without a year, of which one has a day: only the time of day can be held together.
    seconds = finding.lead_s % LONGEST_START_S if undated else finding.lead_s
    return f"{duration(seconds)} {BEFORE[outcome]}"


def draw_precursors(page: Page, findings: Sequence[Finding], places: Places, outcome: str) -> None:
    """What could be known before the failure, and the time that would have given."""
    if not findings:
        return
    page.heading("Known earlier")
    for finding in findings:
        lead = lead_words(finding, outcome)
        text = Text(f"{lead}: " if lead else "", style="bold")
        text.append(one_line(finding.title), style="not bold")
        page.item(places.at(finding.known_at), text, label_style="cyan")


def draw_echoes(
    page: Page, findings: Sequence[Finding], places: Places, ranks: Sequence[str]
) -> None:
    """Consequences, a line each: they are not what to mend. `ranks` failed the same way, later."""
    if not (findings or ranks):
        return
    page.heading("Echoes", "they follow from the cause")
    named = [
        rank
        for f in findings
        if isinstance(f.facts.get("ranks"), list)
        for rank in f.facts["ranks"]
    ]
    if set(ranks) - set(named):
        page.paragraph(f"{fold_ranks(ranks)} failed the same way, later")
    for finding in findings[:_MOST_ECHOES]:
        page.item(places.at(finding.first), one_line(finding.title), label_style="cyan")
    if len(findings) > _MOST_ECHOES:
        page.paragraph(f"... {len(findings) - _MOST_ECHOES} more (-v)", style="dim")


def draw_risks(
    page: Page, findings: Sequence[Finding], places: Places, verbose: bool, title: str
) -> None:
    """Findings that did not break this run, one item each, with the first thing to do."""
    if not findings:
        return
    page.heading(title)
    shown = findings if verbose else findings[:_MOST_RISKS]
    for finding in shown:
        label = "note" if finding.severity == "info" else finding.severity
        text = Text(one_line(finding.title)).append(f"  {places.at(finding.first)}", style="cyan")
        page.item(label.ljust(8), text, label_style=SEVERITY_STYLE[finding.severity])
        if finding.remedies:
            page.item("fix", phrase(finding.remedies[0]), indent=12, label_style="dim")
        if verbose:
            draw_explanation(page, finding, indent=12)
            draw_evidence(page, finding, places, verbose, indent=12)
    if len(findings) > len(shown):
        page.paragraph(f"... {len(findings) - len(shown)} more (-v)", style="dim")


def draw_skipped(page: Page, report: RunReport) -> None:
    """The rules that could not judge, and why."""
    if not report.skipped:
        return
    page.heading("Not judged", count(len(report.skipped), "rule"))
    for skipped in report.skipped:
        page.item(skipped.rule, skipped.because)
