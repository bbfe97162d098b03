"""One root cause for each failed run, among its echoes and its loud consequences."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from forensics.diagnosis import RunReport
from forensics.events import PHASES, Event
from forensics.findings import SEVERITIES, Finding, Place, SkippedRule
from forensics.incident import Failure, Incident, Run
from forensics.remedies import new_launch
from forensics.rules import Case, Rule, Settings, Skip, registry
from forensics.rules.base import CONSEQUENCE, FAILURE, QUIET_CAUSE
from forensics.rules.echoes import is_echo, of_others
from forensics.rules.unknown import first_failure, unexplained
from forensics.timeline.runs import PHASE_OF

_FAILED = ("failed", "hung", "degraded")
_WENT_ON = frozenset(kind for kind, phase in PHASE_OF.items() if phase not in ("init", "shutdown"))
"""Kinds that show that a launch came to another phase."""
_ROLES = ("root_cause", "precursor", "consequence", "context")


def judge(run: Run, incident: Incident, settings: Settings) -> RunReport:
    """Everything that the rules say of a run, with its root cause chosen."""
    case = Case(run, incident, settings.model_config, settings.thresholds)
    found, skipped = _apply(case, settings)
    for finding in found:
        if _outlived(case, finding):
            finding.role, finding.severity, finding.remedies = "context", "info", []
    found += _unknown(case, found)
    root = _root(found, run, incident)
    found = [f for f in found if f is root or not _repeats(f, root)]
    for finding in found:
        if finding.role == "root_cause" and finding is not root:
            finding.role = "context" if _was_before(finding, root) else "consequence"
            finding.remedies = []
    if root is not None:
        _settle(case, root)
        _lead_times(case, found, root)
        found += [echo] if (echo := of_others(case, root)) is not None else []
    findings = sorted(found, key=_importance)
    for number, finding in enumerate(findings, start=1):
        finding.id = f"r{run.number}-{number}-{finding.rule}"
    # Where the cause has remedies of its own, an earlier sign's would be called its cure.
    decided = root is not None and root.remedies
    own = [f for f in findings if f is root or not (decided or f.role == "consequence")]
    after = new_launch(run.launch, own)
    return RunReport(
        run,
        findings=findings,
        root_cause=root,
        skipped=skipped,
        new_command=after.command,
        new_env=after.env,
        diff=after.diff,
        not_repeated=after.not_repeated,
        remove_env=after.remove_env,
    )


def _apply(case: Case, settings: Settings) -> tuple[list[Finding], list[SkippedRule]]:
    found: list[Finding] = []
    skipped: list[SkippedRule] = []
    families: dict[str, list[str]] = {}
    for rule in registry():
        families.setdefault(rule.parent or rule.id, []).append(rule.id)
    for rule in registry():
        ids = families.get(rule.id, [])
        if rule.parent is not None or not any(map(settings.wants, ids)):
            continue
        for result in _results(rule, case):
            if isinstance(result, Skip):
                skipped.append(SkippedRule(rule=rule.id, because=result.because))
            elif settings.wants(result.rule if result.rule in ids else rule.id):
                found.append(_tuned(result, rule, settings))
    return found, skipped


def _results(rule: Rule, case: Case) -> list[Finding | Skip]:
    """What a rule says; one that breaks is skipped, since the others can still judge."""
    try:
        results = list(rule.check(case))
        if wrong := next((r for r in results if not isinstance(r, Finding | Skip)), None):
            raise TypeError(f"it gave a {type(wrong).__name__}, not a finding")
    except Exception as error:
        said = f"{type(error).__name__}: {error}".split("\n", 1)[0]
        return [Skip(f"internal error: {said[:200]}")]
    return results


def _outlived(case: Case, finding: Finding) -> bool:
    """A complaint that was all said before the launch went on can't have kept it from that."""
    if finding.role != "root_cause" or not FAILURE <= finding.weight < QUIET_CAUSE - 10:
        return False
    known = finding.known_at
    said = next((e for e in case.run.events if _is_at(case, e, known)), None)
    phase = PHASES.index(said.phase if said else finding.phase or "init")
    if any(_tells_of(case, finding, failure) for failure in case.run.failures):
        return False
    later = [
        event
        for event in case.run.of("server_args_dump", *_WENT_ON)
        if event.line > known.line and case.path(event.source) == known.source
    ]
    return any(
        event.kind == "server_args_dump"
        or (
            PHASES.index(PHASE_OF[event.kind]) > phase
            and (event.rank == finding.rank or None in (event.rank, finding.rank))
        )
        for event in later
    )


