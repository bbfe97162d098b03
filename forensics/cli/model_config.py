"""The model's `config.json`: as given, else beside the model that a launch names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from forensics.memory.model_config import read_config
from forensics.memory.model_shape import ShapeError


def config_of(path: Path | None, model_path: object) -> dict[str, Any]:
    """The configuration. Raises ShapeError where there is none, or no JSON object; OSError."""
    if path is None:
        named = Path(model_path) / "config.json" if isinstance(model_path, str) else None
        if named is None or not named.is_file():
            raise ShapeError("the model's shape is needed: --model-config FILE (its config.json)")
        path = named
    return read_config(path)
