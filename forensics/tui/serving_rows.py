"""The serving rows of a run, summed into as many columns as a chart has."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from forensics.incident import Run

if TYPE_CHECKING:
    import polars as pl

_BATCHES = ("decode", "prefill")


class Quantity(NamedTuple):
    """Something that is drawn over time, and where the rows have it."""

    name: str
    column: str
    lane: str | None = None
    """The lane that tells it; None for both kinds of batches."""
    rate: bool = False
    """Its mean counts; of anything else the rows hold the largest values only."""


QUANTITIES = (
    Quantity("token usage", "usage"),
    Quantity("running", "running"),
    Quantity("queued", "queue"),
    Quantity("decode tokens/s", "tps", "decode", rate=True),
    Quantity("prefill tokens/s", "tps", "prefill", rate=True),
)


@dataclass(frozen=True, slots=True)
class Series:
    """One quantity of one rank over time."""

    quantity: Quantity
    values: tuple[float | None, ...]
    peak: float
    peak_line: int
    mean: float | None
    """Of rates."""


@dataclass(frozen=True, slots=True)
class RankLoad:
    """What one rank served."""

    source: int
    rank: str | None
    series: tuple[Series, ...]
    retracted: tuple[int, ...]
    """Requests put back, by column."""
    retract_line: int | None
    """The first line that says so."""


@dataclass(frozen=True, slots=True)
class Load:
    """What a run served, in columns of equal length."""

    begin: datetime
    end: datetime
    column_s: float
    ranks: tuple[RankLoad, ...]
    lines: dict[str, int]
    """Lines by lane: decode, prefill, access, health, retract."""
    prefilled: int
    """Tokens that were prefilled."""
    without_graph: int
    """Batch lines that ran without CUDA graph."""

    @property
    def retracted(self) -> int:
        """Requests that were put back into the queue."""
        return sum(sum(rank.retracted) for rank in self.ranks)


def load_of(run: Run, columns: int) -> Load | None:
    """The load of a run in so many columns; None if it has no batch line with a time."""
    import polars as pl

    if run.serving is None:
        return None
    rows = run.serving.filter(pl.col("time").is_not_null())
    served = rows.filter(pl.col("lane").is_in([*_BATCHES, "retract"]))
    begin, end = served["time"].min(), served["time"].max()
    if not isinstance(begin, datetime) or not isinstance(end, datetime):
        return None
    if not served["lane"].is_in(_BATCHES).any():
        return None
    column_s = max((end - begin).total_seconds(), 1.0) / max(columns - 1, 1)
    at = ((pl.col("time") - begin).dt.total_microseconds() / 1e6 / column_s).floor()
    served = served.with_columns(at.cast(pl.Int64).clip(0, columns - 1).alias("at"))
    counts = dict(rows.group_by("lane").agg(pl.col("n").sum()).iter_rows())
    tokens, without = int(rows["new_tokens"].sum() or 0), int(rows["graph_off"].sum() or 0)
    return Load(begin, end, column_s, _ranks(served, columns), counts, tokens, without)


def _ranks(served: pl.DataFrame, columns: int) -> tuple[RankLoad, ...]:
    """Every rank at once: one pass over the rows for the columns, one for the totals."""
    import polars as pl

    values = served.group_by("source", "rank", "at").agg(*map(_value, QUANTITIES), _put_back())
    totals = served.group_by("source", "rank").agg(
        *(part for quantity in QUANTITIES for part in _totals(quantity)),
        pl.col("line").filter(pl.col("lane") == "retract").min().alias("retract line"),
    )
    by_rank: dict[tuple[int, str | None], list[dict[str, Any]]] = {}
    for row in values.iter_rows(named=True):
        by_rank.setdefault((row["source"], row["rank"]), []).append(row)
    found = [
        _rank(total, by_rank[total["source"], total["rank"]], columns)
        for total in totals.iter_rows(named=True)
    ]
    return tuple(sorted(found, key=_order))


def _rank(total: dict[str, Any], rows: list[dict[str, Any]], columns: int) -> RankLoad:
    series = []
    for quantity in QUANTITIES:
        if total[f"{quantity.name} peak"] is None:
            continue
        values: list[float | None] = [None] * columns
        for row in rows:
            values[row["at"]] = row[quantity.name]
        series.append(
            Series(
                quantity,
                tuple(values),
                float(total[f"{quantity.name} peak"]),
                int(total[f"{quantity.name} line"]),
                total[f"{quantity.name} mean"] if quantity.rate else None,
            )
        )
    put_back = [0] * columns
    for row in rows:
        put_back[row["at"]] = int(row["retracted"])
    line = total["retract line"]
    return RankLoad(total["source"], total["rank"], tuple(series), tuple(put_back), line)


def _told(quantity: Quantity) -> pl.Expr:
    """The rows that tell a quantity."""
    import polars as pl

    batch = pl.col("lane").is_in(_BATCHES)
    lane = batch if quantity.lane is None else pl.col("lane") == quantity.lane
    return lane & pl.col(quantity.column).is_not_null()


def _value(quantity: Quantity) -> pl.Expr:
    import polars as pl

    if quantity.rate:
        return _mean(quantity).alias(quantity.name)
    value = pl.col(quantity.column).filter(_told(quantity))
    return value.max().cast(pl.Float64).alias(quantity.name)


def _mean(quantity: Quantity) -> pl.Expr:
    import polars as pl

    told = _told(quantity)
    summed = (pl.col(quantity.column) * pl.col("n")).filter(told).sum()
    lines = pl.col("n").filter(told).sum()
    return pl.when(lines > 0).then(summed / lines)


def _totals(quantity: Quantity) -> list[pl.Expr]:
    import polars as pl

    told = _told(quantity)
    value = pl.col(quantity.column).filter(told)
    line = pl.col("line").filter(told).sort_by(value, descending=True).first()
    parts = [value.max().alias(f"{quantity.name} peak"), line.alias(f"{quantity.name} line")]
    return [*parts, _mean(quantity).alias(f"{quantity.name} mean")] if quantity.rate else parts


def _put_back() -> pl.Expr:
    """Requests put back; a line that does not say how many counts as one."""
    import polars as pl

    count = pl.col("running").fill_null(1).filter(pl.col("lane") == "retract")
    return count.sum().alias("retracted")


def _order(load: RankLoad) -> tuple[int, list[int], str]:
    digits = "".join(c if c.isdigit() else " " for c in load.rank or "").split()
    return load.source, [int(number) for number in digits], load.rank or ""
