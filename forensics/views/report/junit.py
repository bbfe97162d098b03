"""Findings as JUnit XML, for CI: a suite for each launch, a case for each kind of cause.

A case fails on a critical finding of its class; warnings and notes are its output, so that they
are seen and break nothing. A class that no rule could judge is skipped.
"""

from __future__ import annotations

from collections import defaultdict
from xml.etree import ElementTree as ET

from forensics.diagnosis import Diagnosis, RunReport
from forensics.findings import Finding
from forensics.rules import registry
from forensics.views.changes import phrase
from forensics.views.clean import clean, one_line
from forensics.views.verdict import verdict_words
from forensics.views.words import Places, ended, sentence


def render(diagnosis: Diagnosis) -> str:
    """The document as XML text."""
    places = Places(source.path for source in diagnosis.incident.sources)
    suites = [_suite(report, places) for report in diagnosis.reports]
    root = ET.Element("testsuites", {"name": "forensics", **_totals(suites)})
    root.extend(suites)
    ET.indent(root)
    text = ET.tostring(root, encoding="unicode", short_empty_elements=True)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _totals(suites: list[ET.Element]) -> dict[str, str]:
    names = ("tests", "failures", "errors", "skipped")
    return {name: str(sum(int(suite.get(name, "0")) for suite in suites)) for name in names}


def _suite(report: RunReport, places: Places) -> ET.Element:
    word, _, rest = verdict_words(report)
    by_class: dict[str, list[Finding]] = defaultdict(list)
    for finding in report.findings:
        by_class[finding.class_].append(finding)
    unjudged = _unjudged(report)
    names = sorted({rule.class_ for rule in registry()} | set(by_class))
    cases = [_case(name, by_class[name], unjudged.get(name, ""), places) for name in names]
    failed = sum(case.find("failure") is not None for case in cases)
    skipped = sum(case.find("skipped") is not None for case in cases)
    suite = ET.Element(
        "testsuite",
        name=f"run {report.run.number}",
        tests=str(len(cases)),
        failures=str(failed),
        errors="0",
        skipped=str(skipped),
    )
    if report.run.started_at:
        suite.set("timestamp", report.run.started_at.isoformat(timespec="seconds"))
    properties = ET.SubElement(suite, "properties")
    said = {"verdict": f"{word}{rest}", "outcome": report.run.outcome, "phase": report.run.phase}
    for name, value in said.items():
        ET.SubElement(properties, "property", name=name, value=_text(one_line(value)))
    suite.extend(cases)
    return suite


def _unjudged(report: RunReport) -> dict[str, str]:
    """Classes of which no rule could judge, with the first reason."""
    because = {skip.rule: skip.because for skip in report.skipped}
    rules: dict[str, list[str]] = defaultdict(list)
    for rule in registry():
        rules[rule.class_].append(rule.id)
    return {
        name: one_line(because[ids[0]])
        for name, ids in rules.items()
        if all(rule in because for rule in ids)
    }


def _case(name: str, findings: list[Finding], unjudged: str, places: Places) -> ET.Element:
    case = ET.Element("testcase", classname="forensics", name=name, time="0")
    grave = [finding for finding in findings if finding.severity == "critical"]
    if grave:
        first = grave[0]
        failure = ET.SubElement(case, "failure", type=first.rule)
        failure.set("message", _text(ended(sentence(first.title))))
        failure.text = _text("\n\n".join(_told(finding, places) for finding in grave))
    elif not findings and unjudged:
        ET.SubElement(case, "skipped", message=_text(unjudged))
    rest = [finding for finding in findings if finding not in grave]
    if rest:
        output = ET.SubElement(case, "system-out")
        output.text = _text("\n\n".join(_told(finding, places) for finding in rest))
    return case


def _told(finding: Finding, places: Places) -> str:
    """A finding as plain text: what, why, where, what to do."""
    head = f"{finding.severity.upper()} {finding.rule}: {ended(sentence(finding.title))}"
    lines = [head, clean(finding.explanation), f"  {places.at(finding.first)}"]
    lines += [f"  {places.at(item)}  {one_line(item.text)[:300]}" for item in finding.evidence[:6]]
    lines += [f"  To do: {one_line(phrase(remedy))}" for remedy in finding.remedies[:3]]
    return "\n".join(lines)


def _text(text: str) -> str:
    """Text that XML 1.0 can hold: no controls but tab and newline, no surrogates."""
    return "".join(c for c in text if c in "\t\n" or (c >= " " and c not in "\ufffe\uffff"))
