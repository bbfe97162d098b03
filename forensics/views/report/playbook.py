"""A playbook taken apart: its sections, and the sentences that hold this incident's numbers.

A playbook is a page of documentation: a title and five sections. Comments of the form
`<!-- here: Free at begin was {free_gib} GiB. -->` do not show on the page; a report says them
where every name in braces is known of the incident.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from forensics.views.words import value

MEANING = "What it means"
CONFIRM = "How to confirm"
FIX = "How to fix"
VAIN = "What does not help"
BACKGROUND = "Background"
SECTIONS = (MEANING, CONFIRM, FIX, VAIN, BACKGROUND)
"""The sections of every playbook, in order."""

_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n+", re.DOTALL)
_HERE = re.compile(r"\n*<!-- here: (.*?) -->", re.DOTALL)
_SECTION = re.compile(r"^## +(.+?) *$", re.M)
_NAME = re.compile(r"\{(\w+)\}")


_NUMBERS = frozenset({"sequence", "pid", "port", "warning_line"})
"""Facts that are names, not sizes: their digits are not grouped."""


@dataclass(slots=True)
class Section:
    """Markdown of one section, and what it says of this incident as plain text."""

    text: str = ""
    here: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Playbook:
    """A playbook as a report uses it."""

    name: str
    title: str
    sections: dict[str, Section]

    def of(self, name: str) -> Section:
        """A section; empty where a playbook of another package lacks it."""
        return self.sections.get(name, Section())


def plain(text: str) -> str:
    """The page as it is read: without front matter and without what only reports say."""
    return _HERE.sub("", _FRONT_MATTER.sub("", text))


def parse(name: str, text: str, facts: Mapping[str, Any] | None = None) -> Playbook:
    """The sections of a page; what stands before the first heading counts as the meaning."""
    head, *rest = _SECTION.split(_FRONT_MATTER.sub("", text))
    title, _, intro = head.strip().partition("\n")
    sections = {MEANING: _section(intro, facts or {})} if intro.strip() else {}
    for heading, body in zip(rest[::2], rest[1::2], strict=True):
        sections[heading] = _section(body, facts or {})
    return Playbook(name, title.removeprefix("# ").strip(), sections)


def _section(text: str, facts: Mapping[str, Any]) -> Section:
    said = [filled for sentence in _HERE.findall(text) if (filled := _filled(sentence, facts))]
    return Section(_HERE.sub("", text).strip(), said)


def _filled(sentence: str, facts: Mapping[str, Any]) -> str:
    """The sentence with the incident's values, empty where one is not known."""
    if any(_said(facts.get(name)) == "" for name in _NAME.findall(sentence)):
        return ""
    return _NAME.sub(lambda match: _value(match[1], facts), " ".join(sentence.split()))


def _value(name: str, facts: Mapping[str, Any]) -> str:
    said = _said(facts.get(name))
    return said.replace(",", "") if name in _NUMBERS and "," in said else said


def _said(data: Any) -> str:
    """A fact as it is said in a sentence; empty where there is none."""
    if data is None or isinstance(data, dict) or data == []:
        return ""
    if isinstance(data, float):
        return f"{data:,.2f}".removesuffix(".00")
    if isinstance(data, int) and not isinstance(data, bool):
        return f"{data:,}"
    if isinstance(data, list | tuple):
        return ", ".join(_said(item) for item in data)
    return value(data)
