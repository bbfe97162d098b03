"""Interfaces and addresses: names that do not exist, addresses that nobody answers on."""

from __future__ import annotations

import re
from collections.abc import Iterator

from forensics.findings import Evidence, Finding, Remedy
from forensics.incident import Failure
from forensics.remedies import env, kept
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.said import Said, said

_GLOO, _NCCL = "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"
_NOT_FOUND = re.compile(
    r"Unable to find address for: (?P<name>\S+)|(?P<none>no socket interface found)"
    r"|Unable to find interface (?P<iface>\S+)"
)
_SETTING = re.compile(
    r"\b(?P<variable>(?:GLOO|TP|NCCL)_SOCKET_IFNAME)(?:=| set by environment to )['\"]?"
    r"(?P<value>[^\s'\"]+)"
)
_SYNTAX = "^="
_BESIDE = 20
"""Lines within which an exception follows from NCCL's line before it."""


@rule(
    "interface-not-found",
    class_="network_interface",
    summary="Gloo or NCCL found no network interface of the name that it was given",
    needs="the refusal of Gloo or NCCL",
)
def interface_not_found(case: Case) -> Iterator[Finding | Skip]:
    """The first rank that was refused; the others are refused for the same setting."""
    failed = {id(failure.event): failure for failure in case.run.failures}
    refused = list(said(case, _NOT_FOUND))
    told = next((line for line in refused if id(line.event) in failed), None)
    told = told or next(iter(refused), None)
    if told is None:
        return
    failure = failed.get(id(told.event)) or _failed_on(case, told)
    name = told.match["name"] or told.match["iface"]
    by_nccl = told.match["none"] is not None
    variable = _NCCL if by_nccl else _GLOO
    value = _setting(case, variable, name)
    yield case.finding(
        "interface-not-found",
        "network_interface",
        told.event,
        title=_title(variable, value, name),
        explanation=_explain(variable, value, name),
        evidence=[
            *_settings_evidence(case, variable),
            *([told.evidence(case)] if by_nccl else []),
            *(case.failure_evidence(failure) if failure else []),
            told.evidence(case),
        ],
        remedies=_remedies(variable, value),
        not_helpful=[] if by_nccl else [f"{_NCCL}: it is another library's variable"],
        rank=failure.rank if failure else told.event.rank,
        phase=failure.phase if failure else told.event.phase,
        weight=FAILURE,
        facts={"variable": variable, "value": value, "refused": name},
    )


def _setting(case: Case, variable: str, refused: str | None) -> str | None:
    if value := case.run.launch.env.get(variable):
        return value
    lines = (line for line in said(case, _SETTING) if line.match["variable"] == variable)
    return next((line.match["value"] for line in lines), None) or refused


def _failed_on(case: Case, told: Said) -> Failure | None:
    """The failure that NCCL's own line, which names no rank, led to: the first after it."""
    if told.event.rank is not None:
        return None
    after = (
        f for f in case.run.failures if f.event.source == told.event.source and f.line > told.line
    )
    return next((f for f in after if f.line - told.line <= _BESIDE), None)


def _settings_evidence(case: Case, variable: str) -> list[Evidence]:
    """The line that sets the variable, if the log shows it."""
    lines = (line for line in said(case, _SETTING) if line.match["variable"] == variable)
    first = next(lines, None)
    return [first.evidence(case)] if first else []


def _title(variable: str, value: str | None, name: str | None) -> str:
    library = "NCCL" if variable == _NCCL else "Gloo"
    if value and value[0] in _SYNTAX and library == "Gloo":
        return f"{variable}={value}: Gloo takes a plain interface name, not NCCL's ^ or ="
    if value:
        return f"{library} found no network interface {name or value}"
    return f"{library} found no network interface to use"


def _explain(variable: str, value: str | None, name: str | None) -> str:
    if variable == _GLOO and value and value[0] in _SYNTAX:
        return (
            f"A leading ^ (all but) or = (exactly) is understood by NCCL only. Gloo read {value} "
            f"as names and looked for an interface called {name or value}. Give it one name, or "
            "unset it where the host's own name resolves to the right address."
        )
    if variable == _GLOO:
        return (
            f"No interface called {name} exists on this host, or it has no address. Names differ "
            "between hosts and inside containers: look at `ip -br addr` where the server runs."
        )
    return (
        "None of the host's interfaces fits the setting. In a container without the host's "
        "network, the names of the host do not exist."
    )


def _remedies(variable: str, value: str | None) -> list[Remedy]:
    return kept(
        env(
            variable,
            "set",
            "one interface that exists on this host and reaches the other nodes",
            to="<interface>",
            now=value,
        )
    )


@rule(
    "gloo-interface-syntax",
    class_="network_interface",
    severity="warning",
    role="precursor",
    summary="GLOO_SOCKET_IFNAME is set in NCCL's syntax",
    needs="the variable's value in the log",
    playbook="interface-not-found",
)
def gloo_interface_syntax(case: Case) -> Iterator[Finding | Skip]:
    """The value is visible before any rank starts."""
    for line in said(case, _SETTING):
        variable, value = line.match["variable"], line.match["value"]
        if variable == _NCCL or value[0] not in _SYNTAX:
            continue
        yield case.finding(
            "gloo-interface-syntax",
            "network_interface",
            line.event,
            severity="warning",
            role="precursor",
            title=f"{variable}={value}: only NCCL understands a leading {value[0]}",
            explanation="Gloo takes interface names as they are and will find none of this name.",
            known_at=case.known(line.event),
            rank=None,
            phase="init",
            facts={"variable": variable, "value": value},
            playbook="interface-not-found",
        )
        return
