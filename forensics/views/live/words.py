"""How live events are said."""

from __future__ import annotations

from forensics.findings import Finding
from forensics.live.bars import Bar
from forensics.live.notices import Verdict
from forensics.live.progress import RunState
from forensics.views.changes import phrase
from forensics.views.clean import one_line
from forensics.views.words import DOING, count, duration

_WORDS = {
    "ready": "READY",
    "serving": "SERVING",
    "stopped": "STOPPED",
    "failed": "FAILED",
    "hung": "HANGS",
    "degraded": "DEGRADED",
    "unknown": "UNFINISHED",
}
GOOD = ("ready", "serving", "stopped")


def foresee(finding: Finding) -> str:
    """What will happen, in one sentence, while it has not happened yet."""
    facts = finding.facts
    low, high, free = (facts.get(f"{name}_gib") for name in ("need_low", "need_high", "free"))
    if finding.rule != "graph-capture-headroom" or low is None or free is None:
        return one_line(finding.title)
    need = f"about {low:.1f} to {high:.1f} GiB" if high else f"at least {low:.1f} GiB"
    ranks = facts.get("ranks")
    where = f"on all {ranks} ranks" if isinstance(ranks, int) and ranks > 1 else "on this GPU"
    ends = {"critical": "this launch will fail in seconds", "warning": "this launch may fail"}
    end = ends.get(finding.severity, "it usually fits")
    return f"capture needs {need}, {free:.2f} is free {where}: {end}"


def fix(finding: Finding) -> str | None:
    """The first remedy in words."""
    return one_line(phrase(finding.remedies[0])) if finding.remedies else None


def verdict_word(verdict: Verdict) -> str:
    """One word for the outcome."""
    if verdict.exit_code == 6 and verdict.outcome in ("unknown", "ready", "serving"):
        return "ABOUT TO FAIL"
    if verdict.exit_code == 7:
        return "TIMED OUT"
    return _WORDS.get(verdict.outcome, verdict.outcome.upper())


def verdict_sentence(verdict: Verdict) -> str:
    """The verdict in one line, without its word."""
    doing = DOING.get(verdict.phase, verdict.phase)
    cause = verdict.root_cause or verdict.finding
    parts = []
    if verdict.outcome not in GOOD or verdict.exit_code:
        parts.append(f"while {doing}")
    said = one_line(cause.title) if cause else one_line(verdict.because)
    text = (f"{' '.join(parts)}: {said}" if parts else said).rstrip(".")
    if cause and (change := fix(cause)):
        text += f"; fix: {change}"
    if verdict.command_status:
        text += f" (exit status of the command: {verdict.command_status})"
    return text


def bar_words(bar: Bar) -> str:
    """`40 of 83 shards, about 2 min 05 s left`."""
    left = f", about {duration(bar.left_s)} left" if bar.left_s else ""
    return f"{bar.done} of {bar.total} {bar.what}{left}"


def silence_words(state: RunState) -> str:
    """How long nothing was written, and whether that is usual."""
    said = f"silent for {duration(state.silent_s)}"
    if state.usual_silence_s is None:
        return said
    usual = duration(state.usual_silence_s)
    if not state.unusual_silence:
        return f"{said}; usual here: up to {usual}"
    longest = max(state.ranks, key=lambda rank: rank.silent_s or 0.0, default=None)
    who = ""
    if longest is not None and len(state.ranks) > 1 and longest.silent_s is not None:
        who = f"; {longest.tag} spoke last {duration(longest.silent_s)} ago, before all others"
    return f"{said}, longer than the {usual} that are usual here{who}"


def late_words(state: RunState) -> str | None:
    """Which ranks are late, and by how much."""
    late = state.late
    if not late:
        return None
    named = ", ".join(rank.tag for rank in late[:4])
    more = f" and {count(len(late) - 4, 'other')}" if len(late) > 4 else ""
    behind = max(rank.behind_s or 0.0 for rank in late)
    mark = late[0].behind_at.replace("_", " ")
    are = "is" if len(late) == 1 else "are"
    return f"{named}{more} {are} {duration(behind)} behind the others at {mark}"
