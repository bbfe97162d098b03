"""Numbers that decide, and that a site may set: each with a name, a default and a unit.

A rule declares the thresholds it applies next to itself and reads them through
`Case.threshold`. Facts of SGLang or of a GPU are no thresholds: a site cannot change those.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Threshold:
    """One such number; names end in their unit where they have one."""

    name: str
    default: float
    unit: str
    meaning: str
    least: float = 0.0
    most: float = math.inf


_DECLARED: dict[str, Threshold] = {}


def threshold(
    name: str,
    default: float,
    unit: str,
    meaning: str,
    *,
    least: float = 0.0,
    most: float = math.inf,
) -> Threshold:
    """Declare a threshold; a rule's module does so when it is imported.

    Raises:
        ValueError: the name is taken.
    """
    if name in _DECLARED:
        raise ValueError(f"threshold {name} is taken")
    _DECLARED[name] = Threshold(name, default, unit, meaning, least, most)
    return _DECLARED[name]


def declared() -> dict[str, Threshold]:
    """Every threshold of the rules imported so far, by name."""
    return dict(_DECLARED)


def forget(names: set[str]) -> None:
    """Takes back what a package declared whose rules could not be loaded."""
    for name in names:
        _DECLARED.pop(name, None)
