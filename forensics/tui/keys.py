"""Every key of the timeline as data: bindings, footer, help and tests are made from this.

Keys that only mean something inside one pane (scrolling, the slider of the memory view) are the
pane's own; those that are the same in all panes are here.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """One command: its keys as Textual names them, what it does, and where it is shown."""

    keys: tuple[str, ...]
    action: str
    """Textual action of the timeline's screen."""
    text: str
    group: str
    foot: str = ""
    """Word in the footer; empty if it is not shown there."""

    @property
    def label(self) -> str:
        """The keys as they stand on the keyboard: `e`, `Ctrl+P`, `?`."""
        return " ".join(label_of(key) for key in self.keys)


_LABELS = {
    "question_mark": "?",
    "slash": "/",
    "plus": "+",
    "equals_sign": "=",
    "minus": "-",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "comma": ",",
    "full_stop": ".",
    "space": "Space",
    "enter": "Enter",
    "escape": "Esc",
    "tab": "Tab",
    "shift+tab": "Shift+Tab",
    "left": "Left",
    "right": "Right",
    "up": "Up",
    "down": "Down",
    "home": "Home",
    "end": "End",
    "f1": "F1",
    "ctrl+p": "Ctrl+P",
    "ctrl+c": "Ctrl+C",
    "0": "0",
}


def label_of(key: str) -> str:
    """A key as it stands on the keyboard."""
    return _LABELS.get(key, key)


KEYS: tuple[Key, ...] = (
    Key(("enter",), "evidence", "Go to what is under the cursor", "Go", "evidence"),
    Key(("v",), "evidence", "Next line of evidence", "Go", "more evidence"),
    Key(("c",), "copy('new launch')", "Copy the new launch", "Copy", "copy launch"),
    Key(("e",), "go('finding', 1)", "Next finding", "Go", "finding"),
    Key(("E",), "go('finding', -1)", "Previous finding", "Go"),
    Key(("w",), "go('warning', 1)", "Next warning or error", "Go", "warning"),
    Key(("W",), "go('warning', -1)", "Previous warning or error", "Go"),
    Key(("t",), "go('traceback', 1)", "Next traceback", "Go"),
    Key(("T",), "go('traceback', -1)", "Previous traceback", "Go"),
    Key(("right_square_bracket",), "rank(1)", "Next rank", "Go"),
    Key(("left_square_bracket",), "rank(-1)", "Previous rank", "Go"),
    Key(("full_stop",), "run(1)", "Next run", "Go"),
    Key(("comma",), "run(-1)", "Previous run", "Go"),
    Key(("g", "home"), "ends(-1)", "To the beginning", "Go"),
    Key(("G", "end"), "ends(1)", "To the end", "Go"),
    Key(("1",), "page('detail')", "The finding", "Pages", "pages"),
    Key(("2",), "page('events')", "The events", "Pages"),
    Key(("3",), "page('raw')", "The log itself", "Pages"),
    Key(("4", "m"), "page('memory')", "Memory, and what another fraction would leave", "Pages"),
    Key(("5", "s"), "page('serving')", "Serving: load and throughput", "Pages"),
    Key(("tab",), "app.focus_next", "To the next pane", "Pages"),
    Key(("shift+tab",), "app.focus_previous", "To the pane before", "Pages"),
    Key(("escape",), "back", "Back: close, clear, then to the finding", "Pages"),
    Key(("plus", "equals_sign"), "lanes('zoom', 2)", "Zoom in", "Lanes"),
    Key(("minus",), "lanes('zoom', 0.5)", "Zoom out", "Lanes"),
    Key(("0",), "lanes('whole')", "The whole run", "Lanes"),
    Key(("h", "left"), "lanes('pan', -1)", "Earlier", "Lanes"),
    Key(("l", "right"), "lanes('pan', 1)", "Later", "Lanes"),
    Key(("o",), "lanes('fold_all')", "Fold or unfold ranks that look alike", "Lanes"),
    Key(("slash",), "ask('search')", "Search in the log", "Find", "search"),
    Key(("n",), "found(1)", "Next hit", "Find"),
    Key(("N",), "found(-1)", "Hit before", "Find"),
    Key(("f",), "ask('filter')", "Filter the events", "Find", "filter"),
    Key(("y",), "copy('line')", "Copy the line", "Copy", "copy line"),
    Key(("F",), "copy('finding')", "Copy the finding", "Copy"),
    Key(("space",), "pause", "Pause and go on, while a log is followed", "Program", "pause"),
    Key(("ctrl+p",), "app.command_palette", "Every command by its name", "Program"),
    Key(("question_mark", "f1"), "help", "This help", "Program", "help"),
    Key(("q",), "leave", "Quit", "Program", "quit"),
)

GROUPS = ("Go", "Pages", "Find", "Copy", "Lanes", "Program")
"""Groups of the help, in order."""

_FOOT = ("enter", "c", "e", "1", "slash", "question_mark", "q", "f", "v", "y", "w", "space")
"""First keys of the commands in the footer, in its order."""

PANE_KEYS: tuple[tuple[str, str], ...] = (
    ("j k Up Down", "one line down, up"),
    ("PgDn PgUp", "one page down, up; Ctrl+D and Ctrl+U half of it"),
    ("b u U", "events: set a mark; to the next mark, to the one before"),
    ("z", "log: wrap long lines, or cut them"),
    ("Left Right", "log: move cut lines sideways; memory: move the fraction by 0.01"),
    ("Shift+Left", "memory: move it by 0.001; Shift+Right up; x back to the launch's own"),
    ("*", "log: evidence of the finding that is shown"),
)
"""Keys that all panes share for moving in them; each pane binds them itself."""


def of_group(group: str) -> list[Key]:
    """The commands of one group, in order."""
    return [key for key in KEYS if key.group == group]


def footer() -> list[tuple[str, str]]:
    """Keys and words of the footer, the most useful first: the last ones may not fit."""
    shown = sorted((key for key in KEYS if key.foot), key=lambda key: _FOOT.index(key.keys[0]))
    return [("1-5" if key.foot == "pages" else label_of(key.keys[0]), key.foot) for key in shown]
