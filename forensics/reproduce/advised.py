"""A change that the diagnosis advises: the best remedy that can be typed, or a numbered one.

One variable at a time: a remedy that a release spells as several flags says so.
"""

from __future__ import annotations

from forensics.findings import Finding, Remedy
from forensics.launch import Launch, Value
from forensics.launch.naming import translate
from forensics.remedies import FREE_PORTS, is_runnable, stands_for
from forensics.reproduce.choosing import Choice, PlanError, typed_value
from forensics.reproduce.wished import field_of, value_of


def of_remedies(
    finding: Finding, launch: Launch, number: int | None = None, free_port: int | None = None
) -> Choice:
    """What a remedy of a finding changes in a launch.

    Where a free port is advised, `free_port` is taken; where a flag is spelled wrong, its value.

    Raises PlanError where there is no remedy, or where it is left to the user.
    """
    remedies = finding.remedies
    if number is not None:
        if number > len(remedies):
            has = f"{len(remedies)} remed{'y' if len(remedies) == 1 else 'ies'}"
            raise PlanError(f"--remedy {number}: {finding.rule} has {has}")
        return _choice(remedies[number - 1], launch, free_port)
    first: PlanError | None = None
    for remedy in remedies:
        try:
            return _choice(remedy, launch, free_port)
        except PlanError as error:
            first = first or error
    raise first or PlanError(f"nothing is advised for {finding.rule}: --set names a change to try")


def _choice(advised: Remedy, launch: Launch, free_port: int | None) -> Choice:
    remedy, release = _filled(advised, launch, free_port), launch.table()
    if not is_runnable(remedy):
        raise PlanError(_yours(remedy))
    if remedy.kind == "env":
        gone = remedy.to is None or remedy.direction == "remove"
        return Choice(env={remedy.name: None if gone else str(remedy.to)}, remedy=remedy)
    value = False if remedy.direction == "disable" and remedy.to is None else remedy.to
    flags = translate(remedy.name, value, release)
    if not flags:
        raise PlanError(f"sglang {release.version} has no flag for {remedy.name}")
    wrong = stands_for(advised)
    return Choice(
        flags,
        drop=(wrong,) if wrong else (),
        remedy=remedy,
        merged=remedy.name if len(flags) > 1 else None,
    )


def _filled(remedy: Remedy, launch: Launch, free_port: int | None) -> Remedy:
    """A remedy with its placeholder replaced, where this machine or the launch knows the value."""
    value: Value = None
    if (flag := stands_for(remedy)) is not None:
        value = _typed(remedy.name, typed_value(launch, flag), launch)
    elif remedy.kind == "flag" and remedy.to in FREE_PORTS:
        value = free_port
    return remedy if value is None else remedy.model_copy(update={"to": value})


def _typed(name: str, text: str | None, launch: Launch) -> Value:
    release = launch.table()
    try:
        return None if text is None else value_of(field_of(name, release), text or None, release)
    except PlanError:
        return None


def _yours(remedy: Remedy) -> str:
    """What is to be done about a remedy that is left to the user."""
    words = remedy.name.replace("_", " ")
    if remedy.kind == "package":
        to = f" {remedy.to}" if remedy.to else ""
        return (
            f"`{remedy.direction} {remedy.name}{to}` is yours to make: make it, and run the launch "
            "again with `forensics run`; or name the Python that has it with --python, and another "
            "change with --set"
        )
    if remedy.name == "drop_argument":
        return f"{remedy.reason}: --unset FLAG leaves it out"
    if remedy.kind == "action":
        return f"`{words}` is yours to do: --set names a change that can be tried here"
    return f"`{remedy.name}` needs a value of yours: give it with --set"
