"""Live events for people without a terminal: a line each."""

from __future__ import annotations

from datetime import datetime

from rich.console import Console
from rich.text import Text

from forensics.live.notices import (
    FindingNotice,
    Notice,
    PhaseNotice,
    ProgressNotice,
    Remark,
    Verdict,
    WithdrawnNotice,
)
from forensics.live.progress import RunState
from forensics.views.clean import clean, one_line
from forensics.views.live.words import (
    GOOD,
    bar_words,
    fix,
    foresee,
    late_words,
    silence_words,
    verdict_sentence,
    verdict_word,
)
from forensics.views.words import PHASE, SEVERITY_STYLE, fold_ranks

_LEAST = 12
"""Columns that text needs to be folded at all."""

_WORTH_TELLING_AGAIN = frozenset({"severity", "role", "class_", "remedies"})


class LineView:
    """Prints notices. `quiet`: the verdict alone; `brief`: neither phases nor progress."""

    def __init__(
        self, console: Console, *, quiet: bool = False, brief: bool = False, lead: str = ""
    ) -> None:
        self._console = console
        self._quiet, self._brief, self._lead = quiet, brief, lead
        self._told_bar = ("", -1)

    def tell(self, notice: Notice) -> None:
        """Print one notice."""
        if isinstance(notice, Verdict):
            self._verdict(notice)
        elif not self._quiet:
            self._notice(notice)

    def _notice(self, notice: Notice) -> None:
        match notice:
            case PhaseNotice(_, phase, ranks) if not self._brief:
                who = f" ({fold_ranks(list(ranks))})" if ranks else ""
                self._line(Text(f"{PHASE.get(phase, phase)}{clean(who)}", style="bold"))
            case ProgressNotice(state) if not self._brief:
                self._progress(state)
            case FindingNotice():
                self._finding(notice)
            case WithdrawnNotice(_, finding, because) if finding.severity != "info":
                self._line(Text(f"withdrawn: {finding.rule}, since {one_line(because)}", "dim"))
            case Remark(text):
                self._line(Text(one_line(text), style="dim"))

    def _progress(self, state: RunState) -> None:
        """The bar at every tenth; what is unusual once each time it changes."""
        if bar := state.bar:
            mark = (bar.what, bar.done * 10 // bar.total)
            if mark != self._told_bar:
                self._told_bar = mark
                self._line(Text(bar_words(bar)))
        if late := late_words(state):
            self._line(Text(clean(late), style="yellow"))
        if state.unusual_silence:
            self._line(Text(clean(silence_words(state)), style="yellow"))

    def _finding(self, notice: FindingNotice) -> None:
        finding = notice.finding
        if finding.severity == "info" or finding.role == "consequence":
            return
        if finding.lead_s is not None and finding.role == "precursor":
            return  # it came true: the cause says it all
        if notice.updated and not _WORTH_TELLING_AGAIN & set(notice.changed):
            return
        line = Text(finding.severity.upper(), style=SEVERITY_STYLE[finding.severity])
        line.append(f" {finding.rule}: ", style="bold not red")
        said = foresee(finding) if finding.role == "precursor" else one_line(finding.title)
        self._line(line.append(said, style="not bold default"))
        if change := fix(finding):
            self._line(Text.assemble(("  fix: ", "green"), change))

    def _verdict(self, verdict: Verdict) -> None:
        good = verdict.exit_code == 0 and verdict.outcome in GOOD
        line = Text(verdict_word(verdict), style="bold green" if good else "bold red")
        self._line(line.append(f" {verdict_sentence(verdict)}", style="not bold default"))
        if self._quiet:
            return
        for last in verdict.last_lines:
            self._line(Text(f"  | {one_line(last)}", style="dim"))
        if verdict.log:
            self._line(Text(f"  log: {one_line(verdict.log)}", style="dim"))

    def _line(self, text: Text) -> None:
        stamp = "" if self._lead else f"{datetime.now():%H:%M:%S}  "
        head = Text(self._lead or stamp, style="dim")
        for row in self._rows(head, text):
            self._console.print(row, soft_wrap=True)

    def _rows(self, head: Text, text: Text) -> list[Text]:
        """One line in a pipe, where programs read it; on a terminal folded between words."""
        whole = Text.assemble(head, text)
        room = self._console.width - head.cell_len
        if not self._console.is_terminal or whole.cell_len <= self._console.width or room < _LEAST:
            return [whole]
        rows = text.wrap(self._console, room)
        for row in rows:
            row.rstrip()
        rest = [Text.assemble(" " * head.cell_len, row) for row in rows[1:]]
        return [Text.assemble(head, rows[0]), *rest]
