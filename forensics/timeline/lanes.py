"""The hot lanes: decode, prefill and access lines, 99 % of the bytes of a served day.

A block is sorted into lanes by literal tests, negatively: a line is rare unless it is known to be
hot, so unknown lines are never lost. Hot lines are split and every key is checked; a row that
does not fit goes back to the rare lane, which understands it too. The keys and their types come
from the grammar (`prefill_batch` and `decode_batch`), the order of keys from the lines at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from forensics.grammar import Grammar
from forensics.timeline.serving import PROBES, WANTED, aggregate, complete, empty

LINE, TEXT = pl.col("line"), pl.col("text")
_TIME = "%Y-%m-%d %H:%M:%S"
_LAYOUTS = 4
_WORDS = {"decode_batch": " Decode batch", "prefill_batch": " Prefill batch"}
_LANES = {"decode_batch": "decode", "prefill_batch": "prefill", "http_access": "access"}
_OK = " 200 OK"
_GRAPH = " graph: "
"""`cuda graph: `, `npu graph: ` and the like are one field."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """A block, sorted: rare lines as Python text, hot lines as rows of `BUCKETS`."""

    rare: list[tuple[int, str]]
    hot: pl.DataFrame
    hot_lines: int
    lines: int
    counts: dict[str, int]
    """Hot lines by kind, whether read in full or not."""


class Lanes:
    """Sorts blocks of one source."""

    def __init__(self, grammar: Grammar, prefix: str | None) -> None:
        self._prefix = prefix
        self._labels = {kind: grammar.kinds[kind].labels for kind in _WORDS}

    def sort(self, data: bytes, span_s: int = 1, thin: int = 1) -> Sorted:
        """Sort one block of complete lines, which are numbered from 1.

        Rows of batch lines are summed over spans of `span_s`. With `thin`, one routine line in so
        many is read in full and stands for the others; those are checked to be one whole line.
        """
        frame = pl.read_lines(data, row_index_name="number").with_columns(
            (pl.col("number").cast(pl.Int64) + 1),
            LINE.str.contains("] Decode batch", literal=True).alias("decode"),
            LINE.str.contains("] Prefill batch", literal=True).alias("prefill"),
            (LINE.str.ends_with(_OK) & LINE.str.contains("] INFO:     ", literal=True)).alias(
                "access"
            ),
        )
        is_hot = pl.col("decode") | pl.col("prefill") | pl.col("access")
        rare = frame.filter(~is_hot).select("number", "line")
        text = LINE.str.replace(self._prefix, "") if self._prefix else LINE
        hot = frame.filter(is_hot).with_columns(text.alias("text"))
        whole = hot.height
        counts = {kind: int(hot[lane].sum()) for kind, lane in _LANES.items()}
        if thin > 1:
            # One in so many, and every line that holds a second head: it may be torn.
            torn = TEXT.str.slice(1).str.contains("[", literal=True)
            hot = hot.filter(torn | (pl.int_range(pl.len()) % thin == 0))
        lanes = {
            kind: hot.filter(lane).select("number", "line", "text") for kind, lane in _LANES.items()
        }
        rows, odd = self._read(lanes, span_s)
        lost = sum(part.height for part in odd)
        merged = pl.concat([empty(), *rows]).with_columns(pl.col("n") * thin)
        # Long strings of polars are views into the block: copied, the block can go.
        merged = merged.with_columns(pl.Series("rank", merged["rank"].to_list(), pl.String))
        return Sorted(_texts([rare, *odd]), merged, whole - lost, frame.height, counts)

    def _read(
        self, todo: dict[str, pl.DataFrame], span_s: int
    ) -> tuple[list[pl.DataFrame], list[pl.DataFrame]]:
        """Rows of every layout found, and the lines that fit none."""
        rows: list[pl.DataFrame] = []
        odd: list[pl.DataFrame] = []
        for _ in range(_LAYOUTS):
            plans: dict[str, pl.LazyFrame] = {}
            for kind, frame in list(todo.items()):
                if frame.height and (typed := self._typed(kind, frame)) is not None:
                    plans[kind] = typed
                else:
                    odd.append(todo.pop(kind))
            if not plans:
                return rows, odd
            fitting: list[pl.LazyFrame] = []
            for kind, columns in zip(plans, pl.collect_all(list(plans.values())), strict=True):
                fits = columns["fits"]
                if fits.all():
                    fitting.append(_summed(kind, columns, span_s))
                    del todo[kind]
                    continue
                fitting.append(_summed(kind, columns.filter(fits), span_s))
                frame = todo[kind].filter(~fits)
                if frame.height == todo[kind].height:
                    odd.append(todo.pop(kind))
                else:
                    todo[kind] = frame
            rows += pl.collect_all(fitting)
        return rows, [*odd, *todo.values()]

    def _typed(self, kind: str, frame: pl.DataFrame) -> pl.LazyFrame | None:
        if kind == "http_access":
            return _access(frame)
        layout = _layout(str(frame["text"][0]), _WORDS[kind], self._labels[kind])
        return None if layout is None else _batch(frame, layout, _WORDS[kind])


def _summed(kind: str, typed: pl.DataFrame, span_s: int) -> pl.LazyFrame:
    if kind != "http_access":
        return aggregate(typed.lazy(), kind, span_s)
    return complete(
        typed.lazy()
        .with_columns(pl.col("time").dt.truncate(f"{span_s}s"))
        .group_by("time", "lane", maintain_order=True)
        .agg(pl.col("line").min(), pl.len().alias("n"))
    )


def _texts(frames: list[pl.DataFrame]) -> list[tuple[int, str]]:
    """Lines as Python text, in order: polars strings would keep the whole block in memory."""
    found = [
        pair
        for frame in frames
        if frame.height
        for pair in zip(frame["number"].to_list(), frame["line"].to_list(), strict=True)
    ]
    if sum(frame.height > 0 for frame in frames) > 1:
        found.sort(key=lambda pair: pair[0])
    return found


@dataclass(frozen=True, slots=True)
class _Layout:
    """The keys of one form of a batch line, in order, with field and terminal."""

    lead: str
    keys: tuple[tuple[str, str, str], ...]
    trailing: bool


def _layout(line: str, words: str, labels: Mapping[str, tuple[str, str]]) -> _Layout | None:
    _, mark, rest = line.partition(words)
    lead, hash_, fields = rest.partition("#")
    if not mark or not hash_ or lead not in (", ", ". "):
        return None
    pieces = ("#" + fields).split(", ")
    trailing = pieces[-1] == ""
    keys = []
    for piece in pieces[: -1 if trailing else None]:
        key, colon, _ = piece.partition(": ")
        label = f"{key}{colon}"
        if label.endswith(_GRAPH):
            keys.append((label, "cuda_graph", "BOOL"))
        elif label in labels:
            keys.append((label, *labels[label]))
        else:
            return None
    return _Layout(lead, tuple(keys), trailing) if keys else None


def _batch(frame: pl.DataFrame, layout: _Layout, words: str) -> pl.LazyFrame:
    """The columns of one layout, and `fits`: every key is where it belongs, every value parses."""
    count = len(layout.keys) + int(layout.trailing)
    lines = frame.lazy()
    # A split is a column of its own: as a shared expression it would be done once for each field.
    if layout.lead == ", ":
        lines = lines.with_columns(TEXT.str.split_exact(", ", count + 1).alias("pieces"))
        head = pl.col("pieces").struct.field("field_0")
        checks, first = [head.str.ends_with(f"]{words}")], 1
        head = head.str.strip_suffix(f"]{words}")
    else:
        lines = lines.with_columns(TEXT.str.splitn(f"]{words}{layout.lead}", 2).alias("split"))
        rest = pl.col("split").struct.field("field_1")
        lines = lines.with_columns(rest.str.split_exact(", ", count).alias("pieces"))
        head, checks, first = pl.col("split").struct.field("field_0"), [], 0
    columns = [_time(head), head.str.slice(20).str.strip_chars(" ").alias("rank")]
    for place, (label, name, terminal) in enumerate(layout.keys, start=first):
        piece = pl.col("pieces").struct.field(f"field_{place}")
        if name not in WANTED:
            checks.append(piece.str.starts_with(label))
            continue
        value, check = _value(piece, label, terminal)
        columns.append(value.alias(name))
        checks.append(check)
    last = pl.col("pieces").struct.field(f"field_{len(layout.keys) + first}")
    checks.append(last == "" if layout.trailing else last.is_null())
    typed = lines.select(
        pl.col("number").alias("line"), *columns, pl.all_horizontal(checks).alias("fits")
    )
    torn = pl.col("rank").str.contains("[", literal=True)
    fits = pl.col("fits") & pl.col("time").is_not_null() & ~torn
    return typed.with_columns(fits.fill_null(False).alias("fits"))


def _value(piece: pl.Expr, label: str, terminal: str) -> tuple[pl.Expr, pl.Expr]:
    """The value of a field, and the check that key and value are what they should be.

    A key that is not stripped leaves a text that is no number, so numbers need no check of it.
    """
    text = piece.str.strip_prefix(label)
    if terminal == "BOOL":
        is_true = piece == f"{label}True"
        return is_true, is_true | (piece == f"{label}False")
    if terminal in ("INT", "FLOAT", "PERCENT"):
        bare = text.str.strip_suffix("%") if terminal == "PERCENT" else text
        number = bare.cast(pl.Int64 if terminal == "INT" else pl.Float64, strict=False)
        return number, number.is_not_null()
    return text, piece.str.starts_with(label)


def _access(frame: pl.DataFrame) -> pl.LazyFrame:
    """Access lines that succeeded: one request, so two quotes, between head and status."""
    probe = pl.any_horizontal(TEXT.str.contains(f" {path}", literal=True) for path in PROBES)
    fits = (
        (TEXT.str.slice(20, 11) == "] INFO:    ")
        & TEXT.str.contains(' HTTP/1.1" 200 OK', literal=True)
        & (TEXT.str.count_matches('"', literal=True) == 2)
        & TEXT.str.starts_with("[")
    )
    typed = frame.lazy().select(
        pl.col("number").alias("line"),
        _time(TEXT),
        pl.when(probe).then(pl.lit("health")).otherwise(pl.lit("access")).alias("lane"),
        fits.fill_null(False).alias("fits"),
    )
    return typed.with_columns(pl.col("fits") & pl.col("time").is_not_null())


def _time(text: pl.Expr) -> pl.Expr:
    return text.str.slice(1, 19).str.to_datetime(_TIME, strict=False).alias("time")
