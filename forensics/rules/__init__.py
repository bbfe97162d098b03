"""Opinions: what the facts of a run mean. One module per family of rules."""

from forensics.rules.base import Rule, Settings, Skip, registry, rule, rules_not_loaded
from forensics.rules.case import Case
from forensics.rules.thresholds import Threshold, declared, threshold

__all__ = [
    "Case",
    "Rule",
    "Settings",
    "Skip",
    "Threshold",
    "declared",
    "registry",
    "rule",
    "rules_not_loaded",
    "threshold",
]
