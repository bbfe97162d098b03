"""The terminal view: the verdict first, then cause, memory, change, risks, lanes, timeline.

Every section is one module; `Page` lays out the lines. Nothing from a log is read as markup.
"""

from __future__ import annotations

from rich.console import Console

from forensics.diagnosis import Diagnosis, RunReport
from forensics.findings import Finding
from forensics.views.picture import Picture, picture
from forensics.views.terminal.cause import draw_failure, draw_finding
from forensics.views.terminal.footer import draw_footer
from forensics.views.terminal.lanes import draw_lanes
from forensics.views.terminal.memory import draw_memory
from forensics.views.terminal.others import (
    draw_echoes,
    draw_precursors,
    draw_risks,
    draw_skipped,
)
from forensics.views.terminal.page import Page
from forensics.views.terminal.remedy import draw_change, draw_command
from forensics.views.terminal.timeline import draw_timeline
from forensics.views.terminal.verdict import draw_verdict
from forensics.views.verdict import in_full, main_finding
from forensics.views.words import Places

__all__ = ["MAX_WIDTH", "draw", "draw_run", "show"]

MOST_RUNS = 10
"""Launches listed; with `-v` all are."""

MAX_WIDTH = 100
"""Text is not set wider than this, however wide the terminal."""


def show(
    diagnosis: Diagnosis, console: Console, *, verbose: bool = False, quiet: bool = False
) -> None:
    """Prints a diagnosis; quiet prints the verdicts alone."""
    page = Page(console, min(console.width, MAX_WIDTH))
    draw(page, diagnosis, verbose=verbose, quiet=quiet)
    page.show()


def draw(page: Page, diagnosis: Diagnosis, *, verbose: bool = False, quiet: bool = False) -> None:
    """Draws every run: the last that failed, else the last, in full, the others in brief."""
    reports = diagnosis.reports
    full = in_full(reports)
    places = Places(source.path for source in diagnosis.incident.sources)
    if full is None:
        page.paragraph("No launch was found in the input.", indent=0)
    elif len(reports) > 1:
        page.paragraph(f"{len(reports)} launches found.", indent=0)
        page.blank()
        shown = reports if verbose else reports[-MOST_RUNS:]
        if len(reports) > len(shown):
            page.paragraph(f"... {len(reports) - len(shown)} earlier (-v)", indent=0, style="dim")
        for report in shown:
            draw_verdict(page, report, f"Run {report.run.number}")
    else:
        draw_verdict(page, full)
    if quiet:
        return
    if full:
        if len(reports) > 1:
            page.heading(f"Run {full.run.number} in full")
        lanes = picture(full, diagnosis.incident)
        draw_run(page, full, lanes, places, verbose)
    draw_footer(page, diagnosis)


def _same_line(finding: Finding, main: Finding | None) -> bool:
    """A precursor that is the very line of the cause: nothing was known earlier."""
    return main is not None and finding.role == "precursor" and finding.first == main.first


def draw_run(page: Page, report: RunReport, lanes: Picture, places: Places, verbose: bool) -> None:
    """The sections of one run."""
    main = main_finding(report)
    if main:
        draw_finding(page, main, places, verbose)
    else:
        draw_failure(page, report, places)
    draw_memory(page, report, places)
    if main:
        draw_change(page, report, main, verbose)
        draw_command(page, report)
    others = [f for f in report.findings if f is not main and not _same_line(f, main)]
    early = [finding for finding in others if finding.role == "precursor" and main]
    echoes = [finding for finding in others if finding.role == "consequence"]
    rest = [finding for finding in others if finding not in early and finding not in echoes]
    draw_precursors(page, early, places, report.run.outcome)
    draw_echoes(page, echoes, places, main.facts.get("echo_ranks") or [] if main else [])
    draw_risks(page, rest, places, verbose, "Standing risks" if main else "Findings")
    draw_lanes(page, lanes, places)
    draw_timeline(page, report, places)
    if verbose:
        draw_skipped(page, report)
