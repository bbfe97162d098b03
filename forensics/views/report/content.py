"""What a report says, as plain text in its order; the templates only set it.

No text here is escaped: Markdown and HTML each escape in their own way when they draw it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from forensics.views.report.playbook import Playbook


@dataclass(slots=True)
class Row:
    """A label and what belongs to it."""

    label: str
    text: str


@dataclass(slots=True)
class Quote:
    """A line of the log: its place as `log.txt:142`, and its text."""

    place: str
    text: str


@dataclass(slots=True)
class TimelineRow:
    """A moment, what happened, where it stands."""

    time: str
    what: str
    place: str = ""
    decisive: bool = False


@dataclass(slots=True)
class Timeline:
    """The rows of a run; `when` is the day."""

    when: str
    rows: list[TimelineRow]


@dataclass(slots=True)
class Cause:
    """A finding in full."""

    title: str
    attributes: str
    paragraphs: list[str]
    steps: list[str]
    lines: list[Quote]
    is_root: bool = True


@dataclass(slots=True)
class Memory:
    """The ledger as a table: GiB, a row for each set of alike ranks."""

    when: str
    header: list[str]
    rows: list[list[str]]
    notes: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Change:
    """One remedy."""

    phrase: str
    rows: list[Row]


@dataclass(slots=True)
class Launch:
    """The next launch as a command to copy."""

    lines: list[str]
    diff: list[tuple[str, str]]
    notes: list[str]


@dataclass(slots=True)
class Trial:
    """What one launch of a reproduction came to."""

    name: str
    change: str
    outcome: str
    because: str
    measured: str


@dataclass(slots=True)
class Confirmed:
    """What a reproduction says."""

    verdict: str
    meaning: str
    because: str
    trials: list[Trial]
    limits: list[str]
    differences: list[str]
    command: list[str]


@dataclass(slots=True)
class Exhibit:
    """A finding with its lines, for the appendix."""

    title: str
    attributes: str
    paragraphs: list[str]
    lines: list[Quote]


@dataclass(slots=True)
class OtherRun:
    """A launch of the input that is not told in full."""

    label: str
    text: str
    fix: str


@dataclass(slots=True)
class Report:
    """One report."""

    title: str
    tool: str
    tone: str
    word: str
    summary: list[str]
    model: str
    others: list[OtherRun] = field(default_factory=list)
    impact: list[Row] = field(default_factory=list)
    timeline: Timeline | None = None
    cause: Cause | None = None
    memory: Memory | None = None
    vain: list[str] = field(default_factory=list)
    """Changes that people try and that would not help here."""
    ruled_out: list[str] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    launch: Launch | None = None
    earlier: list[Row] = field(default_factory=list)
    risks: list[Row] = field(default_factory=list)
    redacted: bool = False
    """Names are pseudonyms."""
    reproduce: str = ""
    """The line that would confirm the cause and the fix; empty where there is nothing to try."""
    confirmed: Confirmed | None = None
    playbook: Playbook | None = None
    appendix: list[Exhibit] = field(default_factory=list)
    environment: list[Row] = field(default_factory=list)
    failed_command: list[str] = field(default_factory=list)
    """The launch that is reported, as far as the log tells it."""
    coverage: list[str] = field(default_factory=list)
    not_judged: list[Row] = field(default_factory=list)
