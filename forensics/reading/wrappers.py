r"""From one physical line to what the program wrote: escapes, wrappers, `\r` and glue removed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from forensics.reading.escapes import SPECIAL, clean
from forensics.reading.glued import split_glued, starts_record
from forensics.reading.json_lines import read_json_line
from forensics.reading.wrapper_kinds import BY_FIRST, GAP, JSON, Wrapper

SAMPLE_LINES = 256
"""How many lines at the start of a source `detect` should be given."""

_MAX_DEPTH = 6
_PROOFS = 2
_CHANGE_AFTER = 64
_MAX_PARTS = 1024
"""Parts come in 16 KiB or so; more than this is no line that anyone wrote."""
_REPEATED = re.compile(r" ?\[repeated (\d{1,9})x across cluster\](?: \(Ray deduplicates .*)?$")
_FENCE = re.compile(r"(?:```|~~~)[\w-]*\s*$")
_COLOUR = r"(?:\x1b\[[0-9;]*m)*"


@dataclass(slots=True)
class Piece:
    """One stretch of text that a program wrote, with what its wrappers told.

    `time` is the wrapper's clock, aware if it names a zone; a time in the text itself is better.
    """

    line: int
    text: str
    time: datetime | None = None
    node: str | None = None
    """Service, pod, host, task or actor that wrote it; the innermost if several are named."""
    stream: str | None = None
    repeated: int = 1
    """How many equal lines Ray folded into this one, as far as it says so."""
    glued: bool = False
    """It began in the middle of a line, right behind other text."""


@dataclass(slots=True)
class _Line:
    """A line on its way through the wrappers."""

    number: int
    text: str
    stack: tuple[Wrapper, ...] = ()
    time: str | None = None
    node: str | None = None
    stream: str | None = None
    part: bool | None = None
    """It is a part whose rest follows (true) or the last part (false), if parts are marked."""


class Unwrapper:
    """Takes the wrappers off the lines of one source, and learns which of them it uses.

    What it does depends on the lines alone, in their order. `detect` makes one that has seen the
    start of its source; without that the first lines of an uncertain wrapper pass as they are.
    """

    def __init__(
        self,
        known: Iterable[tuple[Wrapper, str]] = (),
        usual: tuple[Wrapper, ...] = (),
        *,
        coloured: bool = False,
    ) -> None:
        self._known = set(known)
        self._proofs: Counter[tuple[Wrapper, str]] = Counter()
        self._usual = usual
        self._coloured = coloured
        self._unusual = 0
        self._stack: tuple[Wrapper, ...] = ()
        self._open: dict[tuple[str | None, str | None], list[_Line]] = {}

    @property
    def name(self) -> str | None:
        """The wrappers of a typical line from the outside in, None if it has none."""
        return " + ".join(wrapper.name for wrapper in self._usual) or None

    @property
    def bulk_ok(self) -> bool:
        """Whether typical lines can be unwrapped in bulk: by `hot_prefix`, or not at all."""
        return all(wrapper.bulk for wrapper in self._usual)

    @property
    def hot_prefix(self) -> str | None:
        """Pattern for Rust's regex engine that matches the wrapper of a typical line, anchored.

        Replacing it by nothing unwraps such a line; the group `node` is who wrote it. None if
        there is no wrapper or bulk work is impossible (`bulk_ok`). A line that it does not match,
        and any line that is not a plain record behind it, must go to `pieces` as it was read.
        """
        if not self._usual or not self.bulk_ok:
            return None
        pattern = "".join(wrapper.rust() for wrapper in self._usual)
        last = pattern.rfind("(?P<node>")
        outer = pattern[:last].replace("(?P<node>", "(?:") if last >= 0 else ""
        pattern = outer + pattern[max(last, 0) :]
        if self._coloured:
            pattern = pattern.replace(GAP, _COLOUR + GAP + _COLOUR)
            pattern = f"{_COLOUR}{pattern}{_COLOUR}"
        return f"^{pattern}"

    def pieces(self, line_number: int, raw: str) -> list[Piece]:
        """What a physical line holds, in order; nothing while it waits for its other parts."""
        if (
            raw.startswith("[20")
            and raw.find("[", 1) < 0
            and raw.find(": ", 21, 34) < 0
            and SPECIAL.search(raw) is None
        ):
            self._seen(())
            return [Piece(line_number, raw)]
        found: list[Piece] = []
        outer = _Line(line_number, "")
        for part in _columns(clean(raw)):
            line = replace(outer, text=part)
            for ready in self._strip(line):
                found += _finish(ready)
            self._seen(line.stack)
            outer.time, outer.node, outer.stream = line.time, line.node, line.stream
        return found

    def flush(self) -> list[Piece]:
        """End of the source: what began and was never completed."""
        left = sorted(map(_joined, self._open.values()), key=lambda line: line.number)
        self._open = {}
        return [piece for line in left for rest in self._strip(line) for piece in _finish(rest)]

    def _seen(self, stack: tuple[Wrapper, ...]) -> None:
        """Follow a source whose wrappers change for good."""
        self._stack = stack
        if stack == self._usual:
            self._unusual = 0
            return
        self._unusual += 1
        if self._unusual >= _CHANGE_AFTER:
            self._usual, self._unusual = stack, 0

    def _strip(self, line: _Line) -> list[_Line]:
        """Take the wrappers off, the outermost first; joins parts, and gives what is whole."""
        before: list[_Line] = []
        while len(line.stack) < _MAX_DEPTH and line.text:
            if line.text[0] == "{":
                if not self._take_json(line):
                    break
            else:
                wrapper, match = self._find(line.text)
                if wrapper is None or match is None:
                    break
                _take(line, wrapper, match)
            if line.part is not None:
                held = self._join(line)
                if held is not None:
                    before += self._strip(held)
                if line.part:
                    return before
                line.part = None
            if line.stack[-1] is JSON and SPECIAL.search(line.text):
                texts = [part for text in line.text.split("\n") for part in _columns(clean(text))]
                inner = [replace(line, text=text) for text in texts]
                return before + [ready for each in inner for ready in self._strip(each)]
        if line.text[:1] in "`~" and _FENCE.match(line.text):
            line.text = ""
        return [*before, line]

    def _take_json(self, line: _Line) -> bool:
        read = read_json_line(line.text)
        if read is None:
            return False
        # A shipper may drop all the newlines; only where there are any does a missing one tell.
        if read.ended:
            self._known.add((JSON, ""))
        line.part = not read.ended and (JSON, "") in self._known
        line.text = read.text
        line.time = read.time or line.time
        line.node = read.node or line.node
        line.stream = read.stream or line.stream
        line.stack = (*line.stack, JSON)
        return True

    def _join(self, line: _Line) -> _Line | None:
        """Hold a part, or complete the parts held; returns parts that turn out not to go on."""
        key = (line.node, line.stream)
        parts = self._open.pop(key, [])
        cut_off = None
        if parts and starts_record(line.text):
            # What a program left unfinished when it died; this line is of its next start.
            cut_off, parts = _joined(parts), []
        parts.append(replace(line, part=None))
        if line.part and len(parts) < _MAX_PARTS:
            self._open[key] = parts
            return cut_off
        whole = _joined(parts)
        line.number, line.time, line.text, line.part = whole.number, whole.time, whole.text, False
        return cut_off

    def _find(self, text: str) -> tuple[Wrapper | None, re.Match[str] | None]:
        for wrapper in BY_FIRST.get(text[0], ()):
            match = wrapper.pattern.match(text)
            if match is not None and self._accepts(wrapper, match, text):
                return wrapper, match
        return None, None

    def _accepts(self, wrapper: Wrapper, match: re.Match[str], text: str) -> bool:
        if wrapper.reject is not None and wrapper.reject.match(text, match.end()):
            return False
        if wrapper.certain:
            return True
        proof = wrapper.proof(match)
        if proof in self._known:
            return True
        if not _has_evidence(wrapper, text, match.end()):
            return False
        self._proofs[proof] += 1
        if self._proofs[proof] >= _PROOFS:
            self._known.add(proof)
        return True


def detect(sample: Sequence[str]) -> Unwrapper:
    """Recognise the wrappers of a source from its first lines (`SAMPLE_LINES` of them do).

    Later lines may still differ: every line is looked at, and what is new is learned.
    """
    student = Unwrapper()
    for number, line in enumerate(sample, 1):
        student.pieces(number, line)
    trial = Unwrapper(student._known)
    stacks: Counter[tuple[Wrapper, ...]] = Counter()
    for number, line in enumerate(sample, 1):
        if line.strip():
            trial.pieces(number, line)
            stacks[trial._stack] += 1
    usual = stacks.most_common(1)[0][0] if stacks else ()
    return Unwrapper(student._known, usual, coloured=any("\x1b" in line for line in sample))


def _joined(parts: list[_Line]) -> _Line:
    return replace(parts[0], text="".join(part.text for part in parts))


def _columns(text: str) -> list[str]:
    r"""What `\r` separates; a terminal would show only the last."""
    if "\r" not in text:
        return [text]
    return [part for part in text.split("\r") if part.strip()] or [""]


def _has_evidence(wrapper: Wrapper, text: str, end: int, depth: int = 0) -> bool:
    """Whether an SGLang record, or a further wrapper with one in it, stands behind a wrapper."""
    if wrapper.evidence.match(text, end):
        return True
    if depth >= _MAX_DEPTH or end >= len(text):
        return False
    for inner in BY_FIRST.get(text[end], ()):
        match = inner.pattern.match(text, end)
        if match is None or match.end() == end:
            continue
        if inner.certain or _has_evidence(inner, text, match.end(), depth + 1):
            return True
    return False


def _take(line: _Line, wrapper: Wrapper, match: re.Match[str]) -> None:
    groups = wrapper.groups
    if "time" in groups:
        line.time = match["time"] or line.time
    if "node" in groups:
        line.node = match["node"]
    if "stream" in groups:
        line.stream = match["stream"]
    if "part" in groups:
        line.part = match["part"] == "P"
    line.stack = (*line.stack, wrapper)
    line.text = line.text[match.end() :]


def _finish(line: _Line) -> list[Piece]:
    """The pieces of a line whose wrappers are off."""
    text, repeated = line.text, 1
    if "x across cluster]" in text and (match := _REPEATED.search(text)):
        text, repeated = text[: match.start()], int(match[1])
    time = _parse_time(line.time) if line.time else None
    return [
        Piece(line.number, part, time, line.node, line.stream, repeated, place > 0)
        for place, part in enumerate(split_glued(text))
    ]


def _parse_time(text: str) -> datetime | None:
    try:
        if text[0].isalpha():
            return datetime.strptime(text, "%a %b %d %H:%M:%S %Y")
        return datetime.fromisoformat(text)
    except ValueError:
        return None
