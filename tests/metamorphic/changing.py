"""Changes to a log that must not change what is wrong with it.

Each takes the lines of a log and gives the new lines, where each old line went, and what became
of its names. Random choices come from a seeded generator, so a failure can be repeated.
"""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta


@dataclass
class Changed:
    """A changed log: `moved[n]` is the new number of old line `n` (both from 1)."""

    lines: list[str]
    moved: dict[int, int] = field(default_factory=dict)
    ranks: dict[str, str] = field(default_factory=dict)
    """Old tag to new tag."""

    def rank(self, tag: str | None) -> str | None:
        return self.ranks.get(tag, tag) if tag else tag


Transform = Callable[[list[str], random.Random], Changed]


def _same_places(lines: list[str]) -> Changed:
    return Changed(lines, {number: number for number in range(1, len(lines) + 1)})


_STAMP = re.compile(r"(?<![\d-])(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)")
_SHORT = re.compile(r"(?<=\[[EWIF])(\d{3,4} \d\d:\d\d:\d\d)(?=\.\d)|^([EWIF]\d{4} \d\d:\d\d:\d\d)")


def shift_times(lines: list[str], rng: random.Random) -> Changed:
    """The same launch on another day. Times without a year stay on the day of the others."""
    days = timedelta(days=rng.randrange(1, 20) * 7, hours=rng.randrange(-3, 4))

    def full(found: re.Match[str]) -> str:
        text = found[1]
        form = "%Y-%m-%dT%H:%M:%S" if "T" in text else "%Y-%m-%d %H:%M:%S"
        return (datetime.strptime(text, form) + days).strftime(form)

    def short(found: re.Match[str]) -> str:
        text = found[1] or found[2][1:]
        day, clock = text.split(" ")
        time = datetime.strptime(f"2026{day.zfill(4)} {clock}", "%Y%m%d %H:%M:%S") + days
        month = str(time.month) if len(day) == 3 and time.month < 10 else f"{time.month:02d}"
        return f"{(found[2] or '')[:1]}{month}{time.day:02d} {time:%H:%M:%S}"

    return _same_places([_SHORT.sub(short, _STAMP.sub(full, line)) for line in lines])


_MODEL = re.compile(r"/models/[\w.-]+")
_SITE = re.compile(r"/(?:usr/local/lib/python3\.\d+/dist-packages|opt/site|opt/venv/lib)")
_SRT = re.compile(r"/(?:sgl-workspace/sglang/python|opt/sglang/python)/")


def rename_paths(lines: list[str], rng: random.Random) -> Changed:
    """Another folder of models, other places of packages."""
    number = rng.randrange(100)
    site, home = f"/srv/py{number}/site-packages", f"/home/u{number}/src/sglang/python/"
    names: dict[str, str] = {}

    def model(found: re.Match[str]) -> str:
        base = found[0].rsplit("/", 1)[-1]
        return names.setdefault(found[0], f"/data{number}/checkpoints/{base}")

    changed = []
    for line in lines:
        line = _MODEL.sub(model, line)
        changed.append(_SRT.sub(home, _SITE.sub(site, line)))
    return _same_places(changed)


_TP = re.compile(r"(?<= )TP(\d+)(?=[ \]])")
_ALIKE = re.compile(r"(DP|EP)(\d+)")
_GLOBAL = re.compile(r"(\[rank|\bRank |\brank |scheduler_|scheduler_TP|tp_rank=|rank=)(\d+)")


def permute_ranks(lines: list[str], rng: random.Random) -> Changed:
    """Every rank takes another's number, in tags and in the words of torch.

    Rank 0 keeps its own: some lines only rank 0 prints. A launch of several nodes or with numbers
    that do not go together is left as it is.
    """
    head = re.compile(r"\[[\d-]+ [\d:.]+((?: [A-Z_]+\d+)+)\]")
    tags = {found[1].strip() for line in lines for found in head.finditer(line)}
    if not tags or any(len(set(re.findall(r"\d+", tag))) != 1 or "TP" not in tag for tag in tags):
        return _same_places(lines)
    if any("nnodes=2" in line or "pid [" in line for line in lines):
        return _same_places(lines)
    top = max(int(re.findall(r"\d+", tag)[0]) for tag in tags)
    others = list(range(1, top + 1))
    rng.shuffle(others)
    new = {0: 0, **dict(zip(range(1, top + 1), others, strict=True))}

    def renumbered(tag: str) -> str:
        return re.sub(r"\d+", lambda n: str(new.get(int(n[0]), int(n[0]))), tag)

    changed = []
    for line in lines:
        line = head.sub(lambda m: m[0].replace(m[1], renumbered(m[1])), line)
        changed.append(_GLOBAL.sub(lambda m: m[1] + str(new.get(int(m[2]), int(m[2]))), line))
    return Changed(
        changed,
        _same_places(lines).moved,
        {tag: renumbered(tag) for tag in tags},
    )


def in_compose(lines: list[str], rng: random.Random) -> Changed:
    """As `docker compose logs` prints it."""
    name = rng.choice(["sglang-1", "server_1", "inference-0"])
    return _same_places([f"{name}  | {line}" for line in lines])


def in_kubernetes(lines: list[str], rng: random.Random) -> Changed:
    """As the kubelet writes it (CRI), in UTC while the log's own clock has another zone."""
    hours = timedelta(hours=rng.choice([0, -2, 8]))
    now, wrapped = datetime(2026, 1, 1), []
    for number, line in enumerate(lines):
        if found := _STAMP.search(line[:40]):
            now = datetime.fromisoformat(found[1])
        wrapped.append(f"{now - hours:%Y-%m-%dT%H:%M:%S}.{number:09d}Z stderr F {line}")
    return _same_places(wrapped)


CHATTER = (
    "/opt/site/transformers/utils/hub.py:110: FutureWarning: Using `TRANSFORMERS_CACHE` is"
    " deprecated and will be removed in v5 of Transformers.",
    '[{time}] INFO:     10.0.0.7:51234 - "GET /metrics HTTP/1.1" 200 OK',
    "some sidecar says: heartbeat ok",
    "[{time}] Ignore import error when loading sglang.srt.models.foo. No module named 'foo'",
)


def with_chatter(lines: list[str], rng: random.Random) -> Changed:
    """Harmless lines between records (not inside tracebacks, which own what follows them)."""
    changed: list[str] = []
    moved: dict[int, int] = {}
    inside, time = False, "2026-01-01 00:00:00"
    for number, line in enumerate(lines, start=1):
        starts = bool(re.match(r"\[\d{4}-", line))
        if starts and not inside and number > 3 and rng.random() < 0.15:
            changed.append(rng.choice(CHATTER).format(time=time))
        if found := _STAMP.search(line[:40]):
            time = found[1]
        inside = line.rstrip().endswith("Traceback (most recent call last):") or (
            inside and not starts
        )
        changed.append(line)
        moved[number] = len(changed)
    return Changed(changed, moved)


def with_crlf(lines: list[str], rng: random.Random) -> Changed:
    """Written on another system."""
    return _same_places([f"{line}\r" for line in lines])


TRANSFORMS: tuple[Transform, ...] = (
    shift_times,
    rename_paths,
    permute_ranks,
    in_compose,
    in_kubernetes,
    with_chatter,
    with_crlf,
)
