"""Routine serving lines as rows: one per line at first, summed up when there are too many.

A day of serving is millions of lines that say the same. They are kept as rows of `BUCKETS`, first
one per second, rank and lane; when rows grow beyond a limit they are summed over ever longer
spans, so that memory stays bounded whatever the length of the log.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from forensics.events import Event

BUCKETS: dict[str, pl.DataType] = {
    "source": pl.Int32(),
    "run": pl.Int32(),
    "lane": pl.String(),
    "rank": pl.String(),
    "time": pl.Datetime("us"),
    "line": pl.Int64(),
    "n": pl.Int64(),
    "running": pl.Int64(),
    "running_min": pl.Int64(),
    "queue": pl.Int64(),
    "usage": pl.Float64(),
    "tps": pl.Float64(),
    "tps_min": pl.Float64(),
    "new_tokens": pl.Int64(),
    "new_tokens_max": pl.Int64(),
    "graph_off": pl.Int64(),
    "accept_len": pl.Float64(),
}
"""Columns of serving rows.

`lane` is `decode`, `prefill`, `access`, `health` or `retract` (there `running` is how many
requests were put back); `line` is the first line summed up, `n` how many.
`running`, `queue`, `usage` (largest of the pools' usages, 0 to 1) and `new_tokens_max` are maxima,
`running_min` and `tps_min` minima, `tps` and `accept_len` means, `new_tokens` and `graph_off`
(lines that ran without CUDA graph) sums.
"""

PROBES = ("/health", "/ping", "/ready", "/live")
"""Paths of probes begin with one of these."""

LIMIT = 60_000
"""Rows that are kept at most; above it the spans are made ten times longer."""

_USAGES = ("token_usage", "full_token_usage", "swa_token_usage", "mamba_usage")
_SPANS_S = (1, 10, 60, 600, 3600, 36_000)


def empty() -> pl.DataFrame:
    """No rows, with the columns of `BUCKETS`."""
    return pl.DataFrame(schema=BUCKETS)


def complete(rows: pl.LazyFrame) -> pl.LazyFrame:
    """Rows with every column of `BUCKETS`, in order; what is missing is null."""
    present = rows.collect_schema().names()
    return rows.select(
        (pl.col(name) if name in present else pl.lit(None)).cast(kind).alias(name)
        for name, kind in BUCKETS.items()
    )


WANTED = frozenset(
    {*_USAGES, "running_reqs", "queue_reqs", "gen_tps", "input_tps", "new_tokens", "cuda_graph"}
    | {"accept_len"}
)
"""Fields of batch lines that rows are made of; the others need not be read as numbers."""


def aggregate(typed: pl.LazyFrame, kind: str, span_s: int = 1) -> pl.LazyFrame:
    """Rows per span and rank from the typed columns of batch lines (fields of the grammar).

    Only columns that are there are summed: an empty one would cost as much as a full one.
    """
    names = set(typed.collect_schema().names())
    usages = [pl.col(name) for name in _USAGES if name in names]
    rate = "gen_tps" if kind == "decode_batch" else "input_tps"
    wanted = {"line": pl.col("line").min(), "n": pl.len().cast(pl.Int64)}
    if "running_reqs" in names:
        wanted["running"] = pl.col("running_reqs").max()
        wanted["running_min"] = pl.col("running_reqs").min()
    if "queue_reqs" in names:
        wanted["queue"] = pl.col("queue_reqs").max()
    if usages:
        wanted["usage"] = (usages[0] if len(usages) == 1 else pl.max_horizontal(usages)).max()
    if rate in names:
        wanted["tps"], wanted["tps_min"] = pl.col(rate).mean(), pl.col(rate).min()
    if "new_tokens" in names:
        wanted["new_tokens"] = pl.col("new_tokens").sum()
        wanted["new_tokens_max"] = pl.col("new_tokens").max()
    if "cuda_graph" in names:
        wanted["graph_off"] = (~pl.col("cuda_graph")).sum()
    if "accept_len" in names:
        wanted["accept_len"] = pl.col("accept_len").mean()
    if span_s > 1:
        typed = typed.with_columns(pl.col("time").dt.truncate(f"{span_s}s"))
    summed = typed.group_by("time", "rank", maintain_order=True).agg(
        expression.alias(name) for name, expression in wanted.items()
    )
    lane = "decode" if kind == "decode_batch" else "prefill"
    rank = pl.when(pl.col("rank") == "").then(None).otherwise(pl.col("rank"))
    return complete(summed.with_columns(pl.lit(lane).alias("lane"), rank.alias("rank")))


def from_events(events: Sequence[Event]) -> pl.DataFrame:
    """Rows from events of the rare lane, with their source and run."""
    lanes = [_lane(event) for event in events]
    columns: dict[str, list[Any]] = {
        "source": [event.source for event in events],
        "run": [event.run for event in events],
        "rank": [event.rank for event in events],
        "time": [event.time for event in events],
        "line": [event.line for event in events],
        "n": [1] * len(events),
    }
    for name in BUCKETS.keys() - columns.keys():
        columns[name] = [lane.get(name) for lane in lanes]
    return pl.DataFrame({name: columns[name] for name in BUCKETS}, schema=BUCKETS)


def _lane(event: Event) -> dict[str, object]:
    if event.kind == "http_access":
        return _access(event)
    if event.kind in ("decode_batch", "prefill_batch"):
        return _batch(event)
    return {"lane": "retract", "running": event.fields.get("retracted_reqs")}


def _access(event: Event) -> dict[str, object]:
    path = event.string("path")
    return {"lane": "health" if path.startswith(PROBES) else "access"}


def _batch(event: Event) -> dict[str, object]:
    decode = event.kind == "decode_batch"
    usages = [u for name in _USAGES if (u := event.number(name)) is not None]
    rate = event.number("gen_tps" if decode else "input_tps")
    fields = event.fields
    graph = fields.get("cuda_graph")
    return {
        "lane": "decode" if decode else "prefill",
        "running": fields.get("running_reqs"),
        "running_min": fields.get("running_reqs"),
        "queue": fields.get("queue_reqs"),
        "usage": max(usages, default=None),
        "tps": rate,
        "tps_min": rate,
        "new_tokens": fields.get("new_tokens"),
        "new_tokens_max": fields.get("new_tokens"),
        "graph_off": None if graph is None else int(graph is False),
        "accept_len": event.number("accept_len"),
    }


def bounded(rows: pl.DataFrame, span_s: int = 0, limit: int = LIMIT) -> tuple[pl.DataFrame, int]:
    """The rows, summed over longer spans until they are fewer than the limit, and the span.

    `span_s` is the span over which the older ones are summed already; 0 if none are.
    """
    for span in _SPANS_S:
        if rows.height <= limit:
            break
        if span >= span_s:  # newer rows may be single lines still
            rows, span_s = _widen(rows, span), span
    return rows, span_s


def _widen(rows: pl.DataFrame, span_s: int) -> pl.DataFrame:
    weighted = [
        (pl.col(name) * pl.col("n")).sum() / pl.col("n").filter(pl.col(name).is_not_null()).sum()
        for name in ("tps", "accept_len")
    ]
    maxima = [pl.col(name).max() for name in ("running", "queue", "usage", "new_tokens_max")]
    return (
        rows.lazy()
        .with_columns(pl.col("time").dt.truncate(f"{span_s}s"))
        .group_by("source", "run", "lane", "rank", "time", maintain_order=True)
        .agg(
            pl.col("line").min(),
            *maxima,
            *weighted,
            pl.col("running_min").min(),
            pl.col("tps_min").min(),
            pl.col("n").sum(),
            pl.col("new_tokens").sum(),
            pl.col("graph_off").sum(),
        )
        .select(BUCKETS.keys())
        .collect()
    )
