"""Lanes that look alike, and their names: eight ranks mostly say the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from forensics.views.clean import one_line
from forensics.views.picture.model import Lane, Picture
from forensics.views.words import fold_ranks

ALIKE_GIB = 0.3
_ALIKE_S = 3.0
_ALIKE_SHARE = 0.02


def alike(picture: Picture) -> list[tuple[Lane, ...]]:
    """The lanes in groups that look alike, each where its first lane stands.

    Ranks of one source are alike with the same phases, marks and free memory, give or take
    seconds and a fraction of a GiB.
    """
    span_s = (picture.end - picture.begin).total_seconds()
    slack = timedelta(seconds=max(_ALIKE_S, _ALIKE_SHARE * span_s))
    groups: list[list[Lane]] = []
    for lane in picture.lanes:
        group = next((one for one in groups if _same(one[0], lane, slack)), None)
        if group is None:
            groups.append([lane])
        else:
            group.append(lane)
    return [tuple(group) for group in groups]


def _same(one: Lane, two: Lane, slack: timedelta) -> bool:
    if (one.source, one.group) != (two.source, two.group):
        return False
    blocks = [block.phase for block in one.blocks] == [block.phase for block in two.blocks]
    marks = [(m.kind, m.role) for m in one.marks] == [(m.kind, m.role) for m in two.marks]
    return (
        blocks
        and marks
        and _near((b.begin for b in one.blocks), (b.begin for b in two.blocks), slack)
        and _near((m.at for m in one.marks), (m.at for m in two.marks), slack)
        and _same_memory(one, two)
    )


def _near(one: Iterable[datetime], two: Iterable[datetime], slack: timedelta) -> bool:
    return all(abs(a - b) <= slack for a, b in zip(one, two, strict=True))


def _same_memory(one: Lane, two: Lane) -> bool:
    ends_one, ends_two = _ends(one), _ends(two)
    return len(ends_one) == len(ends_two) and all(
        abs(a - b) <= ALIKE_GIB for a, b in zip(ends_one, ends_two, strict=True)
    )


def _ends(lane: Lane) -> Sequence[float]:
    """Free memory at first and at last."""
    return [point.free_gib for point in (lane.free[:1] + lane.free[-1:])]


def label_of(lanes: Sequence[Lane], width: int) -> str:
    """The ranks of lanes in at most so many columns: `TP0-TP7`, `TP0,2-3,5`, `DP0 TP0 +3`."""
    tags = [one_line(lane.rank) for lane in lanes if lane.rank is not None]
    label = fold_ranks(tags) if tags else "GPU"
    if len(label) > width:
        label = _by_numbers(tags)
    if len(label) <= width:
        return label
    more = f" +{len(tags) - 1}" if len(tags) > 1 else ""
    return f"{_shortened(tags[0], width - len(more))}{more}"


def _shortened(tag: str, width: int) -> str:
    """A tag without its last words, never without a digit: `EP1` is another rank than `EP13`."""
    words = tag.split(" ")
    while len(words) > 1 and len(" ".join(words)) > width:
        words.pop()
    short = " ".join(words)
    return short if len(short) <= width else f"{short[: max(width - 1, 0)]}…"


def _by_numbers(tags: Sequence[str]) -> str:
    """`TP0,2-3,5`: the last numbers of tags that differ in nothing else."""
    head = tags[0].rstrip("0123456789")
    if not all(tag.startswith(head) and tag[len(head) :].isdigit() for tag in tags):
        return fold_ranks(tags)
    parts: list[list[int]] = []
    for number in (int(tag[len(head) :]) for tag in tags):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    said = [str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts]
    return head + ",".join(said)
