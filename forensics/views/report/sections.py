"""The parts of a report below its summary, each from what the diagnosis holds."""

from __future__ import annotations

from collections.abc import Iterable

from forensics.diagnosis import RunReport
from forensics.findings import Finding, Remedy
from forensics.redact import REDACTED
from forensics.views.changes import BASIS, command_lines, diff_lines, effect_words, phrase
from forensics.views.clean import one_line, window
from forensics.views.evidence import explained, first_failure, folded
from forensics.views.ledger import SHOWN_GIB, UNATTRIBUTED, Group, last_ledger
from forensics.views.moments import Moment, has_date, moments
from forensics.views.report.content import (
    Cause,
    Change,
    Exhibit,
    Launch,
    Memory,
    Quote,
    Row,
    Timeline,
    TimelineRow,
)
from forensics.views.terminal.memory import overlap_words
from forensics.views.terminal.others import lead_words
from forensics.views.words import PHASE, Places, duration, ended, fold_ranks, sentence

DECISIVE_ROOM = 240
"""Characters of a decisive line; it is cut around the figures that the finding quotes."""

APPENDIX_ROOM = 600
MOST_LINES = 6
COMMAND_WIDTH = 78
TABLE_WIDTH = 56
"""Characters of a title and a place in a table that is read in 80 columns."""

_LEAST_TITLE = 32
_MOST_GROUPS = 16
_BEGINS = {
    "init": "Start-up",
    "load": "Weights are loaded",
    "kv_pool": "KV pool is allocated",
    "graph_capture": "CUDA graphs are captured",
    "warmup": "Warm-up",
    "serving": "Serving",
    "shutdown": "Shutdown",
}
_COLUMNS = ("weights", "KV pool", "graphs", "other", "free", UNATTRIBUTED)


def timeline(report: RunReport, places: Places) -> Timeline | None:
    """The rows of a run; None where the log has no times."""
    rows = moments(report, places.paths)
    if not rows:
        return None
    days = {row.time.date() for row in rows}
    form = "%m-%d %H:%M:%S" if len(days) > 1 and has_date(rows) else "%H:%M:%S"
    when = f"{rows[0].time:%Y-%m-%d}, the log's clock" if has_date(rows) else "the log has no date"
    longest = max((len(places.at(row.place)) for row in rows if row.place), default=0)
    room = max(TABLE_WIDTH - longest, _LEAST_TITLE)
    return Timeline(when, [_moment(row, form, places, room) for row in rows])


def _moment(row: Moment, form: str, places: Places, room: int) -> TimelineRow:
    place = places.at(row.place) if row.place else ""
    time = row.time.strftime(form)
    match row.kind:
        case "phase":
            took = f", {duration(row.took_s)}" if row.took_s is not None else ""
            return TimelineRow(time, f"{_BEGINS[row.phase]}{took}")
        case "ready":
            return TimelineRow(time, "Ready", decisive=True)
        case "failure":
            rank = f" on {one_line(row.rank)}" if row.rank else ""
            return TimelineRow(time, f"First failure{rank}", place, decisive=True)
        case "mark":
            assert row.finding is not None
            title = window(sentence(one_line(row.finding.title)), room)
            return TimelineRow(time, f"{row.finding.severity.capitalize()}: {title}", place)


def cause(finding: Finding, places: Places) -> Cause:
    """The root cause, or the finding that comes nearest to one."""
    paragraphs, steps = explained(finding)
    rank = f", on {finding.rank}" if finding.rank else ""
    attributes = (
        f"Rule {_as_code(finding.rule)}{rank}; {finding.severity}, confidence "
        f"{finding.confidence}; class {_as_code(finding.class_)}."
    )
    lines = _quotes(finding, places, DECISIVE_ROOM)
    return Cause(
        ended(sentence(finding.title)),
        one_line(attributes),
        [one_line(text) for text in paragraphs],
        [one_line(step) for step in steps],
        lines[:MOST_LINES],
        finding.role == "root_cause",
    )


def unexplained(report: RunReport, places: Places) -> Cause | None:
    """The first failure of a run whose cause no rule knows."""
    found = first_failure(report)
    if found is None:
        return None
    failure, text, frame = found
    place = places.at_line(failure.event.source, failure.line)
    lines = [Quote(place, text[:APPENDIX_ROOM])]
    where = [f"The innermost frame is {frame}."] if frame else []
    said = "No rule knows the cause; this is the first failure, the place to begin reading."
    return Cause(said, "", where, [], lines, is_root=False)


def _as_code(text: str) -> str:
    """Text between the marks of code, which views read as such."""
    text = one_line(text)
    return text if "`" in text else f"`{text}`"


