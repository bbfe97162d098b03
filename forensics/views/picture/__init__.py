"""The small picture of a run: one lane a rank on a common axis, phases, free memory, marks.

`picture` draws a report as data; the terminal, the TUI and the HTML report show the same data.
"""

from forensics.views.picture.build import picture
from forensics.views.picture.model import (
    LINE_ZERO,
    Axis,
    Block,
    FreePoint,
    Lane,
    Mark,
    Picture,
    line_of,
)

__all__ = [
    "LINE_ZERO",
    "Axis",
    "Block",
    "FreePoint",
    "Lane",
    "Mark",
    "Picture",
    "line_of",
    "picture",
]
