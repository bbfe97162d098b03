"""The text of a finding, from its title to its playbook."""

from __future__ import annotations

import sys

from rich.text import Text

from forensics.findings import Finding, Remedy
from forensics.remedies import new_launch
from forensics.resources import playbook
from forensics.tui.document import Document, Target
from forensics.tui.model import Loaded
from forensics.tui.store import LinePlace
from forensics.views.changes import (
    BASIS,
    command_lines,
    diff_lines,
    effect_words,
    phrase,
)
from forensics.views.clean import one_line
from forensics.views.evidence import ARITHMETIC, explained, first_failure, folded
from forensics.views.verdict import verdict_words
from forensics.views.words import BEFORE, SEVERITY_STYLE, Places, duration, sentence

_SIGN_STYLE = {"+": "green", "-": "red", " ": "dim", "...": "dim"}
_ROLES = {
    "root_cause": "Cause",
    "precursor": "Known earlier",
    "consequence": "Echo",
    "context": "Finding",
}


def write_detail(
    document: Document, loaded: Loaded, run_index: int, finding: Finding | None
) -> None:
    """A finding of a run and how it stands to the others; without one, how the run went."""
    places = Places(loaded.paths)
    if finding is None:
        _write_verdict(document, loaded, run_index, places)
        return
    _write_head(document, loaded, run_index, finding)
    _write_evidence(document, loaded, finding, places)
    _write_change(document, loaded, run_index, finding)
    _write_known(document, loaded, run_index, finding, places)
    _write_others(document, loaded, run_index, finding)
    _write_playbook(document, finding)


def _write_verdict(document: Document, loaded: Loaded, run_index: int, places: Places) -> None:
    report = loaded.report(run_index)
    word, tone, rest = verdict_words(report)
    style = {"bad": "bold red", "warn": "bold yellow"}.get(tone, "bold green")
    gap = " " if rest.startswith(" ") else ""
    document.page.paragraph(Text(word, style=style).append(gap + one_line(rest), style="default"))
    if failure := first_failure(report):
        where, text, frame = failure
        document.page.heading("First failure", "the place to begin reading")
        with document.leading_to(Target(LinePlace(where.event.source, where.line))):
            label = places.at_line(where.event.source, where.line)
            document.page.item(label, f"{text} {frame}", label_style="cyan")


def _write_head(document: Document, loaded: Loaded, run_index: int, finding: Finding) -> None:
    page, findings = document.page, loaded.report(run_index).findings
    number = next((at for at, one in enumerate(findings, 1) if one.id == finding.id), 1)
    rank = f" on {finding.rank}" if finding.rank else ""
    note = f"{number} of {len(findings)}: {finding.rule}{rank}; {finding.severity}"
    page.heading(_ROLES[finding.role], f"{note}, confidence {finding.confidence}")
    page.paragraph(Text(sentence(one_line(finding.title)), style=SEVERITY_STYLE[finding.severity]))
    if finding.remedies:
        page.paragraph(Text("Fix: ", style="bold").append(_phrase(finding.remedies[0])))
    page.blank()
    paragraphs, steps = explained(finding)
    for paragraph in paragraphs:
        page.paragraph(paragraph)
    if steps:
        page.blank()
        page.paragraph(ARITHMETIC)
    for step in steps:
        page.item("-", step)


def _write_evidence(document: Document, loaded: Loaded, finding: Finding, places: Places) -> None:
    page = document.page
    page.heading("Evidence", "Enter shows the line in the log")
    for line in folded(finding, sys.maxsize):
        source = loaded.source_of(line.evidence.source)
        tail = f"  (and {line.alike} alike)" if line.alike else ""
        rank = f"{line.rank}: " if line.rank and not line.alike else ""
        body = Text(rank, style="dim").append(line.text, style="not dim")
        with document.leading_to(Target(LinePlace(source, line.evidence.line))):
            page.item(places.at(line.evidence), body.append(tail, style="dim"), label_style="cyan")


def _write_change(document: Document, loaded: Loaded, run_index: int, finding: Finding) -> None:
    page, report = document.page, loaded.report(run_index)
    if not (finding.remedies or finding.not_helpful):
        return
    page.heading("Change", "one at a time, best first")
    is_cause = report.root_cause is finding
    diff = report.diff if is_cause else new_launch(report.run.launch, [finding]).diff
    for sign, text in diff_lines(diff):
        page.item(sign, text, style=_SIGN_STYLE[sign], label_style=_SIGN_STYLE[sign])
    for number, remedy in enumerate(finding.remedies, start=1):
        page.blank()
        _write_remedy(document, number, remedy)
    if finding.not_helpful:
        page.blank()
        page.paragraph("Would not help", style="bold")
    for reason in finding.not_helpful:
        page.item("-", sentence(one_line(reason)))
    if is_cause and (lines := command_lines(report, document.width - 2)):
        page.heading("New launch", "c copies it")
        for line in lines:
            page.raw(Text(f"  {line}"))


def _write_remedy(document: Document, number: int, remedy: Remedy) -> None:
    page = document.page
    page.item(f"{number}.", _phrase(remedy), style="bold")
    told = (
        ("why   ", remedy.reason),
        ("effect", effect_words(remedy)),
        ("cost  ", remedy.cost),
        ("basis ", BASIS[remedy.basis]),
    )
    for label, text in told:
        if text:
            page.item(label, sentence(one_line(text)), indent=6, label_style="dim")


def _write_known(
    document: Document, loaded: Loaded, run_index: int, finding: Finding, places: Places
) -> None:
    known = finding.known_at
    if finding.role == "root_cause" or not known.line:
        return
    before = BEFORE.get(loaded.report(run_index).run.outcome, "before the end")
    lead = f"{duration(finding.lead_s)} {before}" if finding.lead_s else ""
    document.page.heading("Known at", lead)
    with document.leading_to(Target(LinePlace(loaded.source_of(known.source), known.line))):
        document.page.item(places.at(known), "from this line on", label_style="cyan")


def _write_others(document: Document, loaded: Loaded, run_index: int, finding: Finding) -> None:
    others = [one for one in loaded.report(run_index).findings if one.id != finding.id]
    if not others:
        return
    document.page.heading("Other findings", "Enter shows one; e and E go through all")
    for one in others:
        with document.leading_to(Target(finding_id=one.id)):
            style = SEVERITY_STYLE[one.severity]
            label = f"{_ROLES[one.role].lower()}, {one.severity}"
            document.page.item(label, sentence(one_line(one.title)), label_style=style)


def _write_playbook(document: Document, finding: Finding) -> None:
    text = playbook(finding.playbook or finding.rule, _package(finding.rule))
    if text:
        document.page.heading("Playbook", finding.playbook or finding.rule)
        document.page.blank()
        document.markdown(text)


def _package(rule: str) -> str:
    """The package that brings a rule, and with it the playbook."""
    from forensics.rules import registry

    return next((known.package for known in registry() if known.id == rule), "forensics")


def _phrase(remedy: Remedy) -> str:
    return sentence(one_line(phrase(remedy)))
