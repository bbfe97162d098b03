"""The timeline: lanes above, panes below, and what happens when something is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.command import Provider
from textual.screen import Screen
from textual.widget import Widget

from forensics.tui.clipboard import copy, text_of
from forensics.tui.commands import ToolCommands
from forensics.tui.crumbs import TONE_STYLE, Crumbs, RunBar, RunChosen, names_of, trail_of
from forensics.tui.desk import Desk
from forensics.tui.engine import Arrived, Broke, Engine, News, Progress
from forensics.tui.foot import Foot, PageChosen, Tabs
from forensics.tui.help import HelpScreen
from forensics.tui.keys import KEYS
from forensics.tui.lanes import LanesPane
from forensics.tui.layout import layout_of
from forensics.tui.model import Copied, FindingChosen, LineChosen, Loaded, RankChosen, Selection
from forensics.tui.pages import Pages
from forensics.tui.prompt import Asked, Prompt, PromptClosed, Purpose
from forensics.tui.stops import Kind
from forensics.tui.store import CriteriaError

if TYPE_CHECKING:
    from forensics.tui.app import TimelineApp


class TimelineScreen(Screen[None]):
    """One engine, its lanes and panes."""

    COMMANDS: ClassVar[set[type[Provider]]] = {ToolCommands}  # type: ignore[assignment]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(",".join(key.keys), key.action, key.text, show=False) for key in KEYS
    ]

    def __init__(self, engine: Engine) -> None:
        super().__init__()
        self.engine = engine
        self.desk: Desk | None = None
        self._held: Loaded | None = None
        self._paused = self._asked_to_leave = False
        self._drawn_run = -1
        self._focus_before: Widget | None = None

    def compose(self) -> ComposeResult:
        """Top to bottom."""
        yield Crumbs(id="crumbs")
        yield RunBar(id="runs")
        yield LanesPane(id="lanes")
        yield Tabs(id="tabs")
        yield Pages(self.engine.store, id="pages")
        yield Prompt(id="prompt")
        yield Foot(id="foot")

    def on_mount(self) -> None:
        """Everything is there: the log can be read at once, the engine may run."""
        self.on_resize()
        self.crumbs.trail(names_of(source.path for source in self.engine.store.sources))
        self.action_page("raw")
        self.engine.start(self.post_message)

    def on_resize(self, event: events.Resize | None = None) -> None:
        """Divide the screen by its size."""
        layout = layout_of(self.size.width, self.size.height)
        self.lanes.most_rows = layout.lanes
        self.pages.divide(layout.together)

    @property
    def lanes(self) -> LanesPane:
        """The lanes."""
        return self.query_one(LanesPane)

    @property
    def pages(self) -> Pages:
        """The panes."""
        return self.query_one(Pages)

    @property
    def crumbs(self) -> Crumbs:
        """The top line."""
        return self.query_one(Crumbs)

    # What the engine tells

    def on_progress(self, message: Progress) -> None:
        """Show how far the reading is."""
        share = f" {message.done / message.total:.0%}" if message.total else ""
        self.crumbs.state(f"reading{share}")

    def on_arrived(self, message: Arrived) -> None:
        """Show what was read, or what has become of it."""
        if self._paused:
            self._held = message.loaded
        elif not message.loaded.diagnosis.reports:
            self.crumbs.state("no launch was found" if not message.loaded.live else "no launch yet")
        elif self.desk is None:
            self.desk = Desk(message.loaded)
            if not message.loaded.live:
                self.crumbs.state("")
            self.draw_run()
            self.action_page("detail")
        else:
            self.desk.grown(message.loaded)
            self.draw_run()

    def on_news(self, message: News) -> None:
        """What a followed launch is doing."""
        if not self._paused:
            self.crumbs.state(message.text, TONE_STYLE.get(message.tone, ""))

    def on_broke(self, message: Broke) -> None:
        """The engine cannot go on: nor can we."""
        cast("TimelineApp", self.app).fail(message.error)

    # Drawing

    def draw_run(self) -> None:
        """Draw the run that is looked at, and what is selected in it."""
        if self.desk is None:
            return
        loaded, run = self.desk.loaded, self.desk.selection.run
        self._drawn_run = run
        self.lanes.show(loaded, run)
        self.pages.show(loaded, run)
        self.query_one(RunBar).show(loaded, run)
        self.draw()

    def draw(self) -> None:
        """Every pane follows the selection."""
        if self.desk is not None:
            self.lanes.select(self.desk.selection)
            self.pages.select(self.desk.selection)
            self.crumbs.trail(trail_of(self.desk.loaded, self.desk.selection))

    def say(self, text: str) -> None:
        """A notice for a moment."""
        self.app.notify(text, markup=False, timeout=3)

    def _move(self, moved: bool, otherwise: str = "") -> None:
        """Draw after a move, or say that it leads nowhere."""
        if not moved:
            self.say(otherwise)
        elif self.desk is not None and self.desk.selection.run != self._drawn_run:
            self.draw_run()
        else:
            self.draw()

    # What was chosen in a pane

    def on_line_chosen(self, message: LineChosen) -> None:
        """Go to a line."""
        if self.desk is not None:
            self._move(self.desk.line(message.source, message.line, message.event_index))
        if message.opened:
            if self.desk is None:
                self.pages.select(Selection(source=message.source, line=message.line))
            self.action_page("raw")

    def on_finding_chosen(self, message: FindingChosen) -> None:
        """Go to a finding."""
        if self.desk is not None:
            self._move(self.desk.to_finding(message.finding_id))

    def on_rank_chosen(self, message: RankChosen) -> None:
        """Look at one rank, or at all."""
        if self.desk is not None:
            self._move(self.desk.rank(message.rank))

    def on_run_chosen(self, message: RunChosen) -> None:
        """Look at another run."""
        self.action_to_run(message.run_index)

    def on_page_chosen(self, message: PageChosen) -> None:
        """Look at another page."""
        self.action_page(message.page)

    def on_copied(self, message: Copied) -> None:
        """A pane hands over something to copy."""
        copy(self.app, message.text, message.what)

    # Keys

    def action_page(self, page: str) -> None:
        """Bring a page to the front, and give it the keys."""
        self.pages.see(page)
        self.query_one(Tabs).choose(page)
        self.pages.focus_page()

    def action_evidence(self) -> None:
        """To the evidence of the finding, one line after the other."""
        if self.desk is not None:
            anew = self.pages.page != "raw"
            self._move(self.desk.evidence(anew=anew), "no finding is selected")
            self.action_page("raw")

    def action_go(self, kind: Kind, step: int) -> None:
        """To the next finding, warning or traceback, or the one before."""
        if self.desk is not None:
            way = "further" if step > 0 else "earlier"
            self._move(self.desk.go(kind, step), f"no {way} {kind}")

    def action_rank(self, step: int) -> None:
        """Look at the next rank, or the one before."""
        if self.desk is not None:
            self._move(self.desk.next_rank(step), "this launch names no other rank")

    def action_run(self, step: int) -> None:
        """Look at the next run, or the one before."""
        if self.desk is not None:
            self.action_to_run(self.desk.selection.run + step)

    def action_to_run(self, run_index: int) -> None:
        """Look at a run."""
        if self.desk is not None:
            self._move(self.desk.run(run_index), "there is no further run")

    def action_ends(self, way: int) -> None:
        """To the first line of the run, or the last."""
        if self.desk is not None:
            self._move(self.desk.ends(way), "the log says nothing of this launch")

    def action_lanes(self, method: str, *arguments: float) -> None:
        """Zoom, pan, fold: what the lanes do."""
        getattr(self.lanes, method)(*arguments)

    def action_ask(self, purpose: Purpose) -> None:
        """Open the prompt."""
        if purpose == "filter" or self.pages.page not in ("events", "raw"):
            self.action_page("events" if purpose == "filter" else "raw")
        self._focus_before = self.focused
        text = self.pages.table.filter_text if purpose == "filter" else None
        self.query_one(Prompt).ask(purpose, text)

    def on_prompt_closed(self, message: PromptClosed) -> None:
        """The keys go back to where they went."""
        if self._focus_before is not None:
            self._focus_before.focus()

    def on_asked(self, message: Asked) -> None:
        """Search, or filter."""
        try:
            if message.purpose == "filter":
                self.pages.table.set_filter(message.text)
            else:
                self.pages.searched.search.begin(message.text)
                self.action_found(1)
        except CriteriaError as error:
            self.say(str(error))

    def only(self, typed: str) -> None:
        """Filter the events."""
        self.action_page("events")
        self.on_asked(Asked("filter", typed))

    def action_found(self, way: int) -> None:
        """To the next hit, or the one before."""
        self.pages.searched.found(way)

    def action_copy(self, what: str) -> None:
        """Copy the new launch, the line, or the finding."""
        text = self.pages.searched.line_text() if what == "line" else text_of(what, self.desk)
        if text:
            copy(self.app, text, f"the {what}")
        else:
            self.say(f"there is no {what} to copy")

    def action_pause(self) -> None:
        """Stop drawing what comes, and go on."""
        if not self.engine.live:
            return self.say("nothing is followed: the log is read as it is")
        self._paused = not self._paused
        self.crumbs.state("PAUSED, space goes on" if self._paused else "", "bold yellow")
        if not self._paused and self._held is not None:
            self.post_message(Arrived(self._held))
            self._held = None

    def action_help(self) -> None:
        """Every key."""
        self.app.push_screen(HelpScreen())

    def action_back(self) -> None:
        """Back to the finding; there, to all ranks."""
        if self.desk is not None and self.pages.page == "detail":
            self._move(self.desk.rank(None))
        self._asked_to_leave = False
        self.action_page("detail")

    def action_leave(self) -> None:
        """Quit; a command that still runs is ended, which takes a second word."""
        if self.engine.runs_command and not self._asked_to_leave:
            self._asked_to_leave = True
            self.say("the command still runs: q again ends it, Esc lets it run")
            return
        self.app.exit(0)
