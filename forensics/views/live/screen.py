"""The live screen: the launch at this moment, redrawn in place, findings scrolling above it."""

from __future__ import annotations

import time

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from forensics.live.notices import Notice, PhaseNotice, ProgressNotice, Verdict
from forensics.live.progress import RankState, RunState
from forensics.views.clean import clean
from forensics.views.live.lines import LineView
from forensics.views.live.words import bar_words, foresee, late_words, silence_words
from forensics.views.words import PHASE, SEVERITY_STYLE, duration, fold_ranks

_EVERY_S = 0.25
_MOST_ROWS = 16
_WORTH_SAYING_S = 3.0


class Screen:
    """Draws the state of a launch. A context manager: at its end the drawing is gone."""

    def __init__(self, console: Console) -> None:
        self._lines = LineView(console)
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._next = 0.0

    def __enter__(self) -> Screen:
        self._live.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._live.stop()

    def tell(self, notice: Notice) -> None:
        """Print a notice above the drawing, which itself shows phases and progress."""
        if isinstance(notice, PhaseNotice | ProgressNotice):
            return
        if isinstance(notice, Verdict):
            self._live.stop()
        self._lines.tell(notice)

    def draw(self, state: RunState | None) -> None:
        """Redraw, four times a second at most."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + _EVERY_S
        waiting = Text("waiting for the first lines of a launch", style="dim")
        self._live.update(drawing(state) if state else waiting, refresh=True)


def drawing(state: RunState) -> RenderableType:
    """The launch at one moment: what will happen, phase, progress, ranks."""
    parts: list[RenderableType] = []
    if state.alarm:
        style = SEVERITY_STYLE[state.alarm.severity]
        parts.append(Text(clean(foresee(state.alarm)), style=style))
    head = Text(PHASE.get(state.phase, state.phase), style="bold")
    if state.silent_s >= _WORTH_SAYING_S:
        head.append(f"   {silence_words(state)}", style=_silence_style(state))
    parts.append(head)
    if state.bar:
        row = Table.grid(padding=(0, 1))
        bar = ProgressBar(total=state.bar.total, completed=state.bar.done, width=30)
        row.add_row(bar, Text(bar_words(state.bar)))
        parts.append(row)
    if late := late_words(state):
        parts.append(Text(clean(late), style="yellow"))
    if state.ranks:
        parts.append(_ranks(state))
    return Group(*parts)


def _silence_style(state: RunState) -> str:
    return "bold yellow" if state.unusual_silence else "dim"


def _ranks(state: RunState) -> Table:
    """A row for each group of ranks that stand alike."""
    table = Table.grid(padding=(0, 2))
    table.add_row(*(Text(name, style="dim") for name in ("rank", "phase", "free", "last line")))
    groups = _alike(state.ranks)
    for group in groups[:_MOST_ROWS]:
        first = group[0]
        free = f"{first.free_gib:.2f} GiB" if first.free_gib is not None else ""
        silent = max((rank.silent_s for rank in group if rank.silent_s is not None), default=None)
        said = f"{duration(silent)} ago" if silent is not None else ""
        tags = clean(fold_ranks([rank.tag for rank in group]))
        table.add_row(Text(tags), Text(PHASE.get(first.phase, first.phase)), Text(free), Text(said))
    if len(groups) > _MOST_ROWS:
        table.add_row(Text(f"and {len(groups) - _MOST_ROWS} more", style="dim"))
    return table


def _alike(ranks: list[RankState]) -> list[list[RankState]]:
    groups: dict[tuple[object, ...], list[RankState]] = {}
    for rank in ranks:
        key = (rank.phase, rank.free_gib and round(rank.free_gib, 1), rank.behind_s is None)
        groups.setdefault(key, []).append(rank)
    return list(groups.values())
