"""The top of a report: title, three sentences, outcome and impact."""

from __future__ import annotations

from datetime import datetime

from forensics.diagnosis import RunReport
from forensics.findings import Finding
from forensics.views.changes import phrase
from forensics.views.clean import one_line
from forensics.views.moments import moments
from forensics.views.report.content import Row
from forensics.views.terminal.others import lead_words
from forensics.views.verdict import main_finding, verdict_words
from forensics.views.words import DOING, Places, count, duration, ended, fold_ranks, sentence

_OUTCOME = {
    "failed": "failed while {}",
    "hung": "hung while {}",
    "degraded": "is degraded while {}",
    "ready": "came up and is ready",
    "serving": "came up and serves",
    "stopped": "was stopped in good order",
    "unknown": "is unfinished in this log, which ends while {}",
}


def title_of(report: RunReport) -> str:
    """The report's title: how the launch ended."""
    return f"SGLang launch {_outcome(report)}"


def _outcome(report: RunReport) -> str:
    run = report.run
    doing = DOING.get(run.phase, run.phase)
    if run.outcome == "stopped" and run.ready is None:
        return f"was stopped while {doing}, before it was ready"
    return _OUTCOME.get(run.outcome, "ended").format(doing)


def sentences(report: RunReport) -> list[str]:
    """What happened, why, and what to do: a sentence each."""
    main = main_finding(report)
    what = f"{_subject(report)} {_outcome(report)}{_after(report)}."
    if main is None:
        return [what, *_no_cause(report)]
    why = ended(sentence(main.title))
    if not main.remedies:
        return [what, why, "No change can be advised from this log alone."]
    first = main.remedies[0]
    reason = one_line(first.reason).rstrip(".")
    change = phrase(first)
    if reason:
        nested = "(" in reason or change.endswith(")") or first.kind == "action"
        reason = f": {reason}" if nested else f" ({reason})"
    return [what, why, one_line(f"To mend it, {change}{reason}.")]


def _no_cause(report: RunReport) -> list[str]:
    if report.run.outcome in ("failed", "hung", "degraded"):
        return [
            "No rule knows the cause.",
            "The first failure below is the place to begin reading.",
        ]
    warnings = [finding for finding in report.findings if finding.severity == "warning"]
    if not warnings:
        notes = count(len(report.findings), "note") if report.findings else "nothing to note"
        return [f"No problem was found; {notes}.", "Nothing needs to be changed."]
    found = f"{sentence(count(len(warnings), 'warning'))}, first: {ended(warnings[0].title)}"
    fix = warnings[0].remedies[:1]
    do = f"To be safe, {phrase(fix[0])}." if fix else "Nothing needs to be changed at once."
    return [found, one_line(do)]


def model_of(report: RunReport) -> str:
    """The model as the launch names it."""
    return one_line(str(report.run.launch.get("model_path") or ""))


def release_of(report: RunReport) -> str:
    """The release of SGLang, or the range that the log fits; empty where it does not tell."""
    launch = report.run.launch
    stated = launch.release or launch.versions.get("sglang")
    if stated:
        return one_line(stated)
    if launch.release_range is None:
        return ""
    first, last = launch.release_range
    return one_line(first if first == last else f"{first} to {last}")


def ranks_in_all(report: RunReport) -> int:
    """How many ranks the launch has: as many as were seen, or as its sizes say."""
    sizes = [report.run.launch.number(name) or 1.0 for name in ("tp_size", "pp_size")]
    return max(len(report.run.tags), round(sizes[0] * sizes[1]))


def ranks_of(report: RunReport) -> str:
    """`8 (TP0-TP7)`, or how many of them are in the log."""
    tags, number = report.run.tags, ranks_in_all(report)
    if not tags:
        return ""
    seen = fold_ranks(tags)
    return f"{number} ({seen})" if number == len(tags) else f"{number}, of which seen: {seen}"


def _subject(report: RunReport) -> str:
    model, ranks, release = model_of(report), ranks_in_all(report), release_of(report)
    subject = f"The launch of {model}" if model else "The launch"
    if ranks > 1:
        subject += f" on {ranks} ranks"
    if not release:
        return subject
    first, _, last = release.partition(" to ")
    between = f"an SGLang between {first} and {last}" if last else f"SGLang {first}"
    return f"{subject} with {between}"


