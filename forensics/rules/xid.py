"""What NVIDIA's Xid codes mean: a fault of the card or link, or of the program.

Source: NVIDIA's Xid catalogue (docs.nvidia.com/deploy/xid-errors).
"""

from __future__ import annotations

from forensics.events import Event

HARDWARE: dict[int, str] = {
    48: "uncorrectable memory error",
    61: "internal microcontroller fault",
    62: "internal microcontroller fault",
    63: "row remapping recorded",
    64: "row remapping failed",
    74: "NVLink error",
    79: "the GPU has fallen off the bus",
    92: "high rate of corrected memory errors",
    94: "contained memory error",
    95: "uncontained memory error",
    109: "context switch time-out",
    110: "security fault",
    119: "GSP does not answer",
    120: "GSP error",
    140: "unrecovered memory error",
    143: "GPU initialisation failed",
    154: "recovery action needed",
}
"""Codes that point to the card, its memory, its links or its firmware."""


def hardware_fault(event: Event) -> str | None:
    """What is wrong with the card, None if the code points to the program that ran on it."""
    code = event.number("xid")
    return HARDWARE.get(int(code)) if event.kind == "gpu_xid" and code is not None else None
