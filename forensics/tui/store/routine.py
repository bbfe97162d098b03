"""Finds the routine lines of a block in bulk: which they are, whose, and when they were written.

A line counts as routine only if the grammar's own expression for its kind matches the whole
message, so it has the kind that reading it alone would give. All other lines are left to that.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from forensics.grammar import Grammar
from forensics.tui.store.classes import PART, ClassTable

LINE, TEXT = pl.col("line"), pl.col("text")

_HEAD = (
    r"\[[0-9]{4}-[0-9][0-9]-[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9]"
    r"(?: [A-Z][A-Z_]*[0-9]+(?: [A-Z][A-Z_]*[0-9]+)*)?\] "
)
_SIGNS = {
    "decode_batch": "] Decode batch",
    "prefill_batch": "] Prefill batch",
    "http_access": "] INFO:     ",
}
"""A text that every line of a kind holds: what has none of them is not looked at further."""

_LEVEL = {"http_access": "INFO: +"}
"""What stands between the head and the message that the kind's expression matches."""

_TIME = "%Y-%m-%d %H:%M:%S"
_OK = " 200 OK"
_JSON = r'^\{"log":"(?P<text>(?:[^"\\]|\\")*)\\n","stream":"(?:stdout|stderr)","time":"[^"\\]*"\}$'
"""A line of Docker's json-file driver whose text needs no more than its quotes unescaped."""

_CODES = {"rank": pl.String, "code": pl.UInt16}
_LONGEST = 600
"""Bytes of a routine line at most: longer ones are something else."""


@dataclass(frozen=True, slots=True)
class Found:
    """A block with its routine lines known: a code and a time for each line."""

    frame: pl.DataFrame
    """The lines, in the column `line`."""
    codes: pl.Series
    times: pl.Series
    rare: list[tuple[int, str]]
    """The lines that must be read one by one, with their numbers."""


class RoutineReader:
    """Reads the blocks of one source.

    `prefix` is the expression of the wrapper in front of every line, if there is one; with
    `as_json` the lines are those of Docker's json-file driver.
    """

    def __init__(
        self, grammar: Grammar, table: ClassTable, prefix: str | None, *, as_json: bool = False
    ) -> None:
        self._table = table
        self._prefix = prefix
        self._as_json = as_json
        self._rules = {
            kind: f"^{_HEAD}{_LEVEL.get(kind, '')}{grammar.kinds[kind].regex.removeprefix('^')}"
            for kind in _SIGNS
        }

    def read(self, data: bytes, first_line: int) -> Found:
        """Sort the lines of one block, in valid UTF-8."""
        frame = pl.read_lines(data, row_index_name="place")
        hot = pl.concat([self._of_kind(frame, kind) for kind in _SIGNS])
        frame = frame.select(pl.col("place").cast(pl.UInt32), "line").join(
            hot, on="place", how="left", maintain_order="left"
        )
        # A line may belong to the record before it, so a routine line in front of others counts.
        unknown = pl.col("code").is_null() | pl.col("code").shift(-1).is_null()
        rare = frame.filter(unknown).select("place", "line")
        numbers = (rare["place"].cast(pl.Int64) + first_line).to_list()
        return Found(
            frame.select("line"),
            frame["code"].fill_null(PART),
            frame["time"],
            list(zip(numbers, rare["line"].to_list(), strict=True)),
        )

    def _text(self) -> pl.Expr:
        """The lines without what stands around them; null where that is not as usual."""
        if self._as_json:
            return LINE.str.extract(_JSON, 1).str.replace_all('\\"', '"', literal=True)
        return LINE.str.replace(self._prefix, "") if self._prefix else LINE

    def _of_kind(self, frame: pl.DataFrame, kind: str) -> pl.DataFrame:
        """Place, code and time of the lines of one routine kind."""
        sign = LINE.str.contains(_SIGNS[kind], literal=True)
        if kind == "http_access":
            ended = (
                LINE.str.contains(_OK, literal=True) if self._as_json else LINE.str.ends_with(_OK)
            )
            sign = sign & ended
        lines = frame.lazy().filter(sign & (LINE.str.len_bytes() <= _LONGEST))
        lines = lines.select(pl.col("place").cast(pl.UInt32), self._text().alias("text"))
        lines = lines.filter(
            TEXT.str.contains(self._rules[kind])
            & ~TEXT.str.slice(1).str.contains("[", literal=True)
        )
        end = TEXT.str.find("]", literal=True)
        found = (
            lines.select(
                "place",
                TEXT.str.slice(20, end - 20).str.strip_chars(" ").alias("rank"),
                TEXT.str.slice(1, 19).str.to_datetime(_TIME, strict=False).alias("at"),
            )
            .filter(pl.col("at").is_not_null())
            .collect()
        )
        ranks = found["rank"].unique().to_list()
        codes = [self._table.code(rank or None, kind, None) for rank in ranks]
        known = pl.DataFrame({"rank": ranks, "code": codes}, schema=_CODES)
        return found.join(known, on="rank", how="left", maintain_order="left").select(
            "place", "code", seconds(pl.col("at")).alias("time")
        )


def seconds(time: pl.Expr) -> pl.Expr:
    """Whole seconds since 1970, in four bytes; null where they do not fit."""
    return time.dt.epoch("s").cast(pl.Int32, strict=False)


__all__ = ["Found", "RoutineReader", "seconds"]
