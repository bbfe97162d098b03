r"""Where log lines come from.

`find_sources` says what to read, `read_blocks` reads it in blocks of whole lines (decompressed,
valid UTF-8, lines counted by `\n` alone), and an `Unwrapper` made by `detect` turns each physical
line into what the program wrote: without escapes and wrappers, parts joined, glued text split.
"""

from forensics.reading.pieces import Piece
from forensics.reading.sources import InputError, Source, find_sources
from forensics.reading.streams import Block, LineCutter, head_lines, looks_binary, read_blocks
from forensics.reading.wrappers import SAMPLE_LINES, Unwrapper, detect

__all__ = [
    "SAMPLE_LINES",
    "Block",
    "InputError",
    "LineCutter",
    "Piece",
    "Source",
    "Unwrapper",
    "detect",
    "find_sources",
    "head_lines",
    "looks_binary",
    "read_blocks",
]
