"""Live events for machines: one JSON object a line, flushed at once."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TextIO

from forensics.findings import Finding
from forensics.live.notices import (
    FindingNotice,
    Notice,
    PhaseNotice,
    ProgressNotice,
    Remark,
    Verdict,
    WithdrawnNotice,
)
from forensics.live.progress import RunState
from forensics.views.json import dumps


class NdjsonView:
    """Writes notices as events; `quiet` writes the verdict alone."""

    def __init__(self, out: TextIO, *, quiet: bool = False) -> None:
        self._out = out
        self._quiet = quiet

    def tell(self, notice: Notice) -> None:
        """Write one event. Remarks are no events; they go to standard error."""
        if isinstance(notice, Remark) or (self._quiet and not isinstance(notice, Verdict)):
            return
        self._out.write(dumps(event_of(notice)) + "\n")
        self._out.flush()


def event_of(notice: Notice) -> dict[str, Any]:
    """The event of a notice: `event`, `time`, and what it holds."""
    time = datetime.now().astimezone().isoformat(timespec="milliseconds")
    match notice:
        case PhaseNotice(run, phase, ranks):
            return {"event": "phase", "time": time, "run": run, "phase": phase, "ranks": ranks}
        case ProgressNotice(state):
            return {"event": "progress", "time": time, **_progress(state)}
        case FindingNotice(run, finding, changed):
            event = {"event": "finding", "time": time, "run": run, "updated": notice.updated}
            return {**event, "changed": [*map(_published, changed)], "finding": _dump(finding)}
        case WithdrawnNotice(run, finding, because):
            event = {"event": "withdrawn", "time": time, "run": run, "id": finding.id}
            return {**event, "because": because, "finding": _dump(finding)}
        case Verdict():
            verdict = _verdict(notice)
            short = ("outcome", "phase", "root_cause", "exit_code")
            # The contract's four also stand at the top, for `jq .exit_code`.
            top = {name: verdict[name] for name in short}
            return {"event": "verdict", "time": time, **top, "verdict": verdict}
        case Remark(text):
            return {"event": "remark", "time": time, "text": text}


def finding_json(finding: Finding) -> str:
    """One finding as a JSON document, without secrets."""
    return dumps(_dump(finding)) + "\n"


def _published(name: str) -> str:
    return "class" if name == "class_" else name


def _dump(finding: Finding | None) -> dict[str, Any] | None:
    return finding.model_dump(mode="python", by_alias=True) if finding else None


def _progress(state: RunState) -> dict[str, Any]:
    bar = state.bar
    return {
        "run": state.run,
        "phase": state.phase,
        "what": bar.what if bar else None,
        "done": bar.done if bar else None,
        "total": bar.total if bar else None,
        "left_s": bar.left_s if bar else None,
        "silent_s": round(state.silent_s, 1),
        "usual_silence_s": state.usual_silence_s,
        "unusual_silence": state.unusual_silence,
        "free_gib": {rank.tag: rank.free_gib for rank in state.ranks if rank.free_gib is not None},
        "late": [
            {"rank": r.tag, "behind_s": round(r.behind_s or 0.0, 1), "before": r.behind_at}
            for r in state.late
        ],
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "outcome": verdict.outcome,
        "phase": verdict.phase,
        "exit_code": verdict.exit_code,
        "because": verdict.because,
        "run": verdict.run,
        "root_cause": _dump(verdict.root_cause),
        "finding": _dump(verdict.finding),
        "new_command": verdict.new_command,
        "new_env": verdict.new_env,
        "remove_env": verdict.remove_env,
        "command_status": verdict.command_status,
        "log": verdict.log,
        "last_lines": verdict.last_lines,
    }
