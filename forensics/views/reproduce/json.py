"""A plan or a reproduction as JSON, and the schema of `reproduction.json`."""

from __future__ import annotations

from typing import Any

from forensics.reproduce.model import Reproduction, ReproductionPlan
from forensics.views.json import dumps
from forensics.views.schema import opened


def render(document: Reproduction | ReproductionPlan) -> str:
    """The document as text, without secrets, with a newline at its end."""
    return dumps(document.model_dump(mode="json", by_alias=True), indent=2) + "\n"


def reproduction_schema() -> dict[str, Any]:
    """The JSON Schema of `reproduction.json`; more fields are allowed, since some may be added."""
    schema = Reproduction.model_json_schema(by_alias=True, mode="serialization")
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    found: dict[str, Any] = opened(schema)
    return found
