"""Other processes on the GPU: somebody else's, or the job's own other ranks."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.events import Event
from forensics.findings import Finding, Remedy
from forensics.grammar.oom import OutOfMemory
from forensics.incident import Failure
from forensics.remedies import action, env, kept
from forensics.rules.base import FAILURE, QUIET_CAUSE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.co_located import uneven_baseline
from forensics.rules.fractions import lower_by
from forensics.rules.memory_facts import echoes, oom_sentence
from forensics.rules.neighbours import held_by_others, job_pids, least_free, own_share
from forensics.rules.shortage import first_shortage, places
from forensics.rules.thresholds import threshold

_NOTHING_GIB = 0.1
_SPREAD_GIB = threshold(
    "uneven_memory_gib", 1.0, "GiB", "A smaller difference in free memory between ranks is usual"
)
_SPREAD_SHARE = threshold(
    "uneven_memory_share",
    0.15,
    "of the other ranks' free memory",
    "Where all is well a smaller difference is not worth a word",
    most=1.0,
)


@rule(
    "other-process-oom",
    class_="other_process_on_gpu",
    summary="GPU memory ran out because another process holds much of it",
    needs="an allocator message that lists other processes, or a total that does not add up",
)
def other_process_oom(case: Case) -> Iterator[Finding | Skip]:
    """The request would have fitted on an otherwise empty GPU."""
    first = first_shortage(case, "other_process_on_gpu")
    if first is None or first.oom is None:
        return
    others = held_by_others(first.oom)
    pids = ", ".join(str(pid) for pid in first.oom.processes) or "not listed"
    yield case.finding(
        "other-process-oom",
        "other_process_on_gpu",
        first.event,
        title=f"{_where(first)}another process holds {others:.1f} GiB of the GPU",
        explanation=f"{oom_sentence(first)}; other processes (pid {pids}) hold {others:.1f} GiB of "
        "it. The share of the fraction is reckoned from what was free when this launch began, so "
        "what others take later is missing in every phase.",
        evidence=case.failure_evidence(first),
        remedies=[
            action("stop_other_process", f"frees {others:.1f} GiB on GPU {first.oom.gpu}"),
            action("choose_other_gpus", "a GPU that nobody else uses"),
        ],
        not_helpful=["a higher mem_fraction_static: the memory is not there"],
        rank=first.rank,
        phase=first.phase,
        weight=FAILURE + 1,
        facts={"others_gib": round(others, 2), "pids": list(first.oom.processes)},
    )


@rule(
    "rank-memory-imbalance",
    class_="rank_memory_imbalance",
    summary="One GPU carries memory of the job's other ranks besides its own",
    needs="an allocator message that lists the job's other processes",
)
def rank_memory_imbalance(case: Case) -> Iterator[Finding | Skip]:
    """Ranks with contexts or buffers on another rank's GPU: that rank runs out first."""
    first = first_shortage(case, "rank_memory_imbalance")
    if first is None or first.oom is None:
        return
    own, count = own_share(case, first.oom), len(first.oom.processes)
    sentence = oom_sentence(first)
    yield case.finding(
        "rank-memory-imbalance",
        "rank_memory_imbalance",
        first.event,
        title=f"{_where(first)}{own:.1f} GiB of its GPU belong to other processes of this job",
        explanation=f"{sentence}. {_neighbours(first.oom, own, count)} The pool of every rank is "
        "sized alike, so this rank alone has too little left.",
        evidence=[*case.evidence(*_begins(case)), *case.failure_evidence(first)],
        remedies=_imbalance(case, first, own),
        not_helpful=[
            "a higher mem_fraction_static: it leaves even less on this GPU",
            "looking for another user's job: these processes belong to this one",
        ],
        rank=first.rank,
        phase=first.phase,
        weight=FAILURE + 1,
        facts={
            "own_processes_gib": round(own, 2),
            "pids": list(first.oom.processes),
            "echo_ranks": echoes(case.run.failures, first),
            "outcome": "failed",
        },
    )


def _neighbours(oom: OutOfMemory, own_gib: float, count: int) -> str:
    """Who else is on the GPU: processes of this job, and others if there are any."""
    rest = held_by_others(oom) - own_gib
    said = (
        f"{count} other processes are listed on GPU {oom.gpu}; those of this job hold "
        f"{own_gib:.1f} GiB"
    )
    if rest < _NOTHING_GIB:
        return f"{said}, and there are no strangers."
    return f"{said}, {rest:.1f} GiB more are held by others, which the log does not name."


def _where(first: Failure) -> str:
    return f"{first.rank}: " if first.rank else ""


