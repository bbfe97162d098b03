"""Whether two failures are the same one, and what a trial's failure is called.

Two failures are the same if class and stage are. The rule does not matter: a capture that runs
out of memory is told by SGLang's own wrapper, by a bare `OutOfMemoryError` before the first graph,
or while the runner's buffers are allocated, as the free memory happens to be (0.5.16 on an H200:
wrapped at 1.05 GiB, bare at 0.80), and the same flag cures all three. Nor does the rank: which one
fails first is chance. An OOM while the KV pool is allocated is another failure than one in
capture, though a lower fraction cures both: the launch came less far. Classes that gather what
fits no other one (`unknown`, `not_memory`, `version_mismatch`) ask for the same rule, or the same
words.
"""

from __future__ import annotations

import re

from forensics.diagnosis import RunReport
from forensics.findings import Finding
from forensics.redact import redact
from forensics.reproduce.model import Failure

_STAGES = (
    frozenset({"init", "load"}),
    frozenset({"kv_pool"}),
    frozenset({"graph_capture"}),
    frozenset({"warmup", "serving", "shutdown"}),
)
"""Phases in which the same shortage of memory is the same failure: the warm-up's request is the
first that is served."""

_STARTING = frozenset({"init", "load", "kv_pool", "graph_capture"})
_CATCH_ALL = frozenset({"unknown", "not_memory", "version_mismatch", "none"})
_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?")


def failure_of(report: RunReport) -> Failure | None:
    """The failure that a launch came to, None where nothing is wrong."""
    root = report.root_cause
    return None if root is None else named(root, report.run.phase)


def named(finding: Finding, phase: str) -> Failure:
    """A finding as a failure; `phase` is the run's, where the finding names none."""
    place = finding.first
    said = [e for e in finding.evidence if (e.source, e.line) == (place.source, place.line)]
    said = said or finding.evidence
    return Failure(
        rule=finding.rule,
        class_=finding.class_,
        phase=finding.phase or phase,
        title=redact(finding.title),
        rank=finding.rank,
        source=place.source,
        line=place.line,
        text=redact(said[0].text) if said else None,
    )


def is_same(one: Failure, other: Failure) -> bool:
    """Whether two failures are the same one (see above)."""
    if one.class_ != other.class_:
        return False
    if one.class_ in _CATCH_ALL:
        of_rule = one.rule == other.rule and one.class_ not in ("unknown", "none")
        return of_rule or _shape(one) == _shape(other)
    return _stage(one) == _stage(other)


def _stage(failure: Failure) -> object:
    if failure.class_.endswith("_oom") and not failure.class_.startswith("host_"):
        return next((stage for stage in _STAGES if failure.phase in stage), failure.phase)
    return failure.phase in _STARTING or failure.phase == "warmup"


def _shape(failure: Failure) -> str:
    """The words of a failure without its numbers."""
    return _NUMBERS.sub("#", failure.title).strip()
