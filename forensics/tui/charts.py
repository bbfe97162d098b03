"""Charts of a few lines in braille: two values and four levels to a character."""

from __future__ import annotations

from collections.abc import Sequence

_LEFT = (0x40, 0x44, 0x46, 0x47)
_RIGHT = (0x80, 0xA0, 0xB0, 0xB8)
"""Dots of the left and right column of a character, filled from below."""

LEVELS = 4
"""Levels of one line."""

VALUES = 2
"""Values that stand side by side in one character."""


def chart(values: Sequence[float | None], top: float, height: int = 1) -> list[str]:
    """Lines from top to bottom, two values to a character; None leaves a gap.

    `top` is what a full column stands for. What is more than nothing shows at least one dot.
    """
    levels = [_level(value, top, height * LEVELS) for value in values]
    if len(levels) % VALUES:
        levels.append(0)
    lines = []
    for row in reversed(range(height)):
        cells = zip(levels[::2], levels[1::2], strict=True)
        below = row * LEVELS
        lines.append("".join(_cell(left - below, right - below) for left, right in cells))
    return lines


def _level(value: float | None, top: float, levels: int) -> int:
    if value is None or value <= 0 or top <= 0:
        return 0
    return min(max(round(value / top * levels), 1), levels)


def _cell(left: int, right: int) -> str:
    dots = _dots(_LEFT, left) | _dots(_RIGHT, right)
    return chr(0x2800 + dots) if dots else " "


def _dots(column: Sequence[int], level: int) -> int:
    return 0 if level <= 0 else column[min(level, LEVELS) - 1]
