"""The wrappers that containers, schedulers and other loggers put around every line.

Each pattern is anchored by its use, and valid for Python and for Rust's regex engine.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from string import ascii_letters, ascii_lowercase, ascii_uppercase, digits

from forensics.reading.glued import RECORD_START

_ISO = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)"
_UNIT = r"(?:[\w@.:/\\()-]+\[\d+\]|kernel)"
GAP = r"(?: |$)"
"""One space, which editors and copying drop from the end of an empty line."""

_HEAD = re.compile(
    rf"{RECORD_START}"
    r"|Traceback \(most recent call last\):"
    r'|  File "[^"]+", line \d'
    r"|server_args="
    r"|\[rank\d+\]:"
    r"|Loading \w+ checkpoint shards:"
)
_RECORD = re.compile(RECORD_START)
# Uvicorn pads its own level; this is its text and not that of a logger that wraps lines.
_UVICORN = re.compile(
    r' +(?:\S+:\d+ - "|Started |Waiting |Application |Uvicorn |Shutting |Finished '
    r"|Exception in ASGI)"
)
# The time is of a format of its own: flashinfer's, the weight-cache daemon's, a logging config's.
# A number that begins a time; `srun` puts one space behind its own.
_NO_LINE_NUMBER = re.compile(r"\d\d[-:]| (?! )")
_OTHER_LOGGERS = re.compile(r"- |\[Daemon |[A-Z]+ \d+ \[")


@dataclass(frozen=True, slots=True, eq=False)
class Wrapper:
    """One kind of wrapper; its groups `time`, `node`, `stream` and `part` say what it tells.

    A `certain` wrapper is known by its form alone. Any other is taken off where `evidence` stands
    behind it, and everywhere once a source has shown that often enough; `learn` names the group
    whose text must then be the same.
    """

    name: str
    pattern: re.Pattern[str]
    starts: str
    """The characters that it can begin with."""
    certain: bool = True
    learn: str | None = None
    evidence: re.Pattern[str] = _HEAD
    reject: re.Pattern[str] | None = None
    """What must not follow."""
    nests: bool = False
    """Whether an uncertain wrapper can be taken off a line more than once."""
    bulk: bool = True
    """Whether it can be taken off blindly, by its pattern alone."""
    groups: frozenset[str] = frozenset()

    def proof(self, match: re.Match[str]) -> tuple[Wrapper, str]:
        """What a source has to show more than once before an uncertain wrapper is believed."""
        literal = (match[self.learn] or "") if self.learn else ""
        return self, re.sub(r"\d", "0", literal) if self.learn == "time" else literal

    def rust(self) -> str:
        """The pattern for bulk use: only the node is captured, partial lines do not match."""
        text = self.pattern.pattern.replace("(?P<part>[FP])", "F")
        return re.sub(r"\(\?P<(?!node>)\w+>", "(?:", text)


def _wrapper(
    name: str,
    pattern: str,
    starts: str,
    *,
    certain: bool = True,
    learn: str | None = None,
    evidence: re.Pattern[str] = _HEAD,
    reject: re.Pattern[str] | None = None,
    nests: bool = False,
    bulk: bool = True,
) -> Wrapper:
    compiled = re.compile(pattern)
    groups = frozenset(compiled.groupindex)
    return Wrapper(name, compiled, starts, certain, learn, evidence, reject, nests, bulk, groups)


WRAPPERS = (
    _wrapper(
        "CRI",
        rf"(?P<time>{_ISO}(?:\.\d+)?{_ZONE}) (?P<stream>stdout|stderr) "
        rf"(?P<part>[FP])(?::\w*)*{GAP}",
        digits,
    ),
    _wrapper(
        "journald",
        rf"(?P<time>{_ISO}(?:[.,]\d+)?{_ZONE}) (?P<node>[\w.-]+) {_UNIT}:{GAP}",
        digits,
    ),
    _wrapper("timestamps", rf"(?P<time>{_ISO}\.\d{{7,9}}{_ZONE}){GAP}", digits),
    _wrapper(
        "logger",
        r"(?P<time>\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?) - (?:(?P<learn>[\w.]+) - )?"
        rf"[A-Z]+ -{GAP}",
        digits,
        certain=False,
        learn="learn",
    ),
    _wrapper(
        "timestamps",
        rf"(?P<time>\d{{4}}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{{1,6}})?{_ZONE}?){GAP}",
        digits,
        certain=False,
        learn="time",
        reject=_OTHER_LOGGERS,
    ),
    _wrapper(
        "logger",
        rf"\[(?P<time>\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?)\] (?P<learn>[A-Z]+):{GAP}",
        "[",
        certain=False,
        learn="learn",
        reject=_UVICORN,
        bulk=False,
    ),
    _wrapper("kubectl", rf"\[pod/(?P<node>[^/\]\s]+/[^\]\s]+)\]{GAP}", "["),
    _wrapper("torchrun", r"\[(?P<node>default\d+)\]:", "["),
    _wrapper(
        "dmesg",
        r"\[(?: *\d+\.\d{6}|(?P<time>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4}))\] ",
        "[",
    ),
    _wrapper(
        "Ray",
        # Names have a bound, so that a hostile line cannot make the search slow.
        r"\((?P<node>(?:raylet|autoscaler)[^()]{0,99}"
        r"|(?:[^()\s][^()]{0,99}(?:\([^()]{0,99}\))? )?pid=\d+(?:, ip=[\d.:a-fA-F]+)?)\)"
        rf"{GAP}",
        "(",
    ),
    _wrapper(
        "syslog",
        rf"[A-Z][a-z]{{2}} [ \d]\d \d\d:\d\d:\d\d (?P<node>[\w.-]+) {_UNIT}:{GAP}",
        ascii_uppercase,
    ),
    # `cat -n`, `nl` and `grep -n` (`-` around a hit), `less -N`, editors. One wrapper for each
    # separator: what a source uses is learned, and the text's own indentation stays.
    *(
        _wrapper(
            "line numbers",
            rf" *\d+{separator}",
            " " + digits,
            certain=False,
            reject=_NO_LINE_NUMBER,
        )
        for separator in (r"\t", "[:-]", " \\| ?", "(?:  |$)", GAP)
    ),
    _wrapper(
        "docker compose",
        rf"(?P<node>[A-Za-z0-9][\w./@-]*[-_]\d+) +\|{GAP}",
        ascii_letters + digits,
    ),
    _wrapper(
        "docker compose",
        rf"(?P<node>[A-Za-z0-9][\w./@-]*) +\|{GAP}",
        ascii_letters + digits,
        certain=False,
        learn="node",
    ),
    _wrapper(
        "stern",
        r"(?P<node>[a-z0-9][a-z0-9.]*-[a-z0-9.-]+ [a-z0-9][a-z0-9-]*) ",
        ascii_lowercase + digits,
        certain=False,
        learn="node",
        evidence=_RECORD,
    ),
    _wrapper("srun", rf" *(?P<node>\d+):{GAP}", " " + digits, certain=False),
    _wrapper(
        "quote", r"> ?", ">", certain=False, evidence=_RECORD, reject=re.compile(">"), nests=True
    ),
    _wrapper("indented code", r"(?: {4}|\t)", " \t", certain=False, evidence=_RECORD),
    _wrapper(
        "grep",
        r"(?P<name>[^\s:\[\]|]+)(?::\d+:|-\d+-)",
        ascii_letters + digits + "./",
        certain=False,
        learn="name",
    ),
)

JSON = _wrapper("JSON lines", r"\{", "{", bulk=False)
"""Lines that are JSON objects, as Docker's json-file driver writes them; not done by pattern."""

BY_FIRST: dict[str, tuple[Wrapper, ...]] = {
    first: tuple(wrapper for wrapper in WRAPPERS if first in wrapper.starts)
    for first in sorted({first for wrapper in WRAPPERS for first in wrapper.starts})
}
"""The wrappers that a line can begin with, by its first character."""
