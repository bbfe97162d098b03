"""The memory ledger of each rank, from the fields of its lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from forensics.events import Event
from forensics.findings import MemoryRow
from forensics.memory import Capture, Ledger

_GRAPH_KINDS = (
    ("single-CG draft extend", "draft_extend"),
    ("draft extend", "draft_extend"),
    ("draft verify", "draft_verify"),
    ("draft prefill", "draft_prefill"),
    ("draft", "draft"),
    ("target verify", "verify"),
    ("target prefill", "prefill"),
    ("prefill", "prefill"),
    ("piecewise", "piecewise"),
)
"""Words of a capture line to the kind of graphs, the first that occurs; else `decode`."""


def graph_kind(what: str) -> str:
    """The kind of graphs that a capture line names (`Capture {what} begin`)."""
    return next((kind for words, kind in _GRAPH_KINDS if words in what), "decode")


class LedgerReader:
    """Fills the ledger of one rank, line by line."""

    def __init__(self, rank: str, source: str = "") -> None:
        self.ledger = Ledger(rank=rank)
        self._source = source
        self.rows: list[MemoryRow] = []
        self._weights_seen = 0
        self._captured = False
        self._begin: float | None = None
        self._take: dict[str, Callable[[Event], None]] = {
            "load_weight_begin": self._load_begin,
            "load_weight_end": self._load_end,
            "kv_cache_allocated": self._pool,
            "post_capture_kv_allocated": self._pool,
            "swa_pool_allocated": self._state,
            "mamba_cache_allocated": self._state,
            "unified_pool_allocated": self._state,
            "memory_pool_end": self._pool_end,
            "capture_begin": self._capture_begin,
            "capture_sizes": self._capture_sizes,
            "capture_progress": self._capture_bar,
            "capture_end": self._capture_end,
            "max_total_tokens": self._summary,
        }

    def add(self, event: Event) -> None:
        """Take one event of this rank."""
        if take := self._take.get(event.kind):
            take(event)

    def _row(self, event: Event, free: float | None) -> None:
        ledger = self.ledger
        graphs = ledger.graphs_gib
        known = [ledger.weights_gib, ledger.pool_gib, graphs]
        other = None
        if ledger.baseline_gib is not None and free is not None:
            other = ledger.baseline_gib - free - sum(size or 0.0 for size in known)
            other -= ledger.draft_weights_gib or 0.0
        self.rows.append(
            MemoryRow(
                rank=ledger.rank,
                phase=event.phase,
                at=event.time,
                line=event.line,
                source=self._source,
                total_gib=ledger.total_gib,
                free_gib=free,
                weights_gib=ledger.weights_gib,
                kv_pool_gib=ledger.pool_gib,
                graphs_gib=graphs,
                other_gib=None if other is None else round(other, 2),
            )
        )

    def _load_begin(self, event: Event) -> None:
        free = event.number("avail_gib")
        self._begin = free
        if self._weights_seen == 0:
            self.ledger.baseline_gib = free
            self._row(event, free)

    def _load_end(self, event: Event) -> None:
        free, used = event.number("avail_gib"), event.number("usage_gib")
        if used is None and free is not None and self._begin is not None:
            used = self._begin - free
        if self.ledger.baseline_gib is None and free is not None and used is not None:
            self.ledger.baseline_gib = round(free + used, 2)  # a log whose head is missing
        self._weights_seen += 1
        if self._weights_seen == 1:
            self.ledger.weights_gib, self.ledger.after_weights_gib = used, free
        else:
            self.ledger.draft_weights_gib = (self.ledger.draft_weights_gib or 0.0) + (used or 0.0)
            self.ledger.draft_after_capture = self._captured
        self._row(event, free)

    def _pool(self, event: Event) -> None:
        parts = [event.number(name) for name in ("k_gib", "v_gib", "kv_gib")]
        sizes = [size for size in parts if size is not None]
        if not sizes:
            return
        ledger = self.ledger
        tokens = event.number("tokens")
        if ledger.kv_pool_gib is None:
            ledger.kv_pool_gib = sum(sizes)
            ledger.kv_tokens = int(tokens) if tokens is not None else None
        elif self._captured or self._weights_seen > 1:
            ledger.draft_kv_pool_gib = (ledger.draft_kv_pool_gib or 0.0) + sum(sizes)
        else:
            ledger.kv_pool_gib += sum(sizes)

    def _state(self, event: Event) -> None:
        if event.kind == "mamba_cache_allocated":
            names = ("conv_gib", "ssm_gib", "intermediate_ssm_gib", "intermediate_conv_gib")
            size = sum(event.number(name) or 0.0 for name in names)
        elif "upper bound" in event.string("pool_state"):
            return  # address space, not memory
        elif event.kind == "unified_pool_allocated":
            size = event.number("total_gib") or 0.0
        else:
            # This line sums the pools whose own lines came before it.
            size = (event.number("size_gib") or 0.0) - (self.ledger.kv_pool_gib or 0.0)
        self.ledger.state_pool_gib = (self.ledger.state_pool_gib or 0.0) + max(size, 0.0)

    def _pool_end(self, event: Event) -> None:
        if self.ledger.after_pool_gib is None:
            self.ledger.after_pool_gib = event.number("avail_gib")
        self._row(event, event.number("avail_gib"))

    def _capture_begin(self, event: Event) -> None:
        free = event.number("avail_gib")
        if self.ledger.capture_begin_gib is None:
            self.ledger.capture_begin_gib = free
        sizes = event.fields.get("sizes")
        capture = Capture(graph_kind(event.string("what")), begin_gib=free)
        if isinstance(sizes, list):
            capture.sizes = [int(size) for size in sizes]
        self.ledger.captures.append(capture)
        self._row(event, free)

    def _capture_sizes(self, event: Event) -> None:
        sizes = event.fields.get("sizes")
        if self.ledger.captures and isinstance(sizes, list):
            self.ledger.captures[-1].sizes = [int(size) for size in sizes]

    def _capture_bar(self, event: Event) -> None:
        free = event.number("avail_gib")
        size = event.number("bs") or event.number("num_tokens")
        if self.ledger.captures and free is not None and size is not None:
            bars = self.ledger.captures[-1].bars
            if not bars or bars[-1] != (int(size), free):
                bars.append((int(size), free))

    def _capture_end(self, event: Event) -> None:
        free = event.number("avail_gib")
        if self.ledger.captures:
            capture = self.ledger.captures[-1]
            capture.usage_gib, capture.end_gib = event.number("usage_gib"), free
            sizes = event.fields.get("sizes")
            if isinstance(sizes, list):
                capture.sizes = [int(size) for size in sizes]
        self._captured = True
        self.ledger.end_gib = free if free is not None else self.ledger.end_gib
        self._row(event, free)

    def _summary(self, event: Event) -> None:
        if self.ledger.kv_tokens is None and (tokens := event.number("tokens")) is not None:
            self.ledger.kv_tokens = int(tokens)
        free = event.number("available_gib") or event.number("avail_gib")
        if free is not None:
            self.ledger.end_gib = free
            self._row(event, free)


def read_ledger(rank: str, events: Iterable[Event], source: str = "") -> LedgerReader:
    """The ledger of a rank and its rows, from the events of that rank in order."""
    reader = LedgerReader(rank, source)
    for event in events:
        reader.add(event)
    return reader
