"""The pydantic class of each kind holds what the kind's rule reads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from forensics import pipeline
from forensics.events import OTHER
from forensics.grammar import Kind, load
from forensics.grammar.models import UNRULED, Row, column, event_model, event_models, events_adapter
from forensics.views.export import COLUMNS, row

KINDS = sorted(load().kinds.values(), key=lambda kind: (kind.file, kind.name))
LOGS = sorted((Path(__file__).parents[2] / "fixtures").rglob("*.log"))
COMMON = {"source": "log.txt", "line": 1, "time": None, "run": 1, "rank": "TP0", "phase": "load"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_example_is_valid(kind: Kind) -> None:
    match = load().match(kind.example)
    assert match is not None
    fields = {column(name): value for name, value in match.fields.items()}
    event = event_model(kind.name).model_validate(
        {**COMMON, "kind": kind.name, "text": kind.example, **fields}, strict=True
    )
    assert {name: getattr(event, name) for name in fields} == fields
    assert event_model(kind.name).__doc__ == kind.example


def test_names_and_columns() -> None:
    models = event_models()
    assert set(models) == {*load().kinds, *UNRULED}
    assert models["load_weight_end"].__name__ == "LoadWeightEnd"
    assert len({model.__name__ for model in models.values()}) == len(models)
    assert tuple(Row.model_fields) == COLUMNS


def test_a_field_named_like_a_column_has_a_column_of_its_own() -> None:
    assert "field_line" in event_model("python_frame").model_fields
    with pytest.raises(KeyError):
        event_model("no_such_kind")


def test_fields_are_typed_and_known() -> None:
    data = {**COMMON, "kind": OTHER, "text": "x"}
    events_adapter().validate_python(data)
    for wrong in ({"kind": "no_such_kind"}, {"avail_gib": 1.0}, {"line": 0}):
        with pytest.raises(ValidationError):
            events_adapter().validate_python({**data, **wrong})


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_rows_of_a_log_are_valid(log: Path) -> None:
    read = events_adapter()
    for source, event in pipeline.events([str(log)]):
        read.validate_python(row(source.path, event))


def test_reading_a_log_builds_none() -> None:
    code = "import sys, forensics.pipeline; print('forensics.grammar.models' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
