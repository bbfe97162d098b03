"""Styled text cut to cells: a wide character counts as two, and none is cut in half."""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

Span = tuple[str, Style]
"""A text and its style; the text is never read as markup."""


def strip_of(spans: Sequence[Span], base: Style) -> Strip:
    """Spans as one line of a widget."""
    return Strip([Segment(text, base + style) for text, style in spans if text])


def window(spans: Sequence[Span], left: int, width: int) -> list[Span]:
    """The cells from `left` on, at most `width` of them."""
    return _spans(strip_of(spans, Style()).crop(left, left + width))


def wrapped(spans: Sequence[Span], width: int) -> list[list[Span]]:
    """The spans in lines of `width` cells; at least one line."""
    strip = strip_of(spans, Style())
    cells = strip.cell_length
    if cells <= width:
        return [list(spans)]
    cuts = [*range(width, cells, width), cells]
    return [_spans(part) for part in strip.divide(cuts)]


def _spans(strip: Strip) -> list[Span]:
    return [(segment.text, segment.style or Style()) for segment in strip]
