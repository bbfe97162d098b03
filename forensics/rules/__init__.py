"""Opinions: what the facts of a run mean. One module per family of rules."""

from forensics.rules.base import Rule, Settings, Skip, registry
from forensics.rules.case import Case

__all__ = ["Case", "Rule", "Settings", "Skip", "registry"]
