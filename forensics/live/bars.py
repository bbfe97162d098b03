"""Progress bars: what they count, how far they are, what they expect."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from forensics.events import Value
from forensics.grammar import load
from forensics.incident import Run
from forensics.reading import Unwrapper

_BARS = {
    "shards_progress": "shards",
    "capture_progress": "capture sizes",
    "deepgemm_progress": "kernels compiled",
    "autotune_progress": "kernels tuned",
    "fetch_progress": "files fetched",
    "download_progress": "download",
    "progress": "steps",
}
"""Kinds of progress bars to what they count."""

_LOOK_BACK = 400


@dataclass(frozen=True, slots=True)
class Bar:
    """A progress bar's own numbers."""

    what: str
    done: int
    total: int
    elapsed_s: float | None
    left_s: float | None
    """What the bar expects; without that, what its pace so far gives."""


def bar_at_work(run: Run, open_lines: Sequence[bytes], phase: str) -> Bar | None:
    """The bar at work: of a line still being written, else the last one of this phase."""
    for line in open_lines:
        if (bar := _open_bar(line)) is not None:
            return bar
    for event in reversed(run.events[-_LOOK_BACK:]):
        if event.kind in _BARS and event.phase == phase:
            bar = _read_bar(event.kind, event.fields)
            return bar if bar and bar.done < bar.total else None
    return None


def _open_bar(line: bytes) -> Bar | None:
    if b"%" not in line:
        return None
    pieces = Unwrapper().pieces(0, line.decode("utf-8", "replace"))
    match = load().match(pieces[-1].text.strip()) if pieces else None
    return _read_bar(match.kind, match.fields) if match and match.kind in _BARS else None


def _read_bar(kind: str, fields: Mapping[str, Value]) -> Bar | None:
    done, total = fields.get("done"), fields.get("total")
    if not isinstance(done, int) or not isinstance(total, int) or not total:
        return None
    elapsed, left = seconds(fields.get("elapsed")), seconds(fields.get("left"))
    if left is None and elapsed is not None and 0 < done <= total:
        left = elapsed * (total - done) / done
    return Bar(_BARS[kind], done, total, elapsed, left)


def seconds(timer: object) -> float | None:
    """Seconds of `01:13`, `1:02:03`; None for `?`."""
    if not isinstance(timer, str) or not re.fullmatch(r"\d+(?::\d+){1,2}", timer):
        return None
    total = 0
    for part in timer.split(":"):
        total = total * 60 + int(part)
    return float(total)
