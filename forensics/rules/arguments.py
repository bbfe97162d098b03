"""Arguments that the launcher refused: flags of another release, abbreviations, wrong values."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from forensics.events import Event
from forensics.findings import Finding, Remedy
from forensics.launch import Launch
from forensics.releases import Release, names_of, releases, table
from forensics.remedies import action, kept, package
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.case import Case

_REPLACED = {
    "--enable-ep-moe": "--ep-size",
    "--enable-deepep-moe": "--moe-a2a-backend",
    "--enable-flashinfer-cutlass-moe": "--moe-runner-backend",
    "--enable-flashinfer-trtllm-moe": "--moe-runner-backend",
    "--enable-flashinfer-mxfp4-moe": "--moe-runner-backend",
    "--enable-triton-kernel-moe": "--moe-runner-backend",
    "--enable-flashinfer-mla": "--attention-backend",
    "--speculative-draft": "--speculative-draft-model-path",
}
"""Flags that gave way to a value of another one (release notes, declared flags)."""

_KINDS = ("unrecognized_arguments", "ambiguous_option", "argument_error")
_FLAG = re.compile(r"--?[A-Za-z][\w-]*")
_CHOICES = re.compile(r"invalid choice: '?(?P<given>[^'\s]+)'? \(choose from (?P<choices>[^)]*)\)")


@rule(
    "refused-arguments",
    class_="version_mismatch",
    summary="The launcher refused an argument",
    needs="the error of the argument parser",
)
def refused_arguments(case: Case) -> Iterator[Finding | Skip]:
    """A flag of another release, an abbreviation of several, or a value of the wrong kind."""
    event = case.run.first(*_KINDS)
    if event is None:
        return
    said = event.text.split("error: ", 1)[-1]
    title, why, remedies = _reading(case.run.launch, event, said)
    yield case.finding(
        "refused-arguments",
        "version_mismatch",
        event,
        title=title,
        explanation=f'The argument parser says: "{said[:300]}". {why} Nothing was started.',
        remedies=remedies,
        not_helpful=["memory flags: nothing was started"],
        rank=None,
        phase="init",
        weight=FAILURE + 5,
        facts={"arguments": _FLAG.findall(said)[:8]},
    )


def _reading(launch: Launch, event: Event, said: str) -> tuple[str, str, list[Remedy]]:
    """Title, reason and remedies."""
    flags = _FLAG.findall(said)
    first = flags[0] if flags else ""
    if event.kind == "ambiguous_option":
        meant = _meant(first, flags[1:])
        why = f"{first} is the beginning of several flags of this release."
        return (
            f"{first} is ambiguous in this release",
            why,
            kept(*(_spell(first, m) for m in meant)),
        )
    if event.kind == "argument_error":
        return f"An argument has a value that is refused: {said[:120]}", "", _values(first, said)
    known = [_where(flag, launch) for flag in flags[:3]]
    title = f"This release does not know {', '.join(flags[:3]) or said[:80]}"
    whys = " ".join(why for why, _ in known)
    return title, whys, kept(*(remedy for _, remedies in known for remedy in remedies))


def _meant(flag: str, candidates: list[str]) -> list[str]:
    """The candidates, the one first that the concept's old name became."""
    renamed = {f"--{name.replace('_', '-')}" for name in names_of(flag[2:].replace("-", "_"))}
    return sorted(candidates, key=lambda c: (c not in renamed, candidates.index(c)))[:3]


def _spell(given: str, right: str) -> Remedy:
    return Remedy(
        kind="flag",
        name=right.lstrip("-").replace("-", "_"),
        direction="set",
        to=f"<the value of {given}>",
        reason=f"{right} in place of {given}",
    )


def _where(flag: str, launch: Launch) -> tuple[str, list[Remedy]]:
    """Which releases have a flag, and what to write in its place."""
    having = [version for version in releases() if table(version).field_for_flag(flag)]
    release = launch.release or launch.versions.get("sglang")
    here = table(release or releases()[-1])
    close = _successor(flag, here)
    if not having:
        nearest = f" Nearest known flag: {close}." if close else ""
        spelled = [_spell(flag, close)] if close else []
        unknown = action("drop_argument", f"{flag} is in no release known here")
        return f"No release known here has {flag}.{nearest}", [*spelled, unknown]
    why = f"{flag} exists in {having[0]} to {having[-1]}."
    remedies = [_spell(flag, close)] if close else []
    newer = package("sglang", "upgrade", f"{flag} came with {having[0]}", to=f">={having[0]}")
    if having[-1] == releases()[-1]:
        return why, [newer, *remedies]
    gone = action("drop_argument", f"{flag} was removed after {having[-1]}")
    return why, [*remedies, gone]


def _successor(flag: str, release: Release) -> str | None:
    """The flag of a release that does what another one's did, or is spelled almost alike."""
    if (replaced := _REPLACED.get(flag)) and release.field_for_flag(replaced):
        return replaced
    own = flag.lstrip("-").replace("-", "_")
    for name in names_of(own):
        if name != own and release.has(name):
            return release.flag(name)
    flags = [f for field in release.fields.values() for f in field.flags]
    found = difflib.get_close_matches(flag, [f for f in flags if f != flag], n=1, cutoff=0.85)
    return found[0] if found else None


def _values(flag: str, said: str) -> list[Remedy]:
    """The nearest allowed value of a flag, where the parser lists them."""
    name = flag.lstrip("-").replace("-", "_")
    found = _CHOICES.search(said)
    if not found or not name:
        return [_spell(flag, flag)] if name else []
    allowed = [choice.strip(" '\"") for choice in found["choices"].split(",")]
    near = difflib.get_close_matches(found["given"], allowed, n=1, cutoff=0.4)
    to = near[0] if near else f"<one of {', '.join(allowed[:8])}>"
    reason = f"{found['given']} is not among the values of this release"
    newer = package("sglang", "upgrade", f"a newer release may know {found['given']}", to="latest")
    return [Remedy(kind="flag", name=name, direction="set", to=to, reason=reason), newer]
