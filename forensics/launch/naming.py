"""A change in the words of another release: fields that were renamed or merged into others.

Facts: launch arguments, section 7.
"""

from __future__ import annotations

from forensics.launch.model import Value
from forensics.releases import Release, rename

_MERGED: dict[tuple[str, Value], dict[str, Value]] = {
    ("disable_cuda_graph", True): {
        "cuda_graph_backend_decode": "disabled",
        "cuda_graph_backend_prefill": "disabled",
    },
    ("disable_piecewise_cuda_graph", True): {"cuda_graph_backend_prefill": "disabled"},
    ("enforce_piecewise_cuda_graph", True): {"cuda_graph_backend_prefill": "tc_piecewise"},
    ("enable_breakable_cuda_graph", True): {"cuda_graph_backend_prefill": "breakable"},
    ("cuda_graph_backend_prefill", "disabled"): {"disable_piecewise_cuda_graph": True},
    ("enable_ep_moe", True): {},
    ("enable_deepep_moe", True): {"moe_a2a_backend": "deepep"},
    ("moe_a2a_backend", "deepep"): {"enable_deepep_moe": True},
}


def translate(field: str, value: Value, release: Release) -> dict[str, Value] | None:
    """The fields to set in a release for a change named in any release; None if it has none."""
    name = rename(field, release.version)
    if name is not None and (value is None or release.flag(name) is not None):
        return {name: value}
    key = (field, value if isinstance(value, bool | str) else None)
    merged = _MERGED.get(key)
    if merged and all(release.flag(other) for other in merged):
        choices = {other: release.fields[other].choices for other in merged}
        fits = all(not choices[o] or v in choices[o] for o, v in merged.items())
        return dict(merged) if fits else None
    return None
