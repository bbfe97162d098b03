"""How views say things: phases, durations, sizes, ranks, places, sentences."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

from forensics.findings import Place
from forensics.views.clean import one_line

DOING = {
    "init": "starting up",
    "load": "loading the weights",
    "kv_pool": "allocating the KV pool",
    "graph_capture": "capturing CUDA graphs",
    "warmup": "warming up",
    "serving": "serving",
    "shutdown": "shutting down",
}
"""What a launch does in each phase, after "while"."""

PHASE = {
    "init": "startup",
    "load": "weights",
    "kv_pool": "KV pool",
    "graph_capture": "CUDA graphs",
    "warmup": "warm-up",
    "serving": "serving",
    "shutdown": "shutdown",
}
"""The phases as table entries."""

SEVERITY_STYLE = {"critical": "bold red", "warning": "yellow", "info": "cyan"}
"""Colours of severities; the word is always printed with them."""

BEFORE = {"failed": "before the crash", "hung": "before it hung", "degraded": "before it showed"}
"""What a precursor came before, by the outcome of its run."""

_LABEL_WIDTH = 28
_NUMBER = re.compile(r"\d+")
_PLAIN_WORD = re.compile(r"[a-z]+(?:-[a-z]+)*(?=[\s,;:.]|$)")
_LOWER_NAMES = frozenset(
    {
        *("cuda-compat", "dmesg", "fabric-manager", "flashinfer", "gcc", "git-lfs", "libcuda"),
        *("llguidance", "mooncake", "ninja", "nixl", "nvcc", "nvidia-smi", "outlines", "pip"),
        *("psutil", "safetensors", "sgl-kernel", "sglang", "tokenizers", "torch"),
        *("transformers", "triton", "xgrammar"),
    }
)
"""Names that are written with a small letter wherever they stand."""


class Places:
    """Short names of the sources: the file name where that is unique, else the path."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = list(paths)
        self._names = [os.path.basename(path.rstrip("/")) or path for path in self.paths]

    def name(self, path: str) -> str:
        """The short name of a path, cut at its left where it is long."""
        name = os.path.basename(path.rstrip("/")) or path
        if self._names.count(name) > 1:
            name = path
        name = "stdin" if name == "-" else one_line(name)
        return name if len(name) <= _LABEL_WIDTH else f"...{name[-_LABEL_WIDTH + 3 :]}"

    @property
    def single(self) -> bool:
        """Whether there is one source, so that its name need not be repeated."""
        return len(self.paths) < 2

    def at_line(self, source: int, line: int) -> str:
        """The same for a source by its number."""
        if source >= len(self.paths):
            return f"line {line}"
        return f"{self.name(self.paths[source])}:{line}"

    def at(self, place: Place) -> str:
        """`log.txt:142`, as editors and terminals link it."""
        return f"{self.name(place.source)}:{place.line}"


def duration(seconds: float) -> str:
    """`0.4 s`, `6 s`, `5 min 42 s`, `2 h 10 min`."""
    if 0 < seconds < 1:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s" if whole % 60 else f"{whole // 60} min"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def percent(part: int, whole: int) -> str:
    """A share in percent that says 100% or 0% only where that is exact: `98.5%`."""
    if not whole:
        return "0%"
    share = 100 * part / whole
    if part in (0, whole):
        return f"{share:.0f}%"
    return f"{min(max(share, 0.1), 99.9):.1f}%"


def value(data: Any) -> str:
    """A flag's value as it is typed."""
    if isinstance(data, bool):
        return "on" if data else "off"
    if isinstance(data, float):
        return f"{data:g}"
    if isinstance(data, int):
        return str(data)
    if isinstance(data, list | tuple):
        return " ".join(value(item) for item in data)
    return "unset" if data is None else one_line(str(data))


def amount(data: Any) -> str:
    """A measured or predicted number for reading: `425,000`, `7.5`."""
    if isinstance(data, bool) or not isinstance(data, int | float):
        return value(data)
    return f"{data:,.0f}" if isinstance(data, int) or abs(data) >= 1000 else f"{data:.2f}"


def count(number: int, noun: str) -> str:
    """`1 line`, `8 lines`."""
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + "s"
    return f"{number:,} {noun if number == 1 else plural}"


def fold_ranks(tags: Sequence[str]) -> str:
    """Neighbouring ranks as ranges: `TP0-TP7`, `DP0 TP0-TP3, DP1 TP4`, `DP0 TP0 to DP7 TP7`."""
    groups: list[list[str]] = []
    for tag in tags:
        if groups and _follows(groups[-1][-1], tag):
            groups[-1].append(tag)
        else:
            groups.append([tag])
    return ", ".join(_range(group) for group in groups)


def _range(group: list[str]) -> str:
    first, last = group[0], group[-1]
    if len(group) < 3:
        return ", ".join(group)
    common, _, end = last.rpartition(" ")
    return f"{first}-{end}" if first.rpartition(" ")[0] == common else f"{first} to {last}"


def _follows(first: str, second: str) -> bool:
    """Whether a tag is the next one: its numbers stay or grow by one, the last one grows."""
    if _NUMBER.sub("", first) != _NUMBER.sub("", second):
        return False
    steps = [
        int(after) - int(before)
        for before, after in zip(_NUMBER.findall(first), _NUMBER.findall(second), strict=True)
    ]
    return bool(steps) and steps[-1] == 1 and set(steps) <= {0, 1}


def sentence(text: str) -> str:
    """The text with a capital at its start, unless a name stands there: `mem_fraction_static`."""
    word = _PLAIN_WORD.match(text)
    if word is None or word[0] in _LOWER_NAMES:
        return text
    return text[0].upper() + text[1:]


def ended(text: str) -> str:
    """The text as one clean line that ends like a sentence."""
    text = one_line(text)
    return text if text.endswith((".", "!", "?")) else f"{text}."
