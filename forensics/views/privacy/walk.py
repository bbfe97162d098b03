"""A diagnosis, or any data, with pseudonyms in place of names."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from pydantic import BaseModel

from forensics.diagnosis import Diagnosis
from forensics.events import Event
from forensics.views.privacy.names import Names

T = TypeVar("T")
Say = Callable[[str], str]

_USER_VARIABLES = ("USER", "LOGNAME", "USERNAME", "SUDO_USER")
_HOST_VARIABLES = ("HOSTNAME", "HOST", "NODE_NAME", "POD_NAME", "SLURMD_NODENAME", "MASTER_ADDR")
_HOST_FLAGS = ("host", "dist_init_addr", "nccl_init_addr", "disaggregation_bootstrap_addr")


def anonymous(diagnosis: Diagnosis, names: Names | None = None) -> Diagnosis:
    """A copy of a diagnosis that holds no names: whatever view draws it shows none.

    Records that are no failures lose their text; nothing quotes them but findings, which have
    their own copies of the lines.
    """
    names = names or Names()
    _facts(diagnosis, names)
    plain = _without_texts(diagnosis)
    mapped(plain, names.learn)
    return mapped(plain, names.hide)


def hidden(data: T, names: Names | None = None) -> T:
    """Any nested data without names: rows, documents, lists of words."""
    names = names or Names()
    mapped(data, names.learn)
    return mapped(data, names.hide)


def _facts(diagnosis: Diagnosis, names: Names) -> None:
    """What the incident says to be a host, a user, a folder."""
    for source in diagnosis.incident.sources:
        if source.node:
            names.add_host(source.node)
        names.add_folder(source.path)
    for run in diagnosis.incident.runs:
        for event in run.events:
            if event.node:
                names.add_host(event.node)
        for launch in (run.launch, *run.launches.values()):
            for name in _USER_VARIABLES:
                names.add_user(launch.env.get(name, ""))
            for name in _HOST_VARIABLES:
                names.add_host(launch.env.get(name, "").partition(":")[0])
            for name in _HOST_FLAGS:
                names.add_host(str(launch.flags.get(name) or "").partition(":")[0])
            for value in launch.flags.values():
                if isinstance(value, str) and value.startswith("/"):
                    names.add_folder(value)


def _without_texts(diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis with events that keep their place, time and figures alone, but for failures."""
    incident = copy.copy(diagnosis.incident)
    bare: dict[int, Event] = {}
    failed = {id(f.event) for run in incident.runs for f in run.failures}

    def stripped(event: Event) -> Event:
        if id(event) in failed:
            return event
        if id(event) not in bare:
            figures = {k: v for k, v in event.fields.items() if isinstance(v, int | float)}
            bare[id(event)] = replace(event, text="", node=None, fields=dict(figures))
        return bare[id(event)]

    runs = {}
    for run in incident.runs:
        runs[id(run)] = small = copy.copy(run)
        small.events = [stripped(event) for event in run.events]
        small.ready = stripped(run.ready) if run.ready else None
        small.readies = {source: stripped(event) for source, event in run.readies.items()}
        small.ranks = {key: copy.copy(facts) for key, facts in run.ranks.items()}
        for facts in small.ranks.values():
            facts.events = [stripped(event) for event in facts.events]
            facts.last = stripped(facts.last) if facts.last else None
    incident.runs = list(runs.values())
    result = copy.copy(diagnosis)
    result.incident = incident
    result.reports = [copy.copy(report) for report in diagnosis.reports]
    for report in result.reports:
        report.run = runs.get(id(report.run), report.run)
    return result


def mapped(data: T, say: Say) -> T:
    """A copy of nested data in which `say` has put every string; shared parts stay shared."""
    result: T = _mapped(data, say, {})
    return result


def _mapped(data: Any, say: Say, memo: dict[int, Any]) -> Any:
    if isinstance(data, str):
        return say(data)
    if data is None or isinstance(data, int | float):
        return data
    if id(data) in memo:
        return memo[id(data)][0]
    if isinstance(data, dict):
        result: Any = {
            _mapped(key, say, memo): _mapped(item, say, memo) for key, item in data.items()
        }
    elif isinstance(data, list | tuple | set | frozenset):
        result = type(data)(_mapped(item, say, memo) for item in data)
    elif isinstance(data, BaseModel):
        changed = {name: _mapped(getattr(data, name), say, memo) for name in _names(data)}
        result = data.model_copy(update=changed)
    elif is_dataclass(data) and not isinstance(data, type):
        result = copy.copy(data)
        for one in fields(data):
            object.__setattr__(result, one.name, _mapped(getattr(data, one.name), say, memo))
    else:
        result = data  # a table of figures, a time
    memo[id(data)] = (result, data)  # the original is kept, or its id could be given anew
    return result


def _names(model: BaseModel) -> list[str]:
    return list(type(model).model_fields)
