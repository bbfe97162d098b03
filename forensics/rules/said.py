"""Where a text stands: in a record, or in the exceptions of its traceback.

Grammar kinds are wider than some meanings (`tcpstore_error`, `nccl_warn`); then the words decide.
What users sent to the server is not searched: only what the server wrote is evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from forensics.events import Event
from forensics.findings import Evidence, Place
from forensics.redact import redact
from forensics.rules.case import Case

SENT = frozenset(
    {
        "request_received",
        "request_finished",
        "request_json",
        "request_dump",
        "request_time_stats",
        "server_args_dump",
    }
)
"""Kinds that quote users or the launch."""

_LONGEST = 4_000
_SHOWN = 600


@dataclass(frozen=True, slots=True)
class Said:
    """One text that fits: the record, the text and its line."""

    event: Event
    text: str
    line: int
    match: re.Match[str]

    def place(self, case: Case) -> Place:
        """The line of the text."""
        return case.place(self.event, self.line)

    def evidence(self, case: Case) -> Evidence:
        """The text with its line."""
        place = self.place(case)
        text = redact(self.text.split("\n")[0])[:_SHOWN]
        return Evidence(source=place.source, line=place.line, text=text)


def said(case: Case, pattern: re.Pattern[str]) -> Iterator[Said]:
    """Every record or exception of the run that contains a text, in reading order."""
    for event in case.run.events:
        if event.kind in SENT:
            continue
        if found := pattern.search(event.text[:_LONGEST]):
            yield Said(event, event.text, event.line, found)
        for raised in event.traceback.chain if event.traceback else ():
            if found := pattern.search(raised.message[:_LONGEST]):
                yield Said(event, raised.message, raised.line or event.line, found)
