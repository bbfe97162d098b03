"""How much weights should take, from what the model is called: parameters times bytes."""

from __future__ import annotations

import re

from forensics.rules.case import Case
from forensics.rules.memory_facts import whole

_PARAMETERS = re.compile(r"(?<![\w.])(?:(\d+)x)?(\d+(?:\.\d+)?)[Bb](?![a-z0-9])")
_BYTES = (
    (re.compile(r"w4|int4|4bit|awq|gptq|fp4|mxfp4|nvfp4", re.I), 0.6),
    (re.compile(r"fp8|int8|w8|8bit", re.I), 1.05),
)


def estimated_weights_gib(case: Case, field: str = "model_path") -> float | None:
    """Weights of one GPU by the model's name and quantisation; None if the name says nothing."""
    launch = case.run.launch
    path = launch.get(field)
    if not isinstance(path, str):
        return None
    name = path.rstrip("/").rsplit("/", 1)[-1].replace("_", "-")
    found = _PARAMETERS.search(name.replace("-", " "))
    if found is None:
        return None
    parameters = float(found[2]) * int(found[1] or 1)
    end = case.run.first("load_weight_end")
    said = f"{name} {launch.get('quantization') or ''} {end.string('quant') if end else ''}"
    per_weight = next((size for pattern, size in _BYTES if pattern.search(said)), 2.05)
    shards = (whole(launch.get("tp_size")) or 1) * (whole(launch.get("pp_size")) or 1)
    return round(parameters * 1e9 * per_weight / 2**30 / shards, 2)
