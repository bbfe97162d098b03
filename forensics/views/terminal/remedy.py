"""The change: a diff of the launch, the remedies in order, and what would not help."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

from rich.text import Text

from forensics.diagnosis import RunReport
from forensics.findings import Finding, Remedy
from forensics.redact import REDACTED, redact_argv, redact_value
from forensics.views.clean import one_line
from forensics.views.terminal.page import Page
from forensics.views.terminal.words import amount, value

if TYPE_CHECKING:
    from forensics.launch import DiffLine

BASIS = {
    "observed": "seen in this log",
    "computed": "computed from this log",
    "lower_bound": "a lower bound from the failed request",
    "prior": "similar launches",
    "heuristic": "SGLang's own rule of thumb",
    "documented": "documentation and known reports",
}
"""What a remedy rests on, in words."""

_EFFECTS = {
    "free_gib_at_capture": "{} GiB free at capture",
    "free_gib": "{} GiB free",
    "kv_tokens": "{} KV tokens",
}
_SPELLED = {"gpu": "GPU", "gpus": "GPUs", "cuda": "CUDA", "jit": "JIT", "ram": "RAM", "ib": "IB"}
_SIGN_STYLE = {"+": "green", "-": "red", " ": "dim"}
_CONTEXT_LINES = 1
_CONSTRAINT = re.compile(r"[<>=!~]=?\s*\d")
"""A version constraint, not a placeholder such as `<your release>`."""


def phrase(remedy: Remedy) -> str:
    """The change in words: `lower --mem-fraction-static from 0.95 to 0.88`."""
    new = "" if remedy.to is None else value(remedy.to)
    if remedy.kind == "action":
        words = " ".join(_SPELLED.get(word, word) for word in remedy.name.split("_"))
        return f"{words}{f' ({new})' if new else ''}"
    if remedy.kind == "package":
        if new == "installed":
            return f"install the Python package {remedy.name}"
        grades = ("upgrade", "downgrade", "remove")
        act = remedy.direction if remedy.direction in grades else "install"
        to = f" to {new}" if act != "install" else new if _CONSTRAINT.match(new) else f" {new}"
        return f"{act} {remedy.name}{to if new else ''}{_from(remedy)}"
    name = remedy.name
    if remedy.kind == "flag":
        name = f"--{name.removeprefix('--').replace('_', '-')}"
    on, off = ("add", "remove") if remedy.kind == "flag" else ("turn on", "turn off")
    if remedy.direction in ("remove", "disable"):
        return f"{'remove' if remedy.direction == 'remove' else off} {name}{_from(remedy)}"
    if remedy.direction == "enable" and (remedy.to is None or remedy.to is True):
        return f"{on} {name}"
    if remedy.kind == "env":
        return f"set {name}={new}{_from(remedy)}"
    verb = {"increase": "raise", "decrease": "lower"}.get(remedy.direction, "set")
    old = f" from {value(remedy.from_)}" if remedy.from_ is not None else ""
    return f"{verb} {name}{old}{f' to {new}' if new else ''}"


def draw_change(page: Page, report: RunReport, finding: Finding, verbose: bool) -> None:
    """The section on what to change for a finding."""
    if not (finding.remedies or finding.not_helpful):
        return
    page.heading("Change", "one at a time, best first")
    if report.diff and report.root_cause is finding:
        _draw_diff(page, report.diff, verbose)
        page.blank()
    for number, remedy in enumerate(finding.remedies, start=1):
        _draw_remedy(page, number, remedy)
    if finding.not_helpful:
        page.blank()
        page.paragraph("Would not help", style="bold")
    for reason in finding.not_helpful:
        page.item("-", reason)


def draw_command(page: Page, report: RunReport) -> None:
    """The new launch as a command to copy: quoted for a shell, wrapped with backslashes."""
    if not report.new_command:
        return
    page.heading("New launch")
    first = len(page.lines)
    line = "  "
    env = redact_value(report.new_env)
    variables = [f"{one_line(name)}={shlex.quote(one_line(text))}" for name, text in env.items()]
    if report.remove_env:
        unset = [f"-u {shlex.quote(one_line(name))}" for name in report.remove_env]
        variables = ["env", *unset, *variables]
    for words in [*variables, *_options(redact_argv(report.new_command))]:
        if len(line) + len(words) + 3 > page.width and line.strip():
            page.raw(Text(f"{line}\\"))
            line = "      "
        line += f"{words} "
    page.raw(Text(line))
    if any(REDACTED in drawn.plain for drawn in page.lines[first:]):
        page.paragraph(f"Put your own value where it says {REDACTED}.", style="dim")
    if report.not_repeated:
        left = ", ".join(one_line(words) for words in report.not_repeated)
        lead = "Not repeated, since SGLang may have picked them itself: "
        page.paragraph(f"{lead}{left}", style="dim")


def _options(argv: list[str]) -> list[str]:
    """Options with their values, each quoted, so that a line never parts the two."""
    result: list[str] = []
    for argument in argv:
        quoted = shlex.quote(one_line(argument))
        if result and result[-1].startswith("--") and not argument.startswith("--"):
            result[-1] += f" {quoted}"
        else:
            result.append(quoted)
    return result


def _draw_diff(page: Page, diff: list[DiffLine], verbose: bool) -> None:
    changed = [number for number, line in enumerate(diff) if line.sign != " "]
    left_out = 0
    for number, line in enumerate(diff):
        if verbose or any(abs(number - at) <= _CONTEXT_LINES for at in changed):
            left_out = _draw_gap(page, left_out)
            style = _SIGN_STYLE[line.sign]
            page.item(line.sign, line.text, style=style, label_style=style)
        else:
            left_out += 1
    _draw_gap(page, left_out)


def _draw_gap(page: Page, left_out: int) -> int:
    if left_out:
        page.paragraph(f"... {left_out} unchanged", indent=5, style="dim")
    return 0


def _draw_remedy(page: Page, number: int, remedy: Remedy) -> None:
    page.item(f"{number}.", phrase(remedy), style="bold")
    page.item("why   ", remedy.reason, indent=6, label_style="dim")
    effect = _effect(remedy)
    if effect:
        page.item("effect", effect, indent=6, label_style="dim")
    if remedy.cost:
        page.item("cost  ", remedy.cost, indent=6, label_style="dim")
    page.item("basis ", BASIS[remedy.basis], indent=6, label_style="dim")


def _effect(remedy: Remedy) -> str:
    parts = []
    for name, data in remedy.effect.items():
        if name.removesuffix("_change") != name and name.removesuffix("_change") in remedy.effect:
            continue
        number = amount(data)
        words = f"{name}_".replace("_gib_", "_").strip("_").replace("_", " ")
        unit = " GiB" if "_gib_" in f"{name}_" else ""
        part = _EFFECTS.get(name, f"{words} {{}}{unit}").format(number)
        parts.append(part + _change(remedy, name))
    return ", ".join(parts)


def _change(remedy: Remedy, name: str) -> str:
    """` (-115,456)`, where the effect also says by how much."""
    change = remedy.effect.get(f"{name}_change")
    if isinstance(change, bool) or not isinstance(change, int | float):
        return ""
    return f" ({'+' if change > 0 else ''}{amount(change)})"


def _from(remedy: Remedy) -> str:
    return "" if remedy.from_ in (None, True) else f" (now {value(remedy.from_)})"
