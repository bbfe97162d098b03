"""Config deltas: one change to the next launch, named as the user's release names it.

`flag` and its kin make a remedy only where the release has the flag and the change is a change;
otherwise they give None, and `kept` drops it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from forensics.findings import Basis, Direction, Finding, Remedy, RemedyKind
from forensics.launch import DiffLine, Launch, diff, not_repeated, with_changes
from forensics.launch.naming import translate
from forensics.releases import names_of


def kept(*remedies: Remedy | None) -> list[Remedy]:
    """The remedies that exist, without repeats, in order."""
    seen: dict[tuple[str, str, str], Remedy] = {}
    for remedy in remedies:
        if remedy is not None:
            seen.setdefault((remedy.kind, remedy.name, repr(remedy.to)), remedy)
    return list(seen.values())


def flag(
    launch: Launch,
    name: str,
    to: Any,
    reason: str,
    *,
    direction: Direction | None = None,
    basis: Basis = "documented",
    cost: str = "",
    effect: dict[str, Any] | None = None,
) -> Remedy | None:
    """A flag set to a value; None takes it back to its default.

    `direction` follows from the old value where both are numbers. The result is None if the
    release has no such flag, or if the flag has this value already. A switch that the release has
    merged into another flag is named as that flag.
    """
    words = translate(name, to, launch.table())
    if words is None:
        return None
    if len(words) == 1 and name not in names_of(next(iter(words))):
        (name, to), direction = next(iter(words.items())), "set"
    now = launch.get(name)
    if now == to and (now is not None or name in launch.flags):
        return None
    return Remedy(
        kind="flag",
        name=release_name(launch, name),
        direction=direction or _direction(now, to),
        from_=now,
        to=to,
        reason=reason,
        basis=basis,
        cost=cost,
        effect=effect or {},
    )


def release_name(launch: Launch, name: str) -> str:
    """The name that a field has in the launch's release, or the given one."""
    table = launch.table()
    return next((known for known in names_of(name) if table.has(known)), name)


def _direction(now: Any, to: Any) -> Direction:
    if to is None or to is False:
        return "remove" if to is None else "disable"
    if to is True:
        return "enable"
    numbers = [v for v in (now, to) if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(numbers) == 2:
        return "increase" if numbers[1] > numbers[0] else "decrease"
    return "set"


def _plain(
    kind: RemedyKind,
    name: str,
    direction: Direction,
    reason: str,
    *,
    to: Any = None,
    now: Any = None,
    basis: Basis = "documented",
    cost: str = "",
    effect: dict[str, Any] | None = None,
) -> Remedy:
    return Remedy(
        kind=kind,
        name=name,
        direction=direction,
        from_=now,
        to=to,
        reason=reason,
        basis=basis,
        cost=cost,
        effect=effect or {},
    )


env = partial(_plain, "env")
package = partial(_plain, "package")


def action(name: str, reason: str, *, basis: Basis = "documented", cost: str = "") -> Remedy:
    """Something to do that is no flag, variable or package."""
    return Remedy(kind="action", name=name, direction="do", reason=reason, basis=basis, cost=cost)


@dataclass(frozen=True, slots=True)
class NewLaunch:
    """The next launch: words, environment, and the difference to the last one."""

    command: list[str] | None = None
    env: dict[str, str] = field(default_factory=dict)
    diff: list[DiffLine] = field(default_factory=list)
    not_repeated: list[str] = field(default_factory=list)
    """Flags left out, since SGLang may have picked their values itself."""
    remove_env: list[str] = field(default_factory=list)
    """Variables to take away; the log need not have shown them set."""


def new_launch(launch: Launch, findings: Sequence[Finding]) -> NewLaunch:
    """The launch with the first remedy that can be written as a command.

    One variable at a time: only the best remedy of the first finding that has one is applied.
    """
    if not launch.flags and launch.command is None:
        return NewLaunch()
    for remedy in _writable(findings):
        changes = {remedy.name: _value(remedy)} if remedy.kind == "flag" else {}
        variables = {remedy.name: _text(remedy)} if remedy.kind == "env" else {}
        after = with_changes(launch, changes, variables)
        gone = [name for name, text in variables.items() if text is None]
        lines = [DiffLine("-", name) for name in gone if name not in launch.env]
        lines += diff(launch, after)
        return NewLaunch(after.argv(), after.env, lines, not_repeated(after), gone)
    return NewLaunch()


def is_runnable(remedy: Remedy) -> bool:
    """Whether a remedy can be written as a command: a flag or a variable whose value is known."""
    placeholder = isinstance(remedy.to, str) and remedy.to.startswith("<")
    return remedy.kind in ("flag", "env") and not placeholder


FREE_PORTS = ("<free port>", "<fixed free port>")
"""Placeholders for which a machine can be asked."""

_VALUE_OF = re.compile(r"<the value of (--[\w-]+)>")


def stands_for(remedy: Remedy) -> str | None:
    """The flag of the launch whose value a remedy takes over, which is spelled wrong there."""
    found = _VALUE_OF.fullmatch(remedy.to) if isinstance(remedy.to, str) else None
    return found[1] if found and remedy.kind == "flag" else None


def can_be_tried(remedy: Remedy, launch: Launch) -> bool:
    """Whether a launch with the remedy can be made without asking anybody for a value."""
    if (flag := stands_for(remedy)) is not None:
        return any(word.split("=", 1)[0] == flag for word in launch.command or ())
    return is_runnable(remedy) or (remedy.kind == "flag" and remedy.to in FREE_PORTS)


def _writable(findings: Sequence[Finding]) -> Iterable[Remedy]:
    for finding in findings:
        yield from filter(is_runnable, finding.remedies[:1])


def _value(remedy: Remedy) -> Any:
    return False if remedy.direction == "disable" and remedy.to is None else remedy.to


def _text(remedy: Remedy) -> str | None:
    return None if remedy.to is None or remedy.direction == "remove" else str(remedy.to)
