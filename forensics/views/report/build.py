"""From a diagnosis to the content of a report."""

from __future__ import annotations

from typing import Any

from forensics import __version__
from forensics.diagnosis import Diagnosis, RunReport
from forensics.findings import Finding
from forensics.reproduce.model import Reproduction
from forensics.resources import playbook as playbook_text
from forensics.views.changes import to_do
from forensics.views.clean import clean, one_line
from forensics.views.report import sections, surroundings
from forensics.views.report.confirm import confirmed, reproduce_line
from forensics.views.report.content import OtherRun, Report
from forensics.views.report.playbook import Playbook, parse
from forensics.views.report.ruled_out import ruled_out
from forensics.views.report.summary import impact, model_of, sentences, title_of
from forensics.views.verdict import in_full, main_finding, verdict_words
from forensics.views.words import Places, ended, sentence


def build(
    diagnosis: Diagnosis, reproduction: Reproduction | None = None, run: int | None = None
) -> Report:
    """The report on the run that matters most, or on the one asked for; the others in brief."""
    tool = f"forensics {__version__}"
    full = next((one for one in diagnosis.reports if one.run.number == run), None)
    full = full or in_full(diagnosis.reports)
    if full is None:
        said = ["No launch was found in the input."]
        return Report(
            "No SGLang launch found", tool, "warn", "NOTHING", said, "",
            coverage=surroundings.coverage(diagnosis),
        )  # fmt: skip
    places = Places(source.path for source in diagnosis.incident.sources)
    word, tone, _ = verdict_words(full)
    report = Report(title_of(full), tool, tone, word, sentences(full), model_of(full))
    report.others = [_other(one) for one in diagnosis.reports if one is not full]
    report.impact = impact(full, places)
    report.timeline = sections.timeline(full, places)
    report.memory = sections.memory(full, places)
    _add_findings(report, full, places)
    report.launch = sections.launch(full)
    report.reproduce = reproduce_line(full)
    report.confirmed = confirmed(reproduction) if reproduction else None
    report.environment = surroundings.environment(full, diagnosis)
    report.failed_command = surroundings.failed_command(full)
    report.coverage = surroundings.coverage(diagnosis)
    report.not_judged = surroundings.not_judged(full)
    return report


def _add_findings(report: Report, full: RunReport, places: Places) -> None:
    """What the rules found: cause, remedies, what came before and stands beside."""
    main = main_finding(full)
    if main is None:
        failed = full.run.outcome in ("failed", "hung", "degraded")
        report.cause = sections.unexplained(full, places) if failed else None
    else:
        report.cause = sections.cause(main, places)
        report.changes = sections.changes(main)
        report.vain = [ended(sentence(one_line(text))) for text in main.not_helpful]
        report.ruled_out = ruled_out(full, main, places)
        report.playbook = _playbook(main, full)
    others = [f for f in full.findings if f is not main]
    early = [f for f in others if f.role == "precursor" and main and f.first != main.first]
    report.earlier = sections.earlier(early, places, full.run.outcome)
    beside = [f for f in others if f.role == "context" or (f.role == "precursor" and not main)]
    report.risks = sections.risks(beside, places)
    report.appendix = [sections.exhibit(f, places) for f in others]
    if main:
        report.appendix.insert(0, sections.exhibit(main, places, told=True))


def _other(report: RunReport) -> OtherRun:
    word, _, rest = verdict_words(report)
    main = main_finding(report)
    fix = ended(to_do(main.remedies[0])) if main and main.remedies else ""
    return OtherRun(f"Run {report.run.number}", clean(f"{word}{rest}"), one_line(fix))


def _playbook(finding: Finding, report: RunReport) -> Playbook | None:
    """The playbook of a finding with this incident's numbers."""
    text = playbook_text(finding.playbook, package_of(finding))
    return parse(finding.playbook, text, _facts(finding, report)) if text else None


def package_of(finding: Finding) -> str:
    """The package whose rule made a finding: its playbooks lie there."""
    from forensics.rules import registry

    rules = {rule.id: rule for rule in registry()}
    rule = rules.get(finding.rule) or next(
        (rule for rule in rules.values() if rule.playbook == finding.playbook), None
    )
    return rule.package if rule else "forensics"


def _facts(finding: Finding, report: RunReport) -> dict[str, Any]:
    """What a playbook may say of an incident: facts, flags, versions, rank; text made safe."""
    launch = report.run.launch
    known: dict[str, Any] = {**launch.flags, **finding.facts}
    known |= {f"{name}_version": text for name, text in launch.versions.items()}
    known["rank"], known["ranks_in_all"] = finding.rank, len(report.run.tags) or None
    if finding.remedies:
        known |= {"fix_from": finding.remedies[0].from_, "fix_to": finding.remedies[0].to}
    return {name: one_line(data) if isinstance(data, str) else data for name, data in known.items()}


__all__ = ["build", "package_of"]
