"""Events as data: newline-delimited JSON, CSV or parquet, in bounded memory.

One row an event. The columns `source` ... `text` come first, then the fields of the kinds; a
field whose name is taken by a column is written as `field_<name>`. Tables have a column for each
field that occurs, so their rows are spooled to a temporary file until all are known.
"""

from __future__ import annotations

import csv
import json
import tempfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TextIO

from forensics.events import Event
from forensics.views.clean import strip_controls
from forensics.views.json import dumps

COLUMNS = ("source", "line", "time", "run", "rank", "phase", "kind", "text")
"""The columns that every event has."""

_INT64 = 2**63


def row(source: str, event: Event) -> dict[str, Any]:
    """An event as a row; `time` is ISO 8601 text, secrets are still in it."""
    columns: dict[str, Any] = {
        "source": source,
        "line": event.line,
        "time": event.time.isoformat() if event.time else None,
        "run": event.run,
        "rank": event.rank,
        "phase": event.phase,
        "kind": event.kind,
        "text": event.text,
    }
    for name, value in event.fields.items():
        columns[f"field_{name}" if name in columns else name] = value
    return columns


def write_ndjson(rows: Iterable[dict[str, Any]], out: TextIO) -> int:
    """One JSON object a line; returns the number of rows."""
    written = 0
    for written, data in enumerate(rows, start=1):  # noqa: B007 - the count is the result
        out.write(dumps(data) + "\n")
    return written


def write_csv(rows: Iterable[dict[str, Any]], out: TextIO) -> int:
    """Comma-separated, a header first, lists as JSON text; returns the number of rows."""
    with Spool(rows) as spool:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(spool.types)
        for data in spool.read():
            writer.writerow([_cell(data.get(name)) for name in spool.types])
        return spool.rows


def write_parquet(rows: Iterable[dict[str, Any]], path: Path) -> int:
    """A parquet file; lists as lists, objects as JSON text; returns the number of rows."""
    import polars as pl

    kinds = {
        "int": pl.Int64(),
        "float": pl.Float64(),
        "bool": pl.Boolean(),
        "ints": pl.List(pl.Int64),
        "texts": pl.List(pl.String),
    }
    with Spool(rows) as spool:
        schema = {name: kinds.get(kind, pl.String()) for name, kind in spool.types.items()}
        if not spool.rows:
            pl.DataFrame(schema=schema).write_parquet(path)
            return 0
        frame = pl.scan_ndjson(spool.typed(), schema=schema)
        zone = "UTC" if spool.zoned else None
        time = pl.col("time").str.to_datetime(
            "%Y-%m-%dT%H:%M:%S%.f%:z" if zone else "%Y-%m-%dT%H:%M:%S%.f",
            time_unit="us",
            time_zone=zone,
        )
        frame.with_columns(time).sink_parquet(path)
        return spool.rows


class Spool:
    """Rows in a temporary file, and the type of every column that occurred in them."""

    def __init__(self, rows: Iterable[dict[str, Any]]) -> None:
        self.types = dict.fromkeys(COLUMNS, "text") | {"line": "int", "run": "int"}
        self.rows = 0
        self.zoned = False
        """A time with a zone occurred; all times are then UTC, those without taken as UTC."""
        self._folder = tempfile.TemporaryDirectory(prefix="forensics-")
        self._path = Path(self._folder.name) / "rows.ndjson"
        with self._path.open("w", encoding="utf-8") as out:
            for data in rows:
                self._note(data)
                out.write(dumps(data) + "\n")

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def read(self) -> Iterator[dict[str, Any]]:
        """The rows again, as they were spooled."""
        with self._path.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)

    def typed(self) -> Path:
        """A file of the rows in which every value has the type of its column."""
        path = self._path.with_name("typed.ndjson")
        with path.open("w", encoding="utf-8") as out:
            for data in self.read():
                known = {name: value for name, value in data.items() if name in self.types}
                typed = {name: _typed(value, self.types[name]) for name, value in known.items()}
                if typed["time"] and self.zoned:
                    typed["time"] = _utc(typed["time"])
                out.write(json.dumps(typed, ensure_ascii=False) + "\n")
        return path

    def _note(self, data: dict[str, Any]) -> None:
        self.rows += 1
        if data["time"] and datetime.fromisoformat(data["time"]).tzinfo:
            self.zoned = True
        for name, value in data.items():
            if name not in COLUMNS and value is not None:
                kind = _kind(value)
                self.types[name] = _common(self.types.get(name, kind), kind)


def _kind(value: Any) -> str:
    """The column type of one value: int, float, bool, ints, texts or text."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if abs(value) < _INT64 else "text"
    if isinstance(value, float):
        return "float"
    if isinstance(value, list):
        if all(isinstance(item, int) and abs(item) < _INT64 for item in value):
            return "ints"
        return "texts"
    return "text"


def _common(one: str, two: str) -> str:
    """The narrowest type that holds both."""
    if one == two:
        return one
    both = {one, two}
    if both == {"int", "float"}:
        return "float"
    return "texts" if both == {"ints", "texts"} else "text"


def _typed(value: Any, kind: str) -> Any:
    if value is None:
        return None
    if kind == "float":
        return float(value)
    if kind == "texts":
        return [str(item) for item in value]
    if kind == "text":
        cell = _cell(value)
        return cell if isinstance(cell, str) else str(cell)
    return value


def _cell(value: Any) -> Any:
    """A value as text of a table: lists and objects as JSON, truth values in lower case."""
    if isinstance(value, list | dict | bool):
        return json.dumps(value, ensure_ascii=False)
    return strip_controls(value) if isinstance(value, str) else value


def _utc(text: str) -> str:
    time = datetime.fromisoformat(text)
    aware = time if time.tzinfo else time.replace(tzinfo=UTC)
    return aware.astimezone(UTC).isoformat(timespec="microseconds")
