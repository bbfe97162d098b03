"""Routine serving lines as rows: one per line at first, summed up when there are too many.

A day of serving is millions of lines that say the same. They are kept as rows of `BUCKETS`, first
one per second, rank and lane; when rows grow beyond a limit they are summed over ever longer
spans, so that memory stays bounded whatever the length of the log.
"""

from __future__ import annotations

from collections.abc import Iterable

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


def aggregate(typed: pl.LazyFrame, kind: str) -> pl.LazyFrame:
    """Rows per second and rank from the typed columns of batch lines (fields of the grammar)."""
    names = set(typed.collect_schema().names())

    def column(name: str) -> pl.Expr:
        return pl.col(name) if name in names else pl.lit(None)

    usages = [pl.col(name) for name in _USAGES if name in names]
    rate = "gen_tps" if kind == "decode_batch" else "input_tps"
    rows = typed.select(
        "line",
        "time",
        "rank",
        column("running_reqs").cast(pl.Int64).alias("running"),
        column("queue_reqs").cast(pl.Int64).alias("queue"),
        (pl.max_horizontal(usages) if usages else pl.lit(None)).cast(pl.Float64).alias("usage"),
        column(rate).cast(pl.Float64).alias("tps"),
        column("new_tokens").cast(pl.Int64).alias("new_tokens"),
        (~column("cuda_graph").cast(pl.Boolean)).cast(pl.Int64).alias("graph_off"),
        column("accept_len").cast(pl.Float64).alias("accept_len"),
    )
    summed = rows.group_by("time", "rank", maintain_order=True).agg(
        pl.col("line").min(),
        pl.len().cast(pl.Int64).alias("n"),
        pl.col("running").max(),
        pl.col("running").min().alias("running_min"),
        pl.col("queue").max(),
        pl.col("usage").max(),
        pl.col("tps").mean(),
        pl.col("tps").min().alias("tps_min"),
        pl.col("new_tokens").sum(),
        pl.col("new_tokens").max().alias("new_tokens_max"),
        pl.col("graph_off").sum(),
        pl.col("accept_len").mean(),
    )
    lane = "decode" if kind == "decode_batch" else "prefill"
    return complete(
        summed.with_columns(
            pl.lit(lane).alias("lane"),
            pl.when(pl.col("rank") == "").then(None).otherwise(pl.col("rank")).alias("rank"),
        )
    )


def from_events(events: Iterable[Event]) -> pl.DataFrame:
    """Rows from events of the rare lane, with their source and run."""
    rows: list[dict[str, object]] = []
    for event in events:
        row: dict[str, object] = {
            "source": event.source,
            "run": event.run,
            "rank": event.rank,
            "time": event.time,
            "line": event.line,
            "n": 1,
        }
        rows.append(row | _lane(event))
    return pl.DataFrame(rows, schema=BUCKETS)


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
        "new_tokens": fields.get("new_tokens") or 0,
        "new_tokens_max": fields.get("new_tokens"),
        "graph_off": int(graph is False),
        "accept_len": event.number("accept_len"),
    }


def bounded(rows: pl.DataFrame, limit: int = LIMIT) -> pl.DataFrame:
    """The rows, summed over longer spans until they are fewer than the limit."""
    for span in _SPANS_S:
        if rows.height <= limit:
            break
        rows = _widen(rows, span)
    return rows


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