def _is_at(case: Case, event: Event, place: Place) -> bool:
    """Whether a place is in an event's record."""
    return event.line <= place.line <= event.end_line and case.path(event.source) == place.source


def _unknown(case: Case, found: list[Finding]) -> list[Finding]:
    """What no rule explains: a failure that is nobody's echo counts more than loud consequences."""
    if case.run.outcome not in _FAILED:
        return []
    candidates = [finding for finding in found if finding.role == "root_cause"]
    strongest = max((finding.weight for finding in candidates), default=0)
    first = first_failure(case)
    first = None if first is None or is_echo(first) else first
    if strongest >= FAILURE or (candidates and first is None):
        return []
    if first is not None and any(_tells_of(case, finding, first) for finding in candidates):
        return []
    if (finding := unexplained(case)) is None:
        return []
    if first is not None:
        finding.weight = FAILURE - 1
    return [finding]


def _tells_of(case: Case, finding: Finding, failure: Failure) -> bool:
    """Whether a finding begins at a failure, or ends in it."""
    return any(_is_at(case, failure.event, p) for p in (finding.first, finding.known_at))


def _repeats(finding: Finding, root: Finding | None) -> bool:
    """A weaker account of the same failure."""
    return (
        root is not None
        and finding.role == "root_cause"
        and (finding.class_ in (root.class_, "unknown") or finding.weight <= CONSEQUENCE)
        and (finding.first == root.first or finding.known_at == root.known_at)
    )


def _was_before(finding: Finding, root: Finding | None) -> bool:
    """A trouble that was there before the cause, and broke nothing: it follows from something else.

    Critical ones are echoes all the same: the loud ones are often written first.
    """
    if root is None or finding.severity == "critical":
        return False
    known, cause = finding.known_at, root.known_at
    if known.time is None or cause.time is None:
        return known.source == cause.source and known.line < root.first.line
    return known.time < cause.time


def _tuned(finding: Finding, rule: Rule, settings: Settings) -> Finding:
    of_rule = settings.severity.get(rule.id, finding.severity)
    finding.severity = settings.severity.get(finding.rule, of_rule)
    if finding.playbook in ("", rule.id):
        finding.playbook = rule.playbook
    return finding


def _root(found: Iterable[Finding], run: Run, incident: Incident) -> Finding | None:
    """The strongest candidate, of equals the earliest."""
    candidates = [finding for finding in found if finding.role == "root_cause"]
    order = {source.path: place for place, source in enumerate(incident.sources)}

    def place(finding: Finding) -> tuple[int, datetime, int, int]:
        time = finding.known_at.time or run.started_at or datetime.min
        return -finding.weight, time, order.get(finding.first.source, 0), finding.first.line

    return min(candidates, key=place, default=None)


def _settle(case: Case, root: Finding) -> None:
    """The root cause decides the phase, and says of a living server that it is degraded."""
    run = case.run
    torn = [f for f in run.failures if f.event.uncertain and _tells_of(case, root, f)]
    if torn and root.confidence == "high":
        root.confidence = "medium"  # another rank's lines stand among those of its traceback
    if run.outcome not in _FAILED:
        run.outcome = str(root.facts.get("outcome", "degraded"))
    elif "outcome" in root.facts:
        run.outcome = str(root.facts["outcome"])
    if root.phase is not None:
        run.phase = root.phase


def _lead_times(case: Case, found: Iterable[Finding], root: Finding) -> None:
    """How long before the crash each precursor was known."""
    crash = _time_of(case, root.first) or root.known_at.time
    for finding in found:
        known = finding.known_at.time
        if finding.role == "precursor" and crash is not None and known is not None:
            finding.lead_s = max((crash - known).total_seconds(), 0.0)


def _time_of(case: Case, place: Place) -> datetime | None:
    """The time of the record that holds a line; of several the last, which broke into a bar."""
    before = [
        event
        for event in case.run.events
        if event.line <= place.line
        and event.time is not None
        and case.path(event.source) == place.source
    ]
    return max(reversed(before), key=lambda e: e.line).time if before else None


def _importance(finding: Finding) -> tuple[int, int, int, int]:
    return (
        _ROLES.index(finding.role),
        -SEVERITIES.index(finding.severity),
        -finding.weight,
        finding.first.line,
    )