def _quotes(finding: Finding, places: Places, room: int) -> list[Quote]:
    quotes = []
    order = {path: n for n, path in enumerate(dict.fromkeys(e.source for e in finding.evidence))}
    lines = folded(finding, room)
    for line in sorted(lines, key=lambda one: (order[one.evidence.source], one.evidence.line)):
        rank = f"{line.rank}: " if line.rank and not line.alike else ""
        alike = f"  (and {line.alike} alike)" if line.alike else ""
        quotes.append(Quote(places.at(line.evidence), f"{rank}{line.text}{alike}"))
    return quotes


def memory(report: RunReport, places: Places) -> Memory | None:
    """The ledger; None where the log has no figures."""
    ledger = last_ledger(report)
    if not ledger.groups:
        return None
    shown = ledger.groups[:_MOST_GROUPS]
    columns = [name for name in _COLUMNS if any(name in dict(group.parts) for group in shown)]
    sized = any(group.row.total_gib is not None for group in shown)
    sources = {group.row.source for group in shown}
    header = ["Ranks", *(["Log"] if len(sources) > 1 else [])]
    header += [*([] if ledger.one_phase else ["Phase"]), *map(sentence, columns)]
    header += ["GPU"] if sized else []
    rows = []
    for group in shown:
        cells = [_ranks(group)]
        cells += [places.name(group.row.source)] if len(sources) > 1 else []
        cells += [] if ledger.one_phase else [PHASE.get(group.row.phase, group.row.phase)]
        cells += [_size(dict(group.parts).get(name)) for name in columns]
        rows.append(cells + ([_size(group.row.total_gib)] if sized else []))
    notes = [overlap_words(group) for group in shown if group.overlaps][:1]
    if len(ledger.groups) > len(shown):
        notes.append(f"{len(ledger.groups) - len(shown)} more sets of ranks are not shown.")
    return Memory(ledger.when, header, rows, notes)


def _ranks(group: Group) -> str:
    tags = one_line(fold_ranks(group.tags)) or "all"
    if len(group.tags) > 1 and group.spread_gib > SHOWN_GIB:
        return f"{tags}, within {group.spread_gib:.2f}"
    return tags


def _size(size: float | None) -> str:
    return "" if size is None else f"{size:.2f}"


def changes(finding: Finding) -> list[Change]:
    """The remedies of a finding, best first."""
    return [_change(remedy) for remedy in finding.remedies]


def _change(remedy: Remedy) -> Change:
    rows = [Row("why", ended(sentence(one_line(remedy.reason))))]
    if effect := effect_words(remedy):
        rows.append(Row("effect", ended(effect)))
    if remedy.cost:
        rows.append(Row("cost", ended(sentence(one_line(remedy.cost)))))
    rows.append(Row("rests on", ended(BASIS[remedy.basis])))
    return Change(sentence(one_line(phrase(remedy))), rows)


def launch(report: RunReport) -> Launch | None:
    """The next launch and its difference to the one that failed; None where none can be given."""
    lines = command_lines(report, COMMAND_WIDTH)
    if not lines:
        return None
    notes = []
    if any(REDACTED in line for line in lines):
        notes.append(f"Put your own value where it says {REDACTED}.")
    if report.not_repeated:
        left = ", ".join(_as_code(words) for words in report.not_repeated)
        notes.append(f"Not repeated, since SGLang may have picked them itself: {left}.")
    return Launch(lines, diff_lines(report.diff), notes)


def earlier(findings: Iterable[Finding], places: Places, outcome: str) -> list[Row]:
    """What could be known before the failure."""
    rows = []
    for finding in findings:
        lead = lead_words(finding, outcome)
        text = f"{lead}: {finding.title}" if lead else sentence(finding.title)
        rows.append(Row(places.at(finding.known_at), ended(one_line(text))))
    return rows


def risks(findings: Iterable[Finding], places: Places) -> list[Row]:
    """Findings beside the cause, each with the first thing to do."""
    rows = []
    for finding in findings:
        text = f"{finding.severity.capitalize()}: {ended(finding.title)}"
        if finding.remedies:
            text += f" To do: {ended(phrase(finding.remedies[0]))}"
        rows.append(Row(places.at(finding.first), one_line(text)))
    return rows


def exhibit(finding: Finding, places: Places, *, told: bool = False) -> Exhibit:
    """A finding with its lines; one that is `told` above keeps its explanation there."""
    paragraphs, steps = explained(finding)
    rank = f" on {finding.rank}" if finding.rank else ""
    role = finding.role.replace("_", " ")
    return Exhibit(
        ended(sentence(finding.title)),
        one_line(f"{_as_code(finding.rule)}{rank}; {finding.severity}, {role}"),
        [] if told else [one_line(text) for text in [*paragraphs, *steps]],
        _quotes(finding, places, APPENDIX_ROOM),
    )
