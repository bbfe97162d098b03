from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pytest

from forensics.events import Event
from forensics.views import export

TIME = datetime(2026, 2, 18, 23, 53, 22)


def events() -> list[Event]:
    return [
        Event(0, 1, "begin", "Capture, avail mem=0.96 GB", time=TIME, rank="TP1",
              phase="graph_capture", fields={"avail_gib": 0.96}),
        Event(0, 2, "sizes", 'bs "[1, 2]"\nnext', fields={"sizes": [1, 2], "rank": 3, "text": "x"}),
        Event(0, 3, "other", "key hf_abcdefghij \x1b[2J", fields={"avail_gib": 1, "on": True}),
        Event(0, 4, "dump", "server_args", fields={"flags": {"tp_size": 8, "api_key": "zzz"}}),
    ]  # fmt: skip


def rows(of: list[Event] | None = None) -> list[dict[str, object]]:
    return [export.row("log.txt", event) for event in of or events()]


def test_ndjson_has_the_columns_first_and_only_the_fields_of_the_event() -> None:
    out = io.StringIO()
    assert export.write_ndjson(rows(), out) == 4
    first, second, third, fourth = map(json.loads, out.getvalue().splitlines())
    assert list(first) == [*export.COLUMNS, "avail_gib"]
    assert first["time"] == "2026-02-18T23:53:22"
    assert second["sizes"] == [1, 2]
    assert (second["rank"], second["field_rank"], second["field_text"]) == (None, 3, "x")
    assert "hf_" not in third["text"]
    assert fourth["flags"] == {"tp_size": 8, "api_key": "[redacted]"}
    assert "\x1b" not in out.getvalue()


def test_csv_quotes_newlines_and_writes_lists_as_json() -> None:
    out = io.StringIO()
    assert export.write_csv(rows(), out) == 4
    table = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert list(table[0]) == [*export.COLUMNS, "avail_gib", "sizes", "field_rank", "field_text",
                              "on", "flags"]  # fmt: skip
    assert table[1]["text"] == 'bs "[1, 2]"\nnext'
    assert table[1]["sizes"] == "[1, 2]"
    assert table[0]["sizes"] == ""
    assert table[2]["on"] == "true"
    assert table[2]["text"] == "key [redacted] "
    assert json.loads(table[3]["flags"]) == {"tp_size": 8, "api_key": "[redacted]"}


def test_parquet_has_typed_columns_and_nulls(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    assert export.write_parquet(rows(), path) == 4
    frame = pl.read_parquet(path)
    assert frame["time"].to_list() == [TIME, None, None, None]
    assert frame["avail_gib"].to_list() == [0.96, None, 1.0, None]
    assert frame["sizes"].to_list() == [None, [1, 2], None, None]
    assert frame["on"].to_list() == [None, None, True, None]
    assert frame["line"].dtype == pl.Int64
    assert json.loads(frame["flags"][3]) == {"tp_size": 8, "api_key": "[redacted]"}


def test_parquet_of_nothing_has_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    assert export.write_parquet([], path) == 0
    assert pl.read_parquet(path).columns == list(export.COLUMNS)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2.5], [1.0, 2.5]),
        ([1, "a"], ["1", "a"]),
        ([True, 1], ["true", "1"]),
        ([[1], ["a"]], [["1"], ["a"]]),
        ([[], [1]], [[], [1]]),
        ([[1], 2], ["[1]", "2"]),
        ([2**70, 1], [str(2**70), "1"]),
        ([None, None], None),
    ],
)
def test_a_column_takes_the_narrowest_type_that_holds_its_values(
    values: list[object], expected: list[object] | None, tmp_path: Path
) -> None:
    made = [Event(0, n, "k", "t", fields={"f": v}) for n, v in enumerate(values)]  # type: ignore[dict-item]
    path = tmp_path / "events.parquet"
    export.write_parquet(rows(made), path)
    frame = pl.read_parquet(path)
    assert (frame["f"].to_list() if expected else frame.columns) == (expected or [*export.COLUMNS])


def test_times_with_a_zone_are_utc(tmp_path: Path) -> None:
    zoned = Event(0, 1, "k", "t", time=datetime.fromisoformat("2026-02-18T23:53:22.5+01:00"))
    path = tmp_path / "events.parquet"
    export.write_parquet(rows([zoned, Event(0, 2, "k", "t", time=TIME)]), path)
    expected = [datetime(2026, 2, 18, 22, 53, 22, 500000, UTC), TIME.replace(tzinfo=UTC)]
    assert pl.read_parquet(path)["time"].to_list() == expected
