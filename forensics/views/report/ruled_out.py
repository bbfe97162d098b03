"""What is not the cause: echoes, what stands beside it, kinds of causes looked for in vain."""

from __future__ import annotations

from forensics.diagnosis import RunReport
from forensics.findings import Finding
from forensics.views.clean import one_line
from forensics.views.words import Places, sentence

_MEMORY = (
    "graph_capture_oom",
    "piecewise_graph_oom",
    "mem_fraction_too_low",
    "weights_do_not_fit",
    "load_peak_oom",
    "draft_model_oom",
    "activation_oom",
    "comm_buffer_oom",
    "lora_buffers_oom",
    "state_cache_oom",
    "workspace_overflow",
    "workspace_oom",
    "kv_capacity_exhausted",
    "kv_pool_undersized",
    "kv_accounting_bug",
    "gpu_memory_leak",
    "host_memory_leak",
    "rank_memory_imbalance",
    "other_process_on_gpu",
    "host_ram_oom",
    "host_ram_insufficient",
)
"""Classes of causes that are about memory."""

_OF_MACHINES = ("gpu_hardware", "external_kill", "collective_hang", "checkpoint_io")
"""What people suspect whatever the failure."""


def ruled_out(report: RunReport, main: Finding | None, places: Places) -> list[str]:
    """What is not the cause, each with its reason."""
    if main is None:
        return []
    said = []
    for finding in report.findings:
        if finding is main or finding.role not in ("consequence", "context"):
            continue
        where = places.at(finding.first)
        why = (
            "it came with the failure or after it, and follows from it"
            if finding.role == "consequence"
            else "it stands in the log, and this failure is explained without it"
        )
        said.append(f"{sentence(finding.title).rstrip('.')} ({where}): {why}.")
    if report.root_cause is main:
        said += _not_found(report, main)
    return [one_line(text) for text in said]


def _not_found(report: RunReport, main: Finding) -> list[str]:
    """The kinds of causes that a rule looked for and did not find."""
    from forensics.rules import registry

    found = {finding.class_ for finding in report.findings}
    skipped = {skip.rule for skip in report.skipped}
    judged = {
        rule.class_
        for rule in registry()
        if rule.severity == "critical" and rule.id not in skipped and rule.class_ not in found
    }
    wanted = [*(_MEMORY if main.class_ in _MEMORY else ()), *_OF_MACHINES]
    names = [name for name in wanted if name in judged]
    if not names:
        return []
    listed = ", ".join(names)
    return [f"Looked for and not found ({len(names)} kinds of causes): {listed}."]
