"""The arithmetic of GPU memory: the ledger, capture need and fractions. Pure, in GiB."""

from forensics.memory.ledger import Capture, ClosingCheck, Ledger

__all__ = ["Capture", "ClosingCheck", "Ledger"]
