"""Host memory that was asked for and refused: by the server's own check, or by the allocator."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.findings import Finding, Remedy
from forensics.remedies import action, flag, kept
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.host_memory import cache_demand, smaller_cache
from forensics.rules.memory_facts import whole

_REFUSED = frozenset(
    {"host_cache_no_memory", "host_cache_no_memory_for", "host_reserve_exhausted"}
    | {"host_out_of_memory", "host_bad_alloc", "host_cannot_allocate", "host_cache_unsized"}
)
_PINNING = frozenset({"host_pin_failed", "host_register_failed"})


@rule(
    "host-memory-refused",
    playbook="host-memory",
    class_="host_ram_insufficient",
    summary="Host memory was asked for and refused",
    needs="the server's own check, or the allocator's refusal",
)
def host_memory_refused(case: Case) -> Iterator[Finding | Skip]:
    """The check for the host cache, pinning, or the CPU allocator."""
    for failure in case.run.failures:
        chain = failure.traceback.chain if failure.traceback else []
        said = next((r for r in chain if r.kind in _REFUSED | _PINNING), None)
        if said is None:
            continue
        wanted, free = said.fields.get("host_gib"), said.fields.get("free_gib")
        ranks = max(whole(case.run.launch.get("tp_size")) or 1, len(case.run.ranks))
        remedies: list[Remedy | None] = []
        if isinstance(wanted, float | int) and wanted > 0:
            # Each rank asks in turn and sees what the ones before it have left.
            fits = 0.8 * float(free) / ranks if isinstance(free, float | int) else None
            remedies.append(smaller_cache(case, float(wanted), ranks, fits))
        elif demand := cache_demand(case):
            remedies.append(smaller_cache(case, demand[1], demand[2]))
        on_cpu = str(case.run.launch.get("device")) == "cpu"
        remedies.append(_smaller_share(case) if on_cpu else None)
        remedies.append(action("add_host_ram", "or give the container more of it"))
        pinned = said.kind in _PINNING
        figures = f" {wanted} GB were asked for, {free} GB are free." if wanted and free else ""
        cached = said.kind.startswith("host_cache") or pinned
        yield case.finding(
            "host-memory-refused",
            "hicache_oom" if pinned else "host_ram_insufficient",
            failure.event,
            title="Host memory could not be pinned for the hierarchical cache"
            if pinned
            else "Too little host memory" + (" for the hierarchical cache" if cached else ""),
            explanation=f"Host memory, not GPU memory, was refused.{figures}"
            + (f" Each of {ranks} ranks takes its own." if cached and ranks > 1 else ""),
            evidence=case.failure_evidence(failure),
            remedies=kept(*remedies),
            not_helpful=[] if on_cpu else ["mem_fraction_static: it is about GPU memory"],
            rank=failure.rank,
            phase="kv_pool" if cached else failure.phase,
            weight=FAILURE,
            facts={"wanted_gb": wanted, "free_gb": free},
            playbook="host-memory",
        )
        return


def _smaller_share(case: Case) -> Remedy | None:
    now = case.run.launch.number("mem_fraction_static")
    if now is None or now < 0.1:
        return None
    return flag(
        case.run.launch,
        "mem_fraction_static",
        round(now / 2, 2),
        "on a CPU the KV pool is host memory; half the share takes half",
        direction="decrease",
        basis="heuristic",
        cost="a smaller KV pool",
    )
