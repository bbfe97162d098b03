"""What changed between two launches of one log: which change cured, which did not."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.findings import Evidence, Finding
from forensics.incident import Run
from forensics.launch import Launch
from forensics.rules.base import Skip, rule
from forensics.rules.case import Case

_MOST = 8
_LIVES = ("ready", "serving", "stopped")


@rule(
    "changed-launch",
    class_="none",
    severity="info",
    role="context",
    summary="What changed since the launch before, and whether it helped",
    needs="two launches in the input, the first of which failed",
)
def changed_launch(case: Case) -> Iterator[Finding | Skip]:
    """The difference to the failed launch before this one."""
    before = next((r for r in case.incident.runs if r.number == case.run.number - 1), None)
    if before is None or before.outcome not in ("failed", "hung") or not case.run.events:
        return
    if case.run.outcome == "unknown" or not _comparable(before, case.run):
        return
    changes = changes_between(before.launch, case.run.launch)
    lives = case.run.outcome in _LIVES
    what = "; ".join(changes[:_MOST]) or "nothing that the log shows"
    title = f"Fixed by: {what}" if lives else f"Changed since the launch before: {what}"
    yield case.finding(
        "changed-launch",
        "none",
        case.run.events[0],
        severity="info",
        role="context",
        title=title,
        explanation=_story(before, case.run, bool(changes)),
        evidence=_evidence(case),
        rank=None,
        known_at=case.known(case.run.ready) if lives and case.run.ready else None,
        facts={"changes": changes, "before": before.number, "before_phase": before.phase},
    )


def _comparable(before: Run, after: Run) -> bool:
    """Whether both launches are known well enough for a difference to mean something."""
    same_log = bool(set(before.sources) & set(after.sources))
    return same_log and bool(before.launch.flags) and bool(after.launch.flags)


def _story(before: Run, after: Run, changed: bool) -> str:
    how = "came up" if after.outcome in _LIVES else f"failed in {after.phase}"
    begin = f"Launch {before.number} failed in {before.phase}; this one {how}."
    if changed:
        return f"{begin} These are the differences that the log shows between the two."
    return f"{begin} The log shows no difference: look at packages, files or chance."


def _evidence(case: Case) -> list[Evidence]:
    kinds = ("environment_assignment", "launch_command", "server_args_dump", "ready")
    return case.evidence(*(case.run.first(kind) for kind in kinds))


def changes_between(before: Launch, after: Launch) -> list[str]:
    """Flags, variables and versions that differ, as words; what one side lacks is not compared."""
    found = []
    for name in sorted(set(before.env) | set(after.env)):
        if before.env.get(name) != after.env.get(name):
            found.append(f"{name}={after.env.get(name, '(unset)')}")
    for name in sorted(set(before.flags) & set(after.flags)):
        if before.flags[name] != after.flags[name] and name not in _VOLATILE:
            found.append(f"{name} {before.flags[name]} to {after.flags[name]}")
    for name in sorted(set(before.versions) & set(after.versions)):
        if before.versions[name] != after.versions[name]:
            found.append(f"{name} {before.versions[name]} to {after.versions[name]}")
    return found


_VOLATILE = frozenset({"random_seed", "nccl_port", "port", "dist_init_addr", "crash_dump_folder"})
"""Fields that differ from launch to launch without anybody's doing."""
