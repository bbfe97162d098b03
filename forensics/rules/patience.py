"""Other limits that a healthy start can be too slow for: probes, the load barrier, the warm-up."""

from __future__ import annotations

import re
from collections.abc import Iterator

from forensics.events import Event
from forensics.findings import Finding, Remedy
from forensics.incident import Run
from forensics.incident.processes import tag_of_global
from forensics.remedies import action, env, kept
from forensics.rules.base import CONSEQUENCE, FAILURE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.collectives import busy_before
from forensics.rules.echoes import primary
from forensics.rules.said import Said, said
from forensics.rules.slow_start import faster

_PROBE = re.compile(
    r"(?P<kind>[Ss]tartup|[Ll]iveness) probe failed|failed (?P<kind2>startup|liveness) probe"
)


@rule(
    "probe-too-early",
    class_="slow_start_timeout",
    summary="An orchestrator's probe ended a server that was still starting",
    needs="the events of the orchestrator, or launches that break off at the same age",
    playbook="slow-start",
)
def probe_too_early(case: Case) -> Iterator[Finding | Skip]:
    """The kubelet's own words, else the same age at which several launches broke off."""
    run = case.run
    if run.ready is not None or primary(run.failures) is not None:
        return
    line = next(iter(said(case, _PROBE)), None)
    cut = _cut_at_one_age(case) if line is None else []
    if line is None and not cut:
        return
    last = _last_own(run, line)
    if last is None:
        return
    kind = (line.match["kind"] or line.match["kind2"]).lower() if line else ""
    shown = [line.evidence(case)] if line else []
    yield case.finding(
        "probe-too-early",
        "slow_start_timeout",
        line.event if line else last,
        title=f"A {kind + ' ' if kind else ''}probe ended the server while it was still starting"
        if line
        else f"{len(cut)} launches broke off at the same age, while still starting",
        explanation="The server was loading or compiling and had not failed: it prints no "
        "exception. The limit that was too short is the orchestrator's (startup or liveness "
        "probe), neither a time-out of SGLang nor memory."
        + ("" if line else f" Ages: {', '.join(f'{age:.0f} s' for age in cut)}."),
        evidence=[*case.evidence(last), *shown],
        remedies=kept(
            action("add_startup_probe", "with room for the slowest start; liveness begins after"),
            action("raise_liveness_initial_delay", "above the time that a cold start takes"),
            *_quicker(case, last),
        ),
        not_helpful=["watchdog_timeout and dist_timeout: they did not end the process"],
        rank=None,
        phase=last.phase,
        known_at=case.known(line.event, line.line) if line else case.known(last),
        confidence="high" if line else "medium",
        weight=FAILURE if line else CONSEQUENCE + 4,
        facts={"timeout": "probe", "outcome": "failed"},
        playbook="slow-start",
    )


def _last_own(run: Run, line: Said | None) -> Event | None:
    """What the server printed last before it was ended."""
    own = [
        e
        for e in run.events
        if not e.kind.startswith("container_")
        and e.kind not in ("exited_with", "shell_signal_line")
        and (line is None or e.source != line.event.source or e.line < line.event.line)
        and e.kind != "other"
    ]
    return own[-1] if own else None


def _quicker(case: Case, last: Event) -> list[Remedy]:
    busy = next(busy_before(case, last, but=set()), None)
    return list(faster(busy.what)) if busy else []


def _cut_at_one_age(case: Case) -> list[float]:
    """Ages in seconds of the launches of one log that broke off, if they are alike."""
    runs = case.incident.runs
    cut = [run for run in runs[:-1] if _broke_off(run) and run.sources == case.run.sources]
    ages = [
        (run.ended_at - run.started_at).total_seconds()
        for run in cut
        if run.started_at and run.ended_at
    ]
    if len(ages) < 2 or case.run not in cut:
        return []
    return ages if max(ages) - min(ages) <= max(15.0, 0.1 * max(ages)) and min(ages) > 20 else []


def _broke_off(run: Run) -> bool:
    return run.ready is None and not run.failures and run.outcome in ("unknown", "stopped")


