"""How the bytes of a log stand for text: BOMs, UTF-16 as Windows tools write it, else UTF-8."""

from __future__ import annotations

PROBE_BYTES = 4096
"""At most this much of a stream is needed to know its encoding."""

_PROBE_LEAST = 16
_BOMS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)


def encoding_of(head: bytes, *, final: bool) -> tuple[str, int] | None:
    """Encoding of a stream and length of its BOM; None while `head` is too short to tell.

    The answer rests on the bytes up to the first newline (or `PROBE_BYTES`), so that it does not
    depend on how a stream arrives.
    """
    if len(head) < 4 and not final:
        return None
    for bom, encoding in _BOMS:
        if head.startswith(bom):
            return encoding, len(bom)
    newline = head.find(b"\n", _PROBE_LEAST, PROBE_BYTES)
    if newline < 0 and len(head) < PROBE_BYTES and not final:
        return None
    probe = head[: newline if newline >= 0 else PROBE_BYTES]
    return guess_utf16(probe) or "utf-8", 0


def guess_utf16(probe: bytes) -> str | None:
    """UTF-16 without a BOM, told by the NULs in every other place of mostly Latin text."""
    pairs = len(probe) // 2
    if pairs < 4:
        return None
    low = probe[0 : 2 * pairs : 2].count(0)
    high = probe[1 : 2 * pairs : 2].count(0)
    if high >= 0.7 * pairs and low <= 0.1 * pairs:
        return "utf-16-le"
    if low >= 0.7 * pairs and high <= 0.1 * pairs:
        return "utf-16-be"
    return None
