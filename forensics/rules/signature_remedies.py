"""Conditions on a launch, and remedies, of rules that are data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from forensics.findings import Remedy
from forensics.launch import Launch
from forensics.remedies import flag, kept
from forensics.rules.case import Case
from forensics.rules.pins import kernel_package, maybe_below, pinned_for
from forensics.rules.signature_data import RemedyData


class Words(dict[str, Any]):
    """Fields for a text; one that the record lacks reads as an ellipsis."""

    def __missing__(self, key: str) -> str:
        return "…"


def pins(case: Case) -> dict[str, str]:
    """What the launch's release pins, as words for remedies: `pin_torch`, ..."""
    launch = case.run.launch
    packages = {
        "torch": "torch",
        "transformers": "transformers",
        "sgl_kernel": "sgl-kernel",
        "flashinfer": "flashinfer-python",
        "deep_gemm": "sgl-deep-gemm",
        "xgrammar": "xgrammar",
    }
    found = {f"pin_{word}": pinned_for(launch, package) for word, package in packages.items()}
    if case.run.counts["transformers_rope_notice"]:
        found["pin_transformers"] = "==4.57.1"  # what the releases that print it pin
    return {**found, "kernel_package": kernel_package(launch)}


def remedies_of(launch: Launch, wanted: list[RemedyData], words: Mapping[str, Any]) -> list[Remedy]:
    """The remedies that apply to a launch."""
    return kept(*(_remedy(launch, data, words) for data in wanted))


def _remedy(launch: Launch, data: RemedyData, words: Mapping[str, Any]) -> Remedy | None:
    if not flags_match(launch, data.flags) or any_matches(launch, data.unless_flags):
        return None
    if data.below and not maybe_below(launch, data.below):
        return None
    to = data.to.format_map(Words(words)) if isinstance(data.to, str) else data.to
    if data.only_if_known and isinstance(to, str) and to.startswith("<"):
        return None
    if data.kind == "flag":
        return flag(
            launch,
            data.name,
            to,
            data.reason.format_map(Words(words)),
            direction=data.direction,
            basis=data.basis,
            cost=data.cost,
        )
    return Remedy(
        kind=data.kind,
        name=data.name.format_map(Words(words)),
        direction=data.direction or ("do" if data.kind == "action" else "set"),
        to=to,
        reason=data.reason.format_map(Words(words)),
        cost=data.cost,
        basis=data.basis,
    )


def _matches(launch: Launch, name: str, pattern: str) -> bool:
    value = launch.get(name)
    return (
        value is not None
        and value is not False
        and bool(re.search(pattern, str(value), re.IGNORECASE))
    )


def flags_match(launch: Launch, wanted: Mapping[str, str]) -> bool:
    """Whether every flag named is set to a value that its pattern finds."""
    return all(_matches(launch, name, pattern) for name, pattern in wanted.items())


def any_matches(launch: Launch, unwanted: Mapping[str, str]) -> bool:
    """Whether one of the flags named is set to a value that its pattern finds."""
    return any(_matches(launch, name, pattern) for name, pattern in unwanted.items())