@rule(
    "load-straggler",
    class_="slow_start_timeout",
    summary="Some ranks were still loading when the others' patience ended",
    needs="the ranks that finished, and those that did not",
    playbook="slow-start",
)
def load_straggler(case: Case) -> Iterator[Finding | Skip]:
    """Only where no rank failed: then the complaint is an echo of that failure."""
    told = next(_stragglers(case), None)
    if told is None or primary(case.run.failures) is not None:
        return
    done = {(e.source, e.rank) for e in case.run.of("load_weight_end")}
    began = [e for e in case.run.of("load_weight_begin") if (e.source, e.rank) not in done]
    late = list(dict.fromkeys(e.rank for e in began if e.rank)) or _named(case)
    rank = late[0] if len(late) == 1 else None
    yield case.finding(
        "load-straggler",
        "slow_start_timeout",
        began[0] if began else told,
        title=f"{', '.join(late) or 'Other ranks'} had not finished loading when the others had "
        "waited long enough",
        explanation="The ranks that were done wait at a barrier and give up after some minutes. "
        "The one that is late printed no error: its node or storage is slow, or it is stuck.",
        evidence=case.evidence(*began[:4], told),
        remedies=kept(
            action("copy_weights_to_local_disk", "all ranks then load at the speed of a disk"),
            action("inspect_rank_gpu", "of the rank that is late, if its storage is not slow"),
        ),
        rank=rank,
        phase="load",
        known_at=case.known(told, told.end_line),
        confidence="medium",
        weight=CONSEQUENCE + 2,
        facts={"late": late, "timeout": "load barrier", "outcome": "failed"},
        playbook="slow-start",
    )


def _stragglers(case: Case) -> Iterator[Event]:
    for failure in case.run.failures:
        chain = failure.traceback.chain if failure.traceback else []
        if any(raised.kind == "load_straggler" for raised in chain):
            yield failure.event


def _named(case: Case) -> list[str]:
    """The ranks that torch's barrier names as missing."""
    found = []
    for event in case.run.of("monitored_barrier_failed"):
        for number in re.findall(r"\d+", event.string("missing")):
            found.append(tag_of_global(case.run, event.source, int(number)) or f"rank {number}")
    return list(dict.fromkeys(found))


_READ = re.compile(r"Read timed out|read timeout=|timed out|ReadTimeout")


@rule(
    "warmup-timeout",
    class_="slow_start_timeout",
    summary="The warm-up request took longer than the server waits for it",
    needs="the failed warm-up, with a read time-out",
    playbook="slow-start",
)
def warmup_timeout(case: Case) -> Iterator[Finding | Skip]:
    """A first request that compiles kernels, or a rank that stands."""
    for failure in case.run.failures:
        chain = failure.traceback.chain if failure.traceback else []
        if failure.event.kind == "warmup_failed" and any(_READ.search(r.message) for r in chain):
            break
    else:
        return
    others = [f for f in case.run.failures if f is not failure]
    if primary(others) is not None:
        return
    busy = next(busy_before(case, failure.event, but=set()), None)
    what = busy.what if busy else "JIT compilation"
    yield case.finding(
        "warmup-timeout",
        "slow_start_timeout" if busy else "unknown",
        busy.event if busy else failure.event,
        title="The warm-up request got no answer in time"
        + (f": {busy.what} was going on" if busy else ""),
        explanation="No rank reported a failure. The first request compiles kernels that are not "
        "cached; if nothing was compiled, a rank stands still.",
        evidence=[*case.evidence(busy.event if busy else None), *case.failure_evidence(failure)],
        remedies=kept(
            env(
                "SGLANG_WARMUP_TIMEOUT",
                "set",
                "longer than a cold compilation takes",
                to="1800",
            ),
            *faster(what),
        ),
        rank=busy.rank if busy else None,
        phase="warmup",
        known_at=case.known(failure.event, failure.event.end_line),
        confidence="medium" if busy else "low",
        weight=FAILURE if busy else CONSEQUENCE + 2,
        facts={"timeout": "warm-up request", "outcome": "failed"},
        playbook="slow-start",
    )
