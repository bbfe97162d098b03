"""Rows of routine serving lines of all sources, bounded whatever the length of the logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

_KINDS = {"decode": "decode_batch", "prefill": "prefill_batch"}


@dataclass(slots=True)
class RowStore:
    """Keeps rows; sums them over longer spans when there are too many."""

    span_s: int = 0
    """The span over which rows are summed by now; new rows may come summed over it."""
    limit: int | None = None
    """Rows that are kept at most; None: `forensics.timeline.serving.LIMIT`."""
    _parts: list[pl.DataFrame] = field(default_factory=list)
    _height: int = 0

    def copy(self) -> RowStore:
        """A store of the same rows that goes its own way."""
        return RowStore(self.span_s, self.limit, list(self._parts), self._height)

    def add(self, rows: pl.DataFrame) -> None:
        """Take rows that know their source and run."""
        from forensics.timeline.serving import LIMIT, bounded

        self._parts.append(rows)
        self._height += rows.height
        limit = self.limit or LIMIT
        if self._height > 2 * limit:
            import polars as pl

            merged, self.span_s = bounded(pl.concat(self._parts), self.span_s, limit)
            self._parts, self._height = [merged], merged.height

    def add_marked(
        self, rows: pl.DataFrame, source: int, starts: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[int, str, int]]:
        """Take rows of a source; gives run, kind and how many lines.

        The run of a row is the last that began before its line.
        """
        import polars as pl

        run: pl.Expr = pl.lit(starts[0][1], pl.Int32)
        for line, number in starts[1:]:
            run = pl.when(pl.col("line") >= line).then(pl.lit(number, pl.Int32)).otherwise(run)
        marked = rows.with_columns(
            pl.lit(source, pl.Int32).alias("source"), run.cast(pl.Int32).alias("run")
        )
        self.add(marked)
        for own, lane, count in marked.group_by("run", "lane").agg(pl.col("n").sum()).iter_rows():
            yield own, _KINDS.get(lane, "http_access"), count

    def of(self, runs: Sequence[tuple[int, int]]) -> pl.DataFrame | None:
        """The rows of these runs (source, the source's own number), in reading order."""
        if not self._parts:
            return None
        import polars as pl

        wanted = pl.any_horizontal(
            [(pl.col("source") == source) & (pl.col("run") == run) for source, run in runs]
        )
        rows = pl.concat(self._parts).filter(wanted)
        return rows.sort("source", "line") if rows.height else None