def _begins(case: Case) -> list[Event]:
    """The capture begins of the poorest rank and of one other."""
    poorest = least_free(case)
    begins = list(case.run.of("capture_begin"))
    mine = [e for e in begins if poorest and e.rank == poorest[0]][:1]
    return mine + [e for e in begins if poorest and e.rank != poorest[0]][:1]


def _imbalance(case: Case, first: Failure, own: float) -> list[Remedy]:
    ipc = any("cuda_ipc" in place or "_new_shared_cuda" in place for place in places(first))
    transport = None
    if ipc:
        transport = env(
            "SGLANG_USE_CUDA_IPC_TRANSPORT",
            "remove",
            "with it every rank opens the features of images on this rank's GPU (its frames show "
            "it); without it they travel over host memory",
            cost="slower transport of image features",
        )
    lowered = lower_by(case, max(own * 0.5, first.oom.requested_gib if first.oom else 0.0), "them")
    look = action("inspect_rank_gpu", "nvidia-smi shows whose contexts sit on this GPU")
    return kept(transport, lowered, look)


@rule(
    "memory-unbalanced",
    playbook="other-process-oom",
    class_="other_process_on_gpu",
    summary="The server refuses to start: one GPU has much less free memory than the others",
    needs="its message about unbalanced memory",
)
def memory_unbalanced(case: Case) -> Iterator[Finding | Skip]:
    """The rank that raises is a healthy one; the culprit is the rank with the least free memory."""
    for failure in case.run.failures:
        chain = failure.traceback.chain if failure.traceback else []
        raised = next((r for r in chain if r.kind == "memory_unbalanced"), None)
        if raised is None:
            continue
        least = raised.fields.get("least_gib")
        local = raised.fields.get("local_gib")
        figures = (
            f"The poorest GPU has {_short(least)} GiB free, this rank's {_short(local)}. "
            if least is not None and local is not None
            else ""
        )
        poorest = uneven_baseline(case)
        culprit = f" The poorest rank is {poorest[0]}." if poorest else ""
        yield case.finding(
            "memory-unbalanced",
            "other_process_on_gpu",
            failure.event,
            title="One GPU has much less free memory than the others: somebody else is on it",
            explanation=f"{figures}The rank that complains is a healthy one; the one with the "
            f"least free memory shares its GPU with another process.{culprit}",
            evidence=case.failure_evidence(failure),
            remedies=[
                action("stop_other_process", "free the poorest GPU before starting"),
                action("choose_other_gpus", "leave out the GPU that is in use"),
                action("inspect_rank_gpu", "nvidia-smi names the process"),
            ],
            not_helpful=["mem_fraction_static: the check compares GPUs, not shares"],
            rank=failure.rank,
            phase=failure.phase,
            weight=QUIET_CAUSE - 20,
            facts={"least_gib": least, "local_gib": local, "poorest": poorest and poorest[0]},
        )
        return


@rule(
    "uneven-memory",
    playbook="rank-memory-imbalance",
    class_="rank_memory_imbalance",
    severity="info",
    role="precursor",
    summary="Ranks differ in free memory though they hold the same",
    needs="free memory of two ranks and more",
)
def uneven_memory(case: Case) -> Iterator[Finding | Skip]:
    """The same work, but one GPU has clearly less left: something else sits on it."""
    poorest = least_free(case)
    if poorest is None:
        yield Skip("free memory of fewer than two ranks is known")
        return
    rank, least, next_least = poorest
    spread = next_least - least
    share = 0.0 if case.run.failures else case.threshold(_SPREAD_SHARE)
    if spread < max(case.threshold(_SPREAD_GIB), share * next_least):
        return
    kinds = ("capture_begin", "memory_pool_end", "load_weight_end", "load_weight_begin")
    shown = [e for e in case.run.of(*kinds) if e.rank == rank and e.number("avail_gib") == least]
    others = [e for e in case.run.of(*kinds) if e.rank != rank]
    if not shown:
        return
    known = max([shown[0], *(e for e in others if e.kind == shown[0].kind)], key=lambda e: e.line)
    strangers = "" if job_pids(case) else " nvidia-smi on that GPU tells whose it is."
    yield case.finding(
        "uneven-memory",
        "rank_memory_imbalance",
        shown[0],
        severity="info",
        role="precursor",
        title=f"{rank} has {next_least - least:.1f} GiB less free than every other rank",
        explanation=f"{least:.2f} GiB against {next_least:.2f} GiB and more on the others: "
        "contexts of other ranks, an uneven split of the model, or another process." + strangers,
        rank=rank,
        phase=shown[0].phase,
        known_at=case.known(known),
        facts={"least_gib": least, "next_gib": next_least},
        playbook="rank-memory-imbalance",
    )


def _short(size: object) -> str:
    """A size as the other lines print theirs; the check itself prints all digits."""
    return f"{size:.2f}" if isinstance(size, float) else str(size)
