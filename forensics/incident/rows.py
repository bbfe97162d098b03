"""Rows of routine serving lines of all sources, bounded whatever the length of the logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from forensics.timeline import Routine

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
    _parts: list[tuple[pl.DataFrame, list[pl.Expr]]] = field(default_factory=list)
    """Rows, and the columns that they still lack."""
    _height: int = 0

    def copy(self) -> RowStore:
        """A store of the same rows that goes its own way."""
        return RowStore(self.span_s, self.limit, list(self._parts), self._height)

    def add(self, rows: pl.DataFrame, marks: Sequence[pl.Expr] = ()) -> None:
        """Take rows that know their source and run, or are told by `marks`."""
        from forensics.timeline.serving import LIMIT, bounded

        self._parts.append((rows, list(marks)))
        self._height += rows.height
        limit = self.limit or LIMIT
        if self._height > 2 * limit:
            merged, self.span_s = bounded(self._merged(), self.span_s, limit)
            self._parts, self._height = [(merged, [])], merged.height

    def _merged(self) -> pl.DataFrame:
        import polars as pl

        return pl.concat([rows.with_columns(marks) for rows, marks in self._parts])

    def take(
        self, routine: Routine, source: int, starts: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[int, str, int]]:
        """Take the routine lines of a block; gives run, kind and how many lines.

        Their run is the last that began before their line. A block in one run is only put away:
        the reading goes on beside it.
        """
        import polars as pl

        began, own = starts[-1]
        marks = [pl.lit(source, pl.Int32).alias("source")]
        if began <= routine.first_line:
            self.add(routine.rows, [*marks, pl.lit(own, pl.Int32).alias("run")])
            for kind, count in routine.counts.items():
                yield own, kind, count
            return
        run: pl.Expr = pl.lit(starts[0][1], pl.Int32)
        for line, number in starts[1:]:
            run = pl.when(pl.col("line") >= line).then(pl.lit(number, pl.Int32)).otherwise(run)
        marked = routine.rows.with_columns(*marks, run.alias("run"))
        self.add(marked)
        for number, lane, count in (
            marked.group_by("run", "lane").agg(pl.col("n").sum()).iter_rows()
        ):
            yield number, _KINDS.get(lane, "http_access"), count

    def of(self, runs: Sequence[tuple[int, int]]) -> pl.DataFrame | None:
        """The rows of these runs (source, the source's own number), in reading order."""
        if not self._parts:
            return None
        import polars as pl

        wanted = pl.any_horizontal(
            [(pl.col("source") == source) & (pl.col("run") == run) for source, run in runs]
        )
        rows = self._merged().filter(wanted)
        return rows.sort("source", "line") if rows.height else None
