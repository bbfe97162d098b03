"""What a search is asked: the flag, a value that holds, one that fails, and what must be left."""

from __future__ import annotations

from dataclasses import dataclass

from forensics.reproduce.choosing import Choice, PlanError
from forensics.reproduce.flag_values import typed, value_in
from forensics.reproduce.model import Goal, SearchAsk
from forensics.reproduce.subject import Subject
from forensics.reproduce.wished import field_of

FRACTION = "mem_fraction_static"


@dataclass(frozen=True, slots=True)
class SearchWish:
    """What the user says of a search."""

    flag: str
    known_good: float | None
    margin_gib: float
    goal: Goal


def asked(wish: SearchWish, subject: Subject, choice: Choice | None) -> SearchAsk:
    """The bracket to begin with: bad is the launch's own value if that failed, good what is known.

    A remedy for the same flag is believed to hold. Raises PlanError for what is no number.
    """
    name = field_of(wish.flag, subject.release)
    kind = subject.release.fields[name].kind
    if kind not in ("int", "float"):
        raise PlanError(f"--search {name}: only a flag that is a number can be searched")
    here = value_in(subject.argv, name)
    here = subject.launch.number(name) if here is None else here
    advised = choice.flags.get(name) if choice is not None else None
    good = wish.known_good
    if good is None and isinstance(advised, int | float):
        good = float(advised)
    failed = subject.failure is not None or not subject.logs
    if not failed and good is None:
        good = here
    return SearchAsk(
        name=name,
        good=good,
        bad=here if failed else None,
        whole=kind == "int",
        margin_gib=wish.margin_gib,
        goal="capture" if name == FRACTION and wish.goal == "ready" else wish.goal,
    )


def start_of(ask: SearchAsk) -> Choice:
    """The launch that a search without a control begins with: at the value that holds."""
    if ask.good is None:
        raise PlanError(f"--search {ask.name} without a control needs --known-good VALUE")
    value = int(ask.good) if ask.whole else ask.good
    return Choice({ask.name: value}, is_start=True)


def sentence_of(ask: SearchAsk) -> str:
    """What the search does, in a sentence."""
    margin = f", with {ask.margin_gib:g} GiB left after capture" if ask.margin_gib else ""
    most = f"at most {ask.trials} launches"
    if ask.bad is None:
        start = "" if ask.good is None else f" from {typed(ask.good)} on"
        return f"search: the furthest {ask.name}{start} that holds{margin}, {most}, then once more."
    good = "" if ask.good is None else f", {typed(ask.good)} being taken to hold"
    return (
        f"search: the {ask.name} nearest to {typed(ask.bad)} that holds{margin}{good}; {most}, "
        "then the best once more."
    )