def _after(report: RunReport) -> str:
    """How long it took to fail, or to be ready."""
    run = report.run
    if run.started_at is None:
        return ""
    if run.outcome in ("failed", "hung"):
        failed = failed_at(report)
        seconds = (failed - run.started_at).total_seconds() if failed else 0.0
        return f", {duration(seconds)} after it began" if seconds >= 1 else ""
    if run.outcome in ("ready", "serving") and run.ready and run.ready.time:
        seconds = (run.ready.time - run.started_at).total_seconds()
        return f", {duration(seconds)} after it began" if seconds >= 1 else ""
    return ""


def failed_at(report: RunReport) -> datetime | None:
    """The time of the first failure, else of the line at which the cause was known."""
    times = [failure.event.time for failure in report.run.failures if failure.event.time]
    if times:
        return min(times)
    return report.root_cause.known_at.time if report.root_cause else None


def impact(report: RunReport, places: Places) -> list[Row]:
    """Outcome and impact, a row each."""
    run = report.run
    word, _, _ = verdict_words(report)
    rows = [Row("Outcome", f"{word}: the launch {_outcome(report)}")]
    if run.tags:
        rows.append(Row("Ranks", ranks_of(report)))
    where = _where(report, places)
    rows += where
    first = where[-1].text.partition(",")[0] if where else ""
    if echoes := [rank for rank in _echo_ranks(report) if rank != first]:
        rows.append(Row("In consequence", f"{fold_ranks(echoes)} failed later"))
    rows += _times(report)
    if early := _earliest(report):
        place = places.at(early.known_at)
        rows.append(Row("Foreseeable", f"{lead_words(early, run.outcome)}, at {place}"))
    return [Row(row.label, one_line(row.text)) for row in rows]


def _where(report: RunReport, places: Places) -> list[Row]:
    """Where the cause stands and where the first failure, which need not be the same line."""
    cause, rows = report.root_cause, []
    failure = next((m for m in moments(report, places.paths) if m.kind == "failure"), None)
    if cause is not None:
        who = f"{cause.rank}, " if cause.rank else ""
        rows.append(Row("Cause", f"{who}{places.at(cause.first)}"))
    if failure is not None and failure.place is not None:
        same = cause is not None and failure.place == cause.first
        who = f"{failure.rank}, " if failure.rank else ""
        text = f"{who}{places.at(failure.place)}"
        rows = [Row("First to fail", text)] if same else [*rows, Row("First to fail", text)]
    return rows


def _echo_ranks(report: RunReport) -> list[str]:
    """Ranks that failed after the first one and because of it, in rank order."""
    main = report.root_cause
    named = list(main.facts.get("echo_ranks") or []) if main else []
    for finding in report.with_role("consequence"):
        ranks = finding.facts.get("ranks")
        named += ranks if isinstance(ranks, list) else []
    order = {tag: number for number, tag in enumerate(report.run.tags)}
    return sorted({str(rank) for rank in named} & set(order), key=lambda rank: order[rank])


def _times(report: RunReport) -> list[Row]:
    run = report.run
    begin, ready, failed = run.started_at, run.ready and run.ready.time, failed_at(report)
    rows = []
    if begin and ready:
        rows.append(Row("Start to ready", duration((ready - begin).total_seconds())))
    if run.outcome in ("failed", "hung") and failed:
        if ready and failed > ready:
            rows.append(Row("Ready to failure", duration((failed - ready).total_seconds())))
        elif begin and failed > begin:
            took = duration((failed - begin).total_seconds())
            rows.append(Row("Lost", f"{took}, and as much again for each further try"))
    elif ready and run.ended_at and run.ended_at > ready:
        rows.append(Row("Ready to end of log", duration((run.ended_at - ready).total_seconds())))
    return rows


def _earliest(report: RunReport) -> Finding | None:
    """The sign that stood longest before the failure."""
    signs = [
        finding
        for finding in report.with_role("precursor")
        if lead_words(finding, report.run.outcome) and finding.severity != "info"
    ]
    return max(signs, key=lambda finding: finding.lead_s or 0.0, default=None)
