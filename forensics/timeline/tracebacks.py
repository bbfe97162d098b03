"""Tracebacks, assembled line by line.

A traceback has no head after its first line, and two ranks' tracebacks can interleave. A builder
takes the lines that belong to one traceback; who owns a line is decided in `assembly`.
"""

from __future__ import annotations

import re

from forensics.events import Frame, Raised, Traceback

BEGIN = "Traceback (most recent call last):"

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]*)", line (?P<line>\d+)(?:, in (?P<function>.*))?$')
_MARKER = re.compile(
    r"^\s*[\^~]+[\^~ ]*$|^\s*\.\.\.<\d+ lines?>\.\.\.$|^\s*\[Previous line repeated"
)
_RAISED = re.compile(r"^(?P<type>[A-Za-z_][\w.]*)(?:: ?(?P<message>.*))?$")
_NAMED_ERROR = re.compile(
    r"(?:Error|Exception|Warning|Interrupt|Exit|OutOfMemory|Failure|Timeout)$"
)
_CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
_GROUP = re.compile(r"^\s*(?:\+ Exception Group )?(?:[|+][-+ 0-9]*)+")
_LONGEST = 16_384


class TracebackBuilder:
    """Takes the lines of one traceback, in order."""

    def __init__(self, first_line: int) -> None:
        self.traceback = Traceback([Raised("", "", first_line=first_line)], truncated=True)
        self.lines: list[str] = []
        self.last_line = first_line
        self._chain_follows = False

    @property
    def complete(self) -> bool:
        """The exception line was seen; what may follow is more message or a chained traceback."""
        return not self.traceback.truncated

    def chains(self, text: str) -> bool:
        """Whether a line continues the chain: it must not be read as a record of its own."""
        return self._chain_follows or text.strip() in _CHAINED

    def takes(self, text: str) -> bool:
        """Whether a line without a head can be the next line of this traceback."""
        stripped = text.strip()
        if self.chains(text) or not stripped:
            return stripped.startswith(BEGIN) or stripped in _CHAINED or not stripped
        if self.complete:
            return not stripped.startswith(BEGIN)
        if _FRAME.match(text) or text[:1].isspace() or _is_group(text):
            return True
        return bool(self._raised.frames) and bool(_RAISED.match(text))

    @property
    def _raised(self) -> Raised:
        return self.traceback.chain[-1]

    def add(self, text: str, line: int) -> None:
        """Take one line."""
        self.last_line = line
        self.lines.append(text[:200])
        text = _GROUP.sub("", text) if _is_group(text) else text
        stripped = text.strip()
        if not stripped or _MARKER.match(text):
            return
        if stripped in _CHAINED:
            self._chain_follows = True
        elif stripped.startswith(BEGIN) or stripped.startswith("Exception Group Traceback"):
            self._begin(line)
        elif self.complete:
            self._continue_message(text)
        elif frame := _FRAME.match(text):
            function = (frame["function"] or "").strip()
            self._raised.frames.append(Frame(frame["file"], int(frame["line"]), function))
        elif text[:1].isspace() and self._raised.frames:
            last = self._raised.frames[-1]
            last.code = f"{last.code} {stripped}".strip()[:400]
        elif raised := _RAISED.match(text.rstrip()):
            self._end(raised["type"], raised["message"] or "", line)

    def _begin(self, line: int) -> None:
        self._chain_follows = False
        if self._raised.frames or self._raised.type:
            self.traceback.chain.append(Raised("", "", first_line=line))
        self.traceback.truncated = True

    def _end(self, kind: str, message: str, line: int) -> None:
        raised = self._raised
        raised.type, raised.message, raised.line = kind, message[:_LONGEST], line
        self.traceback.truncated = False

    def _continue_message(self, text: str) -> None:
        raised = self._raised
        if len(raised.message) < _LONGEST:
            raised.message = f"{raised.message}\n{text.rstrip()}"


def _is_group(text: str) -> bool:
    stripped = text.lstrip()
    return stripped.startswith(("| ", "+ Exception Group", "+-+--", "+---", "+----"))


def is_exception_line(text: str) -> bool:
    """`ValueError: ...` and the like: an exception line without its traceback."""
    found = _RAISED.match(text)
    if not found or found["message"] is None:
        return False
    return bool(_NAMED_ERROR.search(found["type"]))


def split_exception(text: str) -> tuple[str, str]:
    """Class and message of an exception line."""
    found = _RAISED.match(text)
    return (found["type"], found["message"] or "") if found else ("", text)
