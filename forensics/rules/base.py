"""What a rule is, and the registry of all rules.

A rule is a pure function from a case (one run with its incident) to findings. It yields a `Skip`
when it could not judge, with the reason. Rules of other packages register through the entry point
group `forensics.rules`: each names a module whose rules are then registered like our own.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from forensics.findings import Finding, Role, Severity
from forensics.resources import playbook_dir
from forensics.rules.case import Case
from forensics.rules.thresholds import declared, forget

GROUP = "forensics.rules"
PACKAGE = "forensics"

# How strongly a root-cause candidate explains a failure. The strongest wins, then the earliest.
QUIET_CAUSE = 90
"""A quiet cause from which everything after it follows (a wrong load path, a kernel kill)."""
FAILURE = 60
"""A failure whose own text names what broke."""
DEGRADED = 40
"""The server lives, but answers badly."""
CONSEQUENCE = 30
"""Loud, and usually somebody else's fault: time-outs, closed connections, a killed child."""
UNEXPLAINED = 10
"""A failure that no rule knows."""


@dataclass(frozen=True, slots=True)
class Skip:
    """A rule could not judge; `because` completes "skipped: ..."."""

    because: str


Check = Callable[[Case], Iterator[Finding | Skip]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: a stable id, what it looks for, and the check."""

    id: str
    class_: str
    severity: Severity
    role: Role
    summary: str
    needs: str
    check: Check
    playbook: str
    package: str = PACKAGE
    """Where its module is; the playbooks of another package lie beside that module."""
    parent: str | None = None
    """For an id under which another rule's check publishes too: the id of that rule."""


@dataclass(slots=True)
class Settings:
    """What a user or a site may set."""

    model_config: Path | None = None
    """The model's `config.json`, for what the log does not say."""
    select: frozenset[str] = frozenset()
    """Rule ids to run; empty: all."""
    ignore: frozenset[str] = frozenset()
    severity: dict[str, Severity] = field(default_factory=dict)
    """Rule id to the severity its findings get."""
    thresholds: dict[str, float] = field(default_factory=dict)
    """Name of a threshold to its value, where it differs from the default."""

    def wants(self, id: str) -> bool:
        """Whether findings of a rule id are wanted."""
        return id not in self.ignore and (not self.select or id in self.select)


_RULES: dict[str, Rule] = {}
_NOT_LOADED: list[str] = []

FAMILIES = (
    "headroom",
    "capture",
    "pool",
    "state_pool",
    "weights",
    "serving_memory",
    "comm",
    "other_processes",
    "reserve",
    "retraction",
    "kv_slots",
    "kv",
    "host_memory",
    "host_refused",
    "host_leak",
    "gpu_growth",
    "workspace",
    "numerics",
    "device_assert",
    "models",
    "arguments",
    "storage",
    "split",
    "context_length",
    "code_mismatch",
    "relaunch",
    "sparse_attention",
    "network",
    "addresses",
    "rendezvous",
    "peers",
    "ports",
    "hang",
    "slow_start",
    "watchdogs",
    "patience",
    "hardware",
    "kills",
    "disaggregation",
    "signature_rules",
    "coverage",
    "unknown",
)
"""Modules of this package that hold rules, in the order in which they are listed."""


def rule(
    id: str,
    *,
    class_: str,
    summary: str,
    needs: str,
    severity: Severity = "critical",
    role: Role = "root_cause",
    playbook: str | None = None,
    names: Mapping[str, tuple[str, str]] | None = None,
) -> Callable[[Check], Check]:
    """Register a check as a rule.

    `names` are further ids under which the check publishes, each with its class and summary.
    """

    def register(check: Check) -> Check:
        package = getattr(sys.modules.get(check.__module__), "__package__", None) or PACKAGE
        page = playbook or id
        add_rule(Rule(id, class_, severity, role, summary, needs, check, page, package))
        for name, (its_class, its_summary) in (names or {}).items():
            add_rule(
                Rule(
                    name,
                    its_class,
                    severity,
                    role,
                    its_summary,
                    needs,
                    check,
                    page_of(name, page),
                    package,
                    parent=id,
                )
            )
        return check

    return register


def page_of(id: str, otherwise: str) -> str:
    """The playbook of a rule id if there is one of its name, else another."""
    return id if (playbook_dir() / f"{id}.md").is_file() else otherwise


def add_rule(new: Rule) -> None:
    """Register a rule.

    Raises:
        ValueError: its id is taken.
    """
    if new.id in _RULES:
        raise ValueError(f"rule id {new.id} is taken")
    _RULES[new.id] = new


@cache
def registry() -> tuple[Rule, ...]:
    """Every rule: our own by family, then those of other packages."""
    for family in FAMILIES:
        importlib.import_module(f"forensics.rules.{family}")
    for entry in entry_points(group=GROUP):
        if problem := _load(entry):
            _NOT_LOADED.append(problem)
    return tuple(_RULES.values())


def rules_not_loaded() -> tuple[str, ...]:
    """What went wrong with rules of other packages, one line each; a broken one stops nothing."""
    return tuple(_NOT_LOADED)


def _load(entry: EntryPoint) -> str | None:
    """Import a package's rules; all of them or, with the reason, none."""
    rules, thresholds = set(_RULES), set(declared())
    try:
        entry.load()
    except (Exception, SystemExit) as error:  # somebody else's code: anything can happen
        for id in set(_RULES) - rules:
            del _RULES[id]
        forget(set(declared()) - thresholds)
        package = f" of {entry.dist.name}" if entry.dist else ""
        said = f"{type(error).__name__}: {error}".split("\n", 1)[0]
        return f"rules {entry.name!r}{package} were not loaded: {said}"
    return None
