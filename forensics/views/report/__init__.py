"""A diagnosis as a report that people keep or paste: Markdown, HTML, SARIF, JUnit.

`build` says what a report holds, as plain text; every form draws the same content.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forensics.diagnosis import Diagnosis
    from forensics.reproduce.model import Reproduction


@dataclass(frozen=True, slots=True)
class Wish:
    """What a report is to be: for whom, on which run, with which trials."""

    for_issue: bool = False
    run: int | None = None
    redacted: bool = False
    """Names are pseudonyms already; the report says so."""
    reproduction: Reproduction | None = None


def render(diagnosis: Diagnosis, form: str, wish: Wish | None = None) -> str:
    """The report as text, in one of the forms above; the same diagnosis gives the same bytes.

    Raises:
        ValueError: there is no such form.
    """
    wish = wish or Wish()
    match form:
        case "markdown":
            return _markdown(diagnosis, wish)
        case "html":
            from forensics.views.report.html import render as html

            return html(diagnosis, wish.reproduction, wish.run)
        case "sarif":
            from forensics.views.report.sarif import render as sarif

            return sarif(diagnosis)
        case "junit":
            from forensics.views.report.junit import render as junit

            return junit(diagnosis)
        case _:
            raise ValueError(f"no form {form!r}")


def _markdown(diagnosis: Diagnosis, wish: Wish) -> str:
    from forensics.views.report.build import build
    from forensics.views.report.issue import render_issue
    from forensics.views.report.render_markdown import render as markdown

    report = build(diagnosis, wish.reproduction, wish.run)
    report.redacted = wish.redacted
    return render_issue(report) if wish.for_issue else markdown(report)
