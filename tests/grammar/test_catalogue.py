"""Lines of the published releases (`scripts/make_catalogue.py`) are recognised with every value."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from forensics.events import Value
from forensics.grammar import load

FIXTURE = Path(__file__).parents[2] / "fixtures" / "catalogue" / "lines.jsonl"
ROWS = [json.loads(line) for line in FIXTURE.read_text(encoding="utf-8").splitlines()]


def spellings(values: Iterable[Value]) -> tuple[set[str], str]:
    """Field values as a log would spell them: whole values, and the text that quotes others."""
    whole: set[str] = set()
    texts: list[str] = []
    for value in values:
        whole.add(str(value))
        if isinstance(value, str):
            texts.append(value)
        elif isinstance(value, list):
            whole.add("[" + ", ".join(map(str, value)) + "]")
    return whole, " ".join(texts)


def is_held(value: str, whole: set[str], texts: str) -> bool:
    """Whether a filled value stands in some field, numbers whatever their trailing zeros."""
    if value in whole or value in texts:
        return True
    return value.replace(".", "", 1).isdigit() and str(float(value)) in whole


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["example"][:60])
def test_line_is_recognised_with_its_values(row: dict[str, list[str]]) -> None:
    match = load().match(str(row["example"]))
    assert match is not None
    assert load().understands(match.kind), f"{match.kind} only names the subject"
    whole, texts = spellings(match.fields.values())
    assert [value for value in row["values"] if not is_held(value, whole, texts)] == []


def test_catalogue_spans_the_releases() -> None:
    releases = {release for row in ROWS for release in row["releases"]}
    assert {"0.4.1.post7", "0.4.4", "0.5.9", "0.5.16", "0.5.23"} <= releases
    assert len(releases) >= 16
    assert len(ROWS) > 250
