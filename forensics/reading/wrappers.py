r"""From one physical line to what the program wrote: escapes, wrappers, `\r` and glue removed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from forensics.reading.escapes import SPECIAL, clean
from forensics.reading.json_lines import read_json_line
from forensics.reading.pieces import Line, Parts, Piece, columns, finish
from forensics.reading.wrapper_kinds import BY_FIRST, GAP, JSON, Wrapper

SAMPLE_LINES = 256
"""How many lines at the start of a source `detect` should be given."""

_MAX_DEPTH = 6
_PROOFS = 2
_CHANGE_AFTER = 64
_FENCE = re.compile(r"(?:```|~~~)[\w-]*\s*$")
_COLOUR = r"(?:\x1b\[[0-9;]*m)*"


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
        self._parts = Parts()

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
        line = Line(line_number, clean(raw))
        found = [piece for ready in self._strip(line) for piece in finish(ready)]
        self._seen(line.stack)
        return found

    def flush(self) -> list[Piece]:
        """End of the source: what began and was never completed."""
        left = self._parts.release()
        return [piece for line in left for rest in self._strip(line) for piece in finish(rest)]

    def _seen(self, stack: tuple[Wrapper, ...]) -> None:
        """Follow a source whose wrappers change for good."""
        self._stack = stack
        if stack == self._usual:
            self._unusual = 0
            return
        self._unusual += 1
        if self._unusual >= _CHANGE_AFTER:
            self._usual, self._unusual = stack, 0

    def _strip(self, line: Line) -> list[Line]:
        """Take the wrappers off, the outermost first; joins parts, and gives what is whole."""
        before: list[Line] = []
        while len(line.stack) < _MAX_DEPTH and line.text:
            if line.text[0] == "{":
                if not self._take_json(line):
                    break
            else:
                wrapper, match = self._find(line)
                if wrapper is None or match is None:
                    break
                _take(line, wrapper, match)
            if line.part is not None:
                held = self._parts.join(line)
                if held is not None:
                    before += self._strip(held)
                if line.part:
                    return before
                line.part = None
            if line.stack[-1] is JSON and SPECIAL.search(line.text):
                return before + self._strip_each(line)
        if "\r" in line.text:
            return before + self._strip_each(line)
        if line.text[:1] in "`~" and _FENCE.match(line.text):
            line.text = ""
        return [*before, line]

    def _strip_each(self, line: Line) -> list[Line]:
        r"""Split what `\r` and, in JSON, newlines separate; each may have wrappers of its own."""
        texts = [part for text in line.text.split("\n") for part in columns(clean(text))]
        return [ready for text in texts for ready in self._strip(line.sibling(text, line.stack))]

    def _take_json(self, line: Line) -> bool:
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

    def _find(self, line: Line) -> tuple[Wrapper | None, re.Match[str] | None]:
        for wrapper in BY_FIRST.get(line.text[0], ()):
            match = wrapper.pattern.match(line.text)
            if match is None:
                continue
            # Twice the same uncertain form: the second is more likely what the program wrote.
            again = wrapper in line.stack and not (wrapper.certain or wrapper.nests)
            if not again and self._accepts(wrapper, match, line.text):
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


def _has_evidence(wrapper: Wrapper, text: str, end: int, depth: int = 0) -> bool:
    """Whether an SGLang record, or a further wrapper with one in it, stands behind a wrapper."""
    if wrapper.evidence.match(text, end):
        return True
    if depth >= _MAX_DEPTH or end >= len(text):
        return False
    if text[end] == "{":
        return read_json_line(text[end:]) is not None
    for inner in BY_FIRST.get(text[end], ()):
        match = inner.pattern.match(text, end)
        if match is None or match.end() == end:
            continue
        if inner.reject is not None and inner.reject.match(text, match.end()):
            continue
        if inner.certain or _has_evidence(inner, text, match.end(), depth + 1):
            return True
    return False


def _take(line: Line, wrapper: Wrapper, match: re.Match[str]) -> None:
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
