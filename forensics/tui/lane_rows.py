"""Which rows the lanes have: one a rank, groups that fold, ranks that look alike as one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from forensics.views.clean import one_line
from forensics.views.picture import Lane, Picture
from forensics.views.picture.alike import alike, label_of
from forensics.views.words import count

FOLD_FROM = 9
"""From so many ranks on, groups begin folded, but for the one with the cause."""

LABEL = 20
"""Columns of the longest label."""


@dataclass(frozen=True, slots=True)
class LaneRow:
    """A row: one lane, or several of which one is drawn."""

    lanes: tuple[Lane, ...]
    label: str
    key: str = ""
    """What it folds by; empty for a lane that belongs to nothing."""
    folds: bool = False
    """It is the head of a group, or what a folded one is drawn as."""
    folded: bool = False

    @property
    def drawn(self) -> Lane:
        """The lane that stands for all: the one with the gravest mark."""
        return min(self.lanes, key=_gravity)


def _gravity(lane: Lane) -> int:
    """0 for the cause, 1 for an echo, 2 for anything found, 3 for nothing."""
    roles = {mark.role for mark in lane.marks}
    if "root_cause" in roles:
        return 0
    if "consequence" in roles:
        return 1
    return 2 if roles else 3


def groups_of(picture: Picture, by_looks: bool) -> list[tuple[str, tuple[Lane, ...]]]:
    """The groups that fold: those of the ranks' tags, or ranks that look alike."""
    if by_looks:
        return [(f"alike {_name(lanes[0])}", lanes) for lanes in alike(picture)]
    names = list(dict.fromkeys(lane.group for lane in picture.lanes))
    if len(names) < 2:
        return [("", picture.lanes)]
    return [(name, tuple(la for la in picture.lanes if la.group == name)) for name in names]


def folded_at_first(picture: Picture, by_looks: bool) -> set[str]:
    """The groups that begin folded: of many ranks all but the one with the cause."""
    groups = groups_of(picture, by_looks)
    if by_looks:
        return {key for key, lanes in groups if len(lanes) > 1}
    if len(picture.lanes) < FOLD_FROM or len(groups) < 2:
        return set()
    return {key for key, lanes in groups if all(_gravity(lane) for lane in lanes)}


def rows_of(picture: Picture, folded: Collection[str], by_looks: bool = False) -> list[LaneRow]:
    """The rows from top to bottom."""
    rows: list[LaneRow] = []
    for key, lanes in groups_of(picture, by_looks):
        alone = len(lanes) == 1 or not key
        if not alone and key in folded:
            rows.append(LaneRow(lanes, _folded_name(key, lanes, by_looks), key, True, True))
            continue
        if not alone and not by_looks:
            label = f"{one_line(key)}, {count(len(lanes), 'rank')}"
            rows.append(LaneRow(lanes, label, key, True, False))
        rows += [LaneRow((lane,), _name(lane), "" if alone else key) for lane in lanes]
    return rows


def _folded_name(key: str, lanes: tuple[Lane, ...], by_looks: bool) -> str:
    if by_looks:
        return label_of(lanes, LABEL)
    return f"{one_line(key)}, {count(len(lanes), 'rank')}"


def _name(lane: Lane) -> str:
    return "GPU" if lane.rank is None else one_line(lane.rank)
