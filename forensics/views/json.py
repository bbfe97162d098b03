"""The JSON view: the published document of a diagnosis.

Text of the log is kept as it is but for secrets; characters that a terminal would obey are
written as JSON escapes, which loses nothing.
"""

from __future__ import annotations

import json
import math
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

from forensics import __version__
from forensics.diagnosis import Diagnosis, RunReport
from forensics.redact import may_hold_secret, redact_value
from forensics.views.schema import (
    CoverageDocument,
    Document,
    LaunchDocument,
    RunDocument,
    Source,
    Tool,
)

if TYPE_CHECKING:
    from forensics.incident import SourceFacts
    from forensics.launch import Launch

_OBEYED = re.compile(
    "[\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def render(diagnosis: Diagnosis) -> str:
    """The document as text, indented, with a newline at its end."""
    data = document(diagnosis).model_dump(mode="python", by_alias=True)
    return dumps(data, indent=2) + "\n"


def document(diagnosis: Diagnosis) -> Document:
    """The document of a diagnosis; secrets are still in it."""
    coverage = diagnosis.coverage
    return Document(
        tool=Tool(version=__version__),
        sources=[_source(source) for source in diagnosis.incident.sources],
        runs=[_run(report) for report in diagnosis.reports],
        coverage=CoverageDocument(
            lines=coverage.lines,
            recognised=coverage.recognised,
            ranks=coverage.ranks,
            phases=coverage.phases,
            release=coverage.release,
            skipped=coverage.skipped,
        ),
    )


def dumps(data: Any, indent: int | None = None) -> str:
    """JSON text without secrets, safe for a terminal; NaN and infinities become null."""
    try:
        text = _encode(data, indent)
    except ValueError:
        data = _plain(data)
        text = _encode(data, indent)
    if may_hold_secret(text):
        text = _encode(redact_value(data), indent)
    return _OBEYED.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _encode(data: Any, indent: int | None) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False, indent=indent, default=_jsonable)


def _source(source: SourceFacts) -> Source:
    return Source(
        path=source.path,
        bytes=source.bytes,
        lines=source.lines,
        recognised_lines=source.recognised_lines,
        node=source.node,
        notice=source.notice,
    )


def _run(report: RunReport) -> RunDocument:
    run = report.run
    return RunDocument.model_validate(
        {
            "run": run.number,
            "outcome": run.outcome,
            "phase": run.phase,
            "started_at": run.started_at,
            "ended_at": run.ended_at,
            "ranks": run.tags,
            "launch": _launch(run.launch),
            "memory": run.memory,
            "findings": report.findings,
            "root_cause": report.root_cause.id if report.root_cause else None,
            "skipped_rules": report.skipped,
            "new_command": report.new_command,
            "new_env": report.new_env,
            "remove_env": report.remove_env,
            "not_repeated": report.not_repeated,
            "reproduce": report.reproduce,
        }
    )


def _launch(launch: Launch) -> LaunchDocument:
    return LaunchDocument(
        flags=dict(launch.flags),
        env=launch.env,
        versions=launch.versions,
        command=launch.command,
    )


def _plain(value: Any) -> Any:
    """The same without NaN and infinities, which JSON lacks."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _jsonable(value: Any) -> Any:
    """Times as ISO 8601, sets as lists, anything else as its text."""
    if isinstance(value, set | frozenset):
        return sorted(value, key=str)
    return value.isoformat() if isinstance(value, datetime) else str(value)
