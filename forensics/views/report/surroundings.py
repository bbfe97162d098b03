"""Where it happened and how much of it was read: environment, command, coverage."""

from __future__ import annotations

from forensics.diagnosis import Diagnosis, RunReport
from forensics.redact import redact_value
from forensics.views.changes import shell_lines
from forensics.views.clean import one_line
from forensics.views.report.content import Row
from forensics.views.report.sections import COMMAND_WIDTH
from forensics.views.report.summary import model_of, ranks_of, release_of
from forensics.views.terminal.footer import LOW_SHARE
from forensics.views.words import Places, count, percent

_MOST_SKIPPED = 400


def environment(report: RunReport, diagnosis: Diagnosis) -> list[Row]:
    """Versions, machine and variables, as far as the log tells."""
    run = report.run
    rows = [Row("SGLang", release_of(report)), Row("Model", model_of(report))]
    versions = {name: text for name, text in run.launch.versions.items() if name != "sglang"}
    rows += [Row(name, str(text)) for name, text in sorted(versions.items())]
    rows += [Row("GPU memory", _gpus(report)), Row("Ranks", ranks_of(report))]
    nodes = [source.node for source in diagnosis.incident.sources if source.node]
    rows.append(Row("Nodes", ", ".join(dict.fromkeys(nodes))))
    env = redact_value(dict(sorted(run.launch.env.items())))
    rows.append(Row("Variables", " ".join(f"{name}={text}" for name, text in env.items())))
    return [Row(row.label, text) for row in rows if (text := one_line(row.text))]


def _gpus(report: RunReport) -> str:
    totals = {round(row.total_gib, 2) for row in report.run.memory if row.total_gib}
    return ", ".join(f"{total:.2f} GiB" for total in sorted(totals)) + " each" if totals else ""


def failed_command(report: RunReport) -> list[str]:
    """The launch that the log tells of, as a command; empty where it tells too little."""
    launch = report.run.launch
    if not (launch.flags or launch.command):
        return []
    return shell_lines(launch.argv(), launch.env, [], COMMAND_WIDTH)


def coverage(diagnosis: Diagnosis) -> list[str]:
    """What was read and how much of it was understood, a sentence each."""
    found, sources = diagnosis.coverage, diagnosis.incident.sources
    places = Places(source.path for source in sources)
    share = percent(found.recognised, found.lines)
    said = [
        f"{count(found.lines, 'line')} of {count(len(sources), 'log')} were read; {share} of them "
        "were recognised."
    ]
    if len(sources) > 1:
        said += [
            f"{places.name(source.path)}: {count(source.lines, 'line')}, "
            f"{percent(source.recognised_lines, source.lines - source.blank_lines)} recognised."
            for source in sources
        ]
    if found.lines and found.share < LOW_SHARE:
        said.append("That is little: `forensics coverage` shows the lines that no rule knows.")
    said += [f"Notice: {text}" for text in found.skipped]
    return [one_line(text) for text in said]


def not_judged(report: RunReport) -> list[Row]:
    """The rules that could not judge, those with the same reason in one row."""
    reasons: dict[str, list[str]] = {}
    for skipped in report.skipped:
        reasons.setdefault(one_line(skipped.because), []).append(one_line(skipped.rule))
    return [
        Row(", ".join(f"`{rule}`" for rule in rules), because) for because, rules in reasons.items()
    ]
