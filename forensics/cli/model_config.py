"""The model's `config.json`: as given, else beside the model that a launch names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forensics.memory.model_shape import ShapeError


def read_config(path: Path | None, model_path: object) -> dict[str, Any]:
    """The configuration. Raises ShapeError where there is none, or no JSON object; OSError."""
    import json

    if path is None:
        named = Path(model_path) / "config.json" if isinstance(model_path, str) else None
        if named is None or not named.is_file():
            raise ShapeError("the model's shape is needed: --model-config FILE (its config.json)")
        path = named
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise ShapeError(f"{path}: not JSON") from None
    if not isinstance(found, dict):
        raise ShapeError(f"{path}: no JSON object")
    return found
