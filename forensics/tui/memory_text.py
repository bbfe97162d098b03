"""The text of the memory view: the slider with what it foretells, and the ledger as bars."""

from __future__ import annotations

from rich.text import Text

from forensics.findings import MemoryRow
from forensics.memory import Need, target_free_gib
from forensics.tui.document import Document, Target
from forensics.tui.ledger_steps import StepLedger, step_ledgers, step_of
from forensics.tui.model import Loaded
from forensics.tui.store import LinePlace
from forensics.tui.what_if import MEANING, Outlook, WhatIf
from forensics.views.changes import BASIS
from forensics.views.clean import one_line
from forensics.views.ledger import PARTS, SHOWN_GIB
from forensics.views.words import Places, fold_ranks

_MARKS = {"weights": "#", "KV pool": "=", "graphs": "+", "other": "~", "free": "."}
_STYLES = {
    "weights": "blue",
    "KV pool": "magenta",
    "graphs": "cyan",
    "other": "yellow",
    "free": "green",
}
_UNATTRIBUTED = "?"
_TONES = {
    "fits": "bold green",
    "tight": "bold yellow",
    "fails": "bold red",
    "no pool": "bold red",
    "unknown": "bold",
}
_BASIS = {**BASIS, "projected": "projected from the progress bar"}
_SCALE_LEAST = 0.5
_STEP_WIDTH = 15
_LEAST_BAR = 16


def write_what_if(document: Document, known: WhatIf, fraction: float) -> None:
    """The slider at a fraction."""
    page = document.page
    page.heading("What if", "left and right move by 0.01, with Shift by 0.001; x goes back")
    outlook = known.at(fraction)
    if known.here is None or outlook is None:
        page.paragraph("Another fraction cannot be foretold; the log lacks:")
        for line in known.missing:
            page.item("-", line)
        return
    now = known.here.fraction
    told = [f"now {now:g}"]
    own = known.at(now)
    in_need = own is not None and own.verdict != "fits"
    if in_need and known.advice and known.advice.possible and known.advice.fraction:
        told.append(f"advised {known.advice.fraction:g}")
    head = Text("  --mem-fraction-static ").append(f"{fraction:.3f}", style="bold")
    page.raw(head.append(f"   {', '.join(told)}", style="dim"))
    page.raw(_scale(document.width, known, fraction))
    _write_outlook(document, known, outlook)
    for line in known.here.assumed:
        page.paragraph(f"Assumed: {line}.", style="dim")
    for line in known.missing:
        page.paragraph(f"Not in the log: {line}.", style="dim")


def _write_outlook(document: Document, known: WhatIf, outlook: Outlook) -> None:
    page = document.page
    verdict = Text(f"  {outlook.verdict.upper()}", style=_TONES[outlook.verdict])
    page.raw(verdict.append(f"  {MEANING[outlook.verdict]}", style="default"))
    other = outlook.scaled_gib
    differs = other is not None and abs(other - outlook.free_gib) > SHOWN_GIB
    scaled = f" ({other:.2f} if the pool stays as much over its budget)" if differs else ""
    rows = [("free at capture", f"{outlook.free_gib:.2f} GiB{scaled}")]
    rows.append(("capture needs", _need_words(known)))
    if outlook.kv_tokens is not None:
        change = f" ({outlook.kv_change:+,})" if outlook.kv_change else ""
        rows.append(("KV tokens", f"{outlook.kv_tokens:,} a GPU{change}"))
    if outlook.largest_batch is not None:
        rows.append(("largest batch", str(outlook.largest_batch or "none would fit")))
    if known.advice and not known.advice.possible:
        rows.append(("advice", f"no fraction helps: {known.advice.because}"))
    for label, text in rows:
        page.item(f"{label:16}", text, label_style="dim")


def _need_words(known: WhatIf) -> str:
    need = known.need
    if need is None or known.here is None:
        return "not known"
    aim = target_free_gib(need, known.here)
    basis = _BASIS[need.basis]
    return f"{_amount(need)} GiB for {_what(known.kind)}; {aim:.2f} are aimed at; {basis}"


def _amount(need: Need) -> str:
    if need.basis == "lower_bound":
        return f"at least {need.gib:.2f}"
    return f"about {need.gib:.2f}" if need.basis != "observed" else f"{need.gib:.2f}"


