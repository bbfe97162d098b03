"""The report as Markdown, by templates: for a file or a pager, or for a bug report."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from forensics.views.catalogue import refolded
from forensics.views.report import markdown as md
from forensics.views.report.content import Memory, Quote, Report, TimelineRow, Trial

_QUOTE_WIDTH = 80
"""Quoted lines are folded here, so that they read without scrolling sideways."""


def render(
    report: Report,
    template: str = "report.md.jinja",
    width: int | None = md.WIDTH,
    trimmed: str = "",
) -> str:
    """The report in Markdown; `width` None leaves each paragraph on one line."""
    values = {"r": report, "width": width, "trimmed": trimmed}
    text = _environment().get_template(template).render(values)
    text = text.replace(md.NO_BREAK, " ").strip()
    lines = [line.rstrip() for line in text.split("\n")]
    return "\n".join(_without_gaps(lines)) + "\n"


def _without_gaps(lines: Sequence[str]) -> list[str]:
    """The lines with one blank line where there were more, but for code."""
    kept: list[str] = []
    fence = ""
    for line in lines:
        mark = line[: len(line) - len(line.lstrip("`"))]
        if fence:
            fence = "" if line == fence else fence
        elif len(mark) >= 3:
            fence = mark
        if line or fence or (kept and kept[-1]):
            kept.append(line)
    return kept


def _environment() -> Environment:
    """The templates with their filters, which escape: of HTML's own escapes Markdown knows none."""
    loader = PackageLoader("forensics.views.report", "templates")
    found = Environment(loader=loader, undefined=StrictUndefined, autoescape=False)
    filters: dict[str, Callable[..., Any]] = {
        "prose": md.prose,
        "escaped": md.escaped,
        "code": md.code,
        "wrapped": md.wrapped,
        "comment": _comment,
        "capfirst": lambda text: text[:1].upper() + text[1:],
        "moment": _moment,
        "trial": _trial,
        "quoted": _quoted,
        "diffed": _diffed,
        "memory_table": _memory_table,
        "refolded": _refolded,
    }
    found.filters.update(filters)
    found.globals.update(table=md.table, fence=md.fence, list=list)
    return found


def _moment(row: TimelineRow) -> list[str]:
    what = md.cell(row.what)
    what = f"**{what}**" if row.decisive else what
    return [row.time, what, md.cell(row.place, as_code=True)]


def _trial(trial: Trial) -> list[str]:
    return [md.cell(text) for text in (trial.name, trial.change, trial.outcome, trial.measured)]


def _memory_table(memory: Memory) -> str:
    numbers = sum(1 for cell in memory.rows[0][1:] if cell == "" or cell.replace(".", "").isdigit())
    rows = [[md.cell(cell) for cell in row] for row in memory.rows]
    return md.table(memory.header, rows, numbers)


def _quoted(lines: Sequence[Quote]) -> str:
    """Lines of the log as code, each with its place, long ones folded and hanging."""
    shown = []
    for line in lines:
        text = f"{line.place}  {line.text}"
        fold = textwrap.TextWrapper(
            _QUOTE_WIDTH, subsequent_indent="    ", break_on_hyphens=False, break_long_words=False
        )
        shown += fold.wrap(text) or [text]
    return md.fence(shown)


def _diffed(diff: Sequence[tuple[str, str]]) -> str:
    lines = [f"  # {text}" if sign == "..." else f"{sign} {text}" for sign, text in diff]
    return md.fence(lines, "diff")


def _refolded(text: str, width: int | None) -> str:
    """Markdown of a playbook, folded to the report's width."""
    return refolded(text, width or 10_000).strip()


def _comment(text: str) -> str:
    """Text inside an HTML comment, which two hyphens would end."""
    return text.replace("--", "- -").replace("<", "").replace(">", "").replace("`", "")
