"""A model's `config.json`: read safely, since what a log names may be anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from forensics.memory.model_shape import ShapeError


def read_config(path: Path) -> dict[str, Any]:
    """The configuration in a file. Raises ShapeError if it is no JSON object; OSError."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise ShapeError(f"{path}: not JSON") from None
    if not isinstance(found, dict):
        raise ShapeError(f"{path}: no JSON object")
    return found


def config_beside(model_path: object) -> dict[str, Any]:
    """The configuration of a model whose logged path is here too; empty if there is none."""
    if not isinstance(model_path, str) or not model_path.startswith("/"):
        return {}
    path = Path(model_path) / "config.json"
    try:
        return read_config(path) if path.is_file() else {}
    except (OSError, ValueError, ShapeError):  # ValueError: a null byte in the path
        return {}
