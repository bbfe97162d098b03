"""Writes `playbooks/README.md`: every playbook with the rules that lead to it, by kind of cause.

    python scripts/make_playbook_index.py

`tests/playbooks/test_index.py` fails where the page is not what this writes.
"""

from __future__ import annotations

from pathlib import Path

from forensics.resources import playbook, playbook_names
from forensics.rules import registry
from forensics.views.report.playbook import parse

PAGE = Path(__file__).resolve().parent.parent / "playbooks" / "README.md"

HEAD = """\
# Playbooks

What each finding means, how to confirm it, how to fix it, what does not help, and what lies behind
it. `forensics explain RULE` prints the page of a rule; `forensics report` fills it with the numbers
of an incident. This page is written by `scripts/make_playbook_index.py`.
"""

MEMORY = "Memory"
KINDS = {
    MEMORY: ("_oom", "memory", "weights_do_not_fit", "kv_", "workspace_overflow", "other_process"),
    "Kernels, GPUs and numbers": ("kernel_", "numerics_", "gpu_hardware", "jit_", "custom_all"),
    "Model, checkpoint and versions": ("model_", "weight_", "quant_", "version_", "checkpoint_"),
    "Ranks, network and time": (
        "collective",
        "slow_start",
        "network",
        "rendezvous",
        "port_",
        "pd_",
    ),
}
"""Headings, and what the classes below them have in their names; the first that fits decides."""

REST = "Everything else"
NOT_MEMORY = ("not_memory", "kv_dtype_unsupported")
"""Classes whose names only sound like it; those of kernels are told by their first word."""


def page() -> str:
    """The text of the index."""
    rows: dict[str, list[str]] = {kind: [] for kind in (*KINDS, REST)}
    for name in playbook_names():
        rules = [rule for rule in registry() if rule.playbook == name]
        title = parse(name, playbook(name) or "").title
        listed = ", ".join(f"`{rule.id}`" for rule in rules) or "found by no rule of its own"
        rows[kind_of(rules[0].class_ if rules else "")].append(
            f"| [{name}]({name}.md) | {title} | {listed} |"
        )
    parts = [HEAD]
    for kind, lines in rows.items():
        table = ["| playbook | about | rules |", "| --- | --- | --- |", *lines]
        parts.append(f"## {kind}\n\n" + "\n".join(table) + "\n")
    return "\n".join(parts)


def kind_of(class_: str) -> str:
    """The heading of a class."""
    for kind, marks in KINDS.items():
        looks_like_memory = class_ in NOT_MEMORY or class_.startswith("kernel_")
        if kind == MEMORY and looks_like_memory:
            continue
        if any(mark in class_ for mark in marks):
            return kind
    return REST


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
