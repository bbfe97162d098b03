"""The report as one HTML file: nothing is fetched, nothing runs, everything from a log is text.

Its content policy forbids scripts, images, frames and every connection; the style that it carries
is allowed by its hash.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from forensics.diagnosis import Diagnosis
from forensics.reproduce.model import Reproduction
from forensics.views.report.build import build
from forensics.views.report.drawing import LABEL, LANE, WIDTH, lanes_of, memory_bars
from forensics.views.report.inline import pieces
from forensics.views.verdict import in_full
from forensics.views.words import Places

_TEMPLATES = "forensics.views.report"


def render(
    diagnosis: Diagnosis, reproduction: Reproduction | None = None, run: int | None = None
) -> str:
    """The page as text."""
    full = next((one for one in diagnosis.reports if one.run.number == run), None)
    full = full or in_full(diagnosis.reports)
    places = Places(source.path for source in diagnosis.incident.sources)
    style = files(_TEMPLATES).joinpath("templates/report.css").read_text(encoding="utf-8")
    page = _environment().get_template("report.html.jinja")
    return page.render(
        r=build(diagnosis, reproduction, run),
        lanes=lanes_of(full, diagnosis.incident, places) if full else None,
        bars=memory_bars(full) if full else None,
        style=Markup(style),
        policy=policy(style),
        width=WIDTH,
        left=LABEL,
        lane_height=LANE,
    )


def policy(style: str) -> str:
    """The content policy of a page with this style: no script, no fetch, no frame, no form."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader(_TEMPLATES, "templates"),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(codes=codes, playbook=_playbook, capfirst=_capfirst)
    return found


def codes(text: str) -> Markup:
    """Text with what is code set as code."""
    parts = [
        Markup("<code>{}</code>").format(part) if is_code else escape(part)
        for is_code, part in pieces(text)
    ]
    return Markup("").join(parts)


def _playbook(text: str) -> Markup:
    """A section of a playbook, which is our own text; raw HTML in it stays text all the same."""
    return Markup(MarkdownIt("commonmark", {"html": False}).render(text))


def _capfirst(text: str) -> str:
    return text[:1].upper() + text[1:]
