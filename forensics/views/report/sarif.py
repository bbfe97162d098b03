"""Findings as SARIF 2.1.0, for code scanning: regions point at the lines of the log."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from forensics import __version__
from forensics.diagnosis import Diagnosis, RunReport
from forensics.findings import Finding, Place, Severity
from forensics.resources import playbook as playbook_text
from forensics.rules import Rule, registry
from forensics.views.changes import phrase
from forensics.views.clean import clean, one_line
from forensics.views.json import dumps
from forensics.views.report import sarif_model as sarif
from forensics.views.report.build import package_of
from forensics.views.report.markdown import NO_BREAK, code, prose
from forensics.views.report.playbook import plain
from forensics.views.words import ended, sentence

LEVELS: dict[Severity, sarif.Level] = {"critical": "error", "warning": "warning", "info": "note"}

MOST_SNIPPET = 1_000
"""Characters of a quoted line."""


def render(diagnosis: Diagnosis) -> str:
    """The document as JSON text."""
    found = [(report, finding) for report in diagnosis.reports for finding in report.findings]
    rules = list({finding.rule: finding for _, finding in found}.values())
    index = {finding.rule: number for number, finding in enumerate(rules)}
    paths = [source.path for source in diagnosis.incident.sources]
    known = {rule.id: rule for rule in registry()}
    driver = sarif.ToolComponent(
        name="forensics",
        version=__version__,
        rules=[_rule(finding, known.get(finding.rule)) for finding in rules],
    )
    notices = [
        sarif.Notification(message=sarif.Message(text=one_line(text)))
        for text in diagnosis.coverage.skipped
    ]
    run = sarif.Run(
        tool=sarif.Tool(driver=driver),
        invocations=[sarif.Invocation(tool_execution_notifications=notices)],
        artifacts=[
            sarif.Artifact(location=_location(paths, source.path), length=source.bytes)
            for source in diagnosis.incident.sources
        ],
        results=[_result(report, finding, index[finding.rule], paths) for report, finding in found],
    )
    log = sarif.Log(runs=[run])
    return dumps(log.model_dump(by_alias=True, exclude_none=True), indent=2) + "\n"


def _rule(finding: Finding, rule: Rule | None) -> sarif.ReportingDescriptor:
    """The rule of a finding; `unknown-failure` and its like are in no registry."""
    text = playbook_text(finding.playbook, package_of(finding)) if finding.playbook else None
    page = plain(text).strip() if text else None
    severity = rule.severity if rule else finding.severity
    return sarif.ReportingDescriptor(
        id=finding.rule,
        short_description=sarif.Message(text=rule.summary if rule else finding.title),
        help=sarif.Message(text=page, markdown=page) if page else None,
        default_configuration=sarif.Configuration(level=LEVELS[severity]),
        properties={"tags": [finding.class_]},
    )


def _result(
    report: RunReport, finding: Finding, rule_index: int, paths: Sequence[str]
) -> sarif.Result:
    quoted = [item for item in finding.evidence if item.line >= 1]
    said = {(item.source, item.line): item.text for item in quoted}
    first = finding.first
    main = _place(first, paths, said.get((first.source, first.line)))
    related = [
        _place(item, paths, item.text, number)
        for number, item in enumerate(quoted, start=1)
        if (item.source, item.line) != (first.source, first.line)
    ]
    return sarif.Result(
        rule_id=finding.rule,
        rule_index=rule_index,
        level=LEVELS[finding.severity],
        message=_message(finding),
        locations=[main],
        related_locations=related,
        partial_fingerprints={"finding/v1": _fingerprint(finding)},
        properties={
            "run": report.run.number,
            "outcome": report.run.outcome,
            "role": finding.role,
            "class": finding.class_,
            "confidence": finding.confidence,
            "rank": finding.rank,
            "remedies": [one_line(phrase(remedy)) for remedy in finding.remedies],
        },
    )


def _message(finding: Finding) -> sarif.Message:
    """Title, explanation, and the first thing to do."""
    title, explanation = ended(sentence(finding.title)), clean(finding.explanation)
    parts = [title, explanation]
    shown = [f"**{prose(title)}**", *map(prose, explanation.split("\n"))]
    if finding.remedies:
        change = one_line(phrase(finding.remedies[0]))
        parts.append(f"To do: {change}.")
        shown.append(f"To do: {prose(change)}.")
    shown.append(f"More: {code(f'forensics explain {finding.rule}')}")
    markdown = "\n\n".join(shown).replace(NO_BREAK, " ")
    return sarif.Message(text="\n\n".join(parts), markdown=markdown)


def _place(
    place: Place, paths: Sequence[str], text: str | None = None, number: int | None = None
) -> sarif.Location:
    snippet = sarif.Message(text=clean(text)[:MOST_SNIPPET]) if text else None
    return sarif.Location(
        id=number,
        physical_location=sarif.PhysicalLocation(
            artifact_location=_location(paths, place.source),
            region=sarif.Region(start_line=max(place.line, 1), snippet=snippet),
        ),
        message=sarif.Message(text="evidence") if number else None,
    )


def _location(paths: Sequence[str], path: str) -> sarif.ArtifactLocation:
    """A path as a URI: relative ones stay so, since a repository holds the log or its like."""
    if path == "-":
        uri = "stdin"
    elif os.path.isabs(path):
        uri = Path(path).as_uri()
    else:
        uri = quote(Path(path).as_posix())
    index = list(paths).index(path) if path in paths else None
    return sarif.ArtifactLocation(uri=uri, index=index)


def _fingerprint(finding: Finding) -> str:
    """The same for the same finding in the log of another try: rule, class, rank and phase."""
    parts = (finding.rule, finding.class_, finding.rank or "", finding.phase or "")
    return hashlib.sha256("|".join(parts).encode()).hexdigest()
