"""A numeric flag in an argument list, and its values as somebody would type them."""

from __future__ import annotations

import math
from collections.abc import Sequence

from forensics.launch import Value
from forensics.launch.arguments import groups
from forensics.releases import names_of

FRACTION_STEP = 0.0025
"""Fractions are tried in these steps: 0.35 GiB of a 141 GB card."""


def value_in(command: Sequence[str], name: str) -> float | None:
    """The value that an argument list gives a field, the last one as the parser has it.

    None where the field is not given, or not as a number.
    """
    names = names_of(name)
    found: Value = None
    for group in groups(list(command), None):
        if group.field in names:
            found = group.value
    try:
        return float(found) if isinstance(found, int | float | str) else None
    except ValueError:
        return None


def with_value(command: Sequence[str], name: str, value: float) -> list[str]:
    """The argument list with a number set: where it stands, else at the end."""
    return with_text(command, name, typed(value))


def with_text(command: Sequence[str], name: str, text: str | None) -> list[str]:
    """The argument list with a field set: where it stands, else at the end; None takes it away.

    A flag that is given more than once is left once. The spelling in the command is kept; an empty
    text is a switch.
    """
    names, done = names_of(name), text is None
    new = [] if not text else [text]
    words: list[str] = []
    for group in groups(list(command), None):
        if group.field not in names:
            words += group.tokens
        elif not done:
            words += [group.tokens[0].split("=", 1)[0], *new]
            done = True
    if not done:
        words += [f"--{name.replace('_', '-')}", *new]
    return words


def typed(value: float) -> str:
    """A number as it is typed: no exponent, no trailing zeros."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


def step_at(value: float, *, name: str, whole: bool) -> float:
    """How far apart values are that somebody would type, about there."""
    if not whole:
        return FRACTION_STEP
    if name == "chunked_prefill_size":
        return 512.0 if value > 2048 else 64.0
    for above, step in ((256, 32), (32, 16), (8, 8)):
        if value > above:
            return float(step)
    return 1.0


def snapped(value: float, *, name: str, whole: bool, up: bool = False) -> float:
    """The nearest such value below (or above), never past the given one."""
    step = step_at(value, name=name, whole=whole)
    steps = value / step
    count = math.ceil(steps - 1e-9) if up else math.floor(steps + 1e-9)
    return round(count * step, 6)