def _what(kind: str) -> str:
    return "all graphs" if kind == "all" else f"{kind} graphs"


def _scale(width: int, known: WhatIf, fraction: float) -> Text:
    """The fractions from low to high, each by its verdict, with the chosen one marked."""
    room = max(width - 16, 10)
    low, high = min(_SCALE_LEAST, fraction), 0.99
    line = Text(f"  {low:.2f} ")
    chosen = round((fraction - low) / (high - low) * (room - 1))
    signs = {"fits": "-", "tight": "~", "fails": "x", "no pool": "0", "unknown": "-"}
    for cell in range(room):
        outlook = known.at(low + cell / (room - 1) * (high - low))
        verdict = outlook.verdict if outlook else "unknown"
        if cell == chosen:
            line.append("O", style="bold reverse")
        else:
            line.append(signs[verdict], style=_TONES[verdict].removeprefix("bold"))
    return line.append(f" {high:.2f}")


def write_ledger(document: Document, loaded: Loaded, run_index: int) -> None:
    """Every step of every rank as a bar with its numbers."""
    page, run = document.page, loaded.report(run_index).run
    groups = step_ledgers(run)
    page.heading("Memory", "GiB per GPU, step by step; Enter shows the line")
    if not groups:
        page.paragraph("The log has no line that tells free memory (`avail mem=`).")
        return
    legend = Text("  ")
    for name, mark in _MARKS.items():
        legend.append(mark, style=_STYLES[name]).append(f" {name}   ")
    page.raw(legend.append(f"{_UNATTRIBUTED} not attributed", style="dim"))
    places = Places(loaded.paths)
    for group in groups:
        title = Text(f"  {one_line(fold_ranks(group.tags))}", style="bold")
        alike = f"  {len(group.tags)} ranks alike" if len(group.tags) > 1 else ""
        where = "" if places.single else f"  {places.name(group.source)}"
        page.blank()
        page.raw(title.append(alike + where, style="dim"))
        _write_group(document, loaded, group)


def _write_group(document: Document, loaded: Loaded, group: StepLedger) -> None:
    most = max((row.total_gib or _sum(row) for row in group.rows), default=0.0)
    figures = [_figures(row) for row in group.rows]
    beside = max((Text(text).cell_len for text in figures), default=0)
    bar = document.width - _STEP_WIDTH - 5 - beside
    below = bar < _LEAST_BAR
    for row, text in zip(group.rows, figures, strict=True):
        line = Text(f"  {step_of(row):{_STEP_WIDTH}} ")
        room = document.width - _STEP_WIDTH - 4 if below else bar
        line.append_text(_bar(row, most, room))
        place = LinePlace(loaded.source_of(row.source), row.line)
        with document.leading_to(Target(place)):
            document.page.raw(line if below else line.append(f" {text}"))
            if below:
                document.page.raw(Text(f"  {'':{_STEP_WIDTH}} {text}"))


def _bar(row: MemoryRow, most_gib: float, room: int) -> Text:
    """The parts of a row in proportion; its right end is what the GPU has."""
    line, used, at = Text(), 0.0, 0
    scale = room / most_gib if most_gib > 0 else 0.0
    for name, size in _parts(row):
        used += size
        end = min(round(used * scale), room)
        end = max(end, at + 1) if size > SHOWN_GIB and at < room else max(end, at)
        line.append(_MARKS[name] * (end - at), style=_STYLES[name])
        at = end
    rest = _UNATTRIBUTED if row.total_gib and most_gib - used > SHOWN_GIB else " "
    return line.append(rest * (room - at), style="dim")


def _figures(row: MemoryRow) -> str:
    return " ".join(f"{_MARKS[name]} {size:.2f}" for name, size in _parts(row))


def _parts(row: MemoryRow) -> list[tuple[str, float]]:
    sizes = [(name, getattr(row, field)) for name, field in PARTS]
    return [
        (name, max(size, 0.0))
        for name, size in sizes
        if size is not None and (size > SHOWN_GIB or name == "free")
    ]


def _sum(row: MemoryRow) -> float:
    return sum(size for _, size in _parts(row))
