"""State of linear attention: its pool is taken from the KV budget, and may get no slot at all."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.events import Event, Raised
from forensics.findings import Finding, Remedy
from forensics.incident import Failure
from forensics.memory.advice import step_up
from forensics.remedies import action, flag, kept
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.fractions import baseline_of
from forensics.rules.memory_facts import fraction_of, whole

_KINDS = frozenset(
    {
        "mamba_pool_no_memory",
        "mamba_state_no_memory",
        "mamba_state_too_small",
        "mamba_checkpoint_no_memory",
    }
)


_HIGHEST = 0.93
"""Above it capture and activations have too little."""


@rule(
    "state-pool-no-memory",
    class_="state_cache_oom",
    summary="The state pool of a hybrid model gets no memory, or too few slots",
    needs="the server's own refusal",
)
def state_pool_no_memory(case: Case) -> Iterator[Finding | Skip]:
    """Rest and state per request are printed: they say how many slots fit."""
    found = _refusal(case)
    if found is None:
        return
    failure, said = found
    rest, each = _size(said, "rest_gib"), (_size(said, "per_request_mib") or 0.0) / 1024
    slots = int((rest or 0.0) / each) if each else None
    figures = (
        f" {rest:.2f} GiB were left for it, one request takes {each:.3f} GiB: {slots} fit."
        if rest is not None and each
        else ""
    )
    yield case.finding(
        "state-pool-no-memory",
        "state_cache_oom",
        failure.event,
        title="No memory for the state of linear-attention layers",
        explanation="Hybrid models keep a state for every running request; its pool comes out of "
        f"the same share as the KV pool.{figures}",
        evidence=case.failure_evidence(failure),
        remedies=_remedies(case, rest, each, slots),
        not_helpful=["a lower mem_fraction_static: the share is too small already"],
        rank=failure.rank,
        phase="kv_pool",
        weight=FAILURE,
        facts={"rest_gib": rest, "per_request_gib": round(each, 4), "slots": slots},
    )


def _refusal(case: Case) -> tuple[Failure, Raised | Event] | None:
    for failure in case.run.failures:
        for raised in failure.traceback.chain if failure.traceback else []:
            if raised.kind in _KINDS:
                return failure, raised
        if failure.event.kind in _KINDS:
            return failure, failure.event
    return None


def _size(said: Raised | Event, name: str) -> float | None:
    value = said.fields.get(name)
    return float(value) if isinstance(value, int | float) else None


def _remedies(case: Case, rest: float | None, each: float, slots: int | None) -> list[Remedy]:
    launch, base, now = case.run.launch, baseline_of(case), fraction_of(case.run)
    running = whole(launch.get("max_running_requests"))
    wanted = max(slots // 2, 1) if slots else 16
    fewer = None
    if running is None or wanted < running:
        fewer = flag(
            launch,
            "max_running_requests",
            wanted,
            "each running request needs a state slot",
            direction="decrease",
            basis="computed" if slots else "heuristic",
            cost="less concurrency",
        )
    larger = None
    if base and now is not None:
        # Room for the states of the requests asked for, and as much again for KV.
        lacking = each * min(running or 32, 32) + max(-(rest or 0.0), 0.0) + 0.03 * base
        raised = min(round(step_up(now + lacking / base), 2), _HIGHEST)
        if raised > now + 0.01:
            larger = flag(
                launch,
                "mem_fraction_static",
                raised,
                f"adds {base * (raised - now):.1f} GiB to the share of weights, states and KV",
                direction="increase",
                basis="computed",
                cost="less memory for graphs and activations",
                effect={"kv_pool_gib": round(base * (raised - now), 2)},
            )
    more = action("use_more_gpus", "each GPU then holds fewer weights and states")
    return kept(larger, fewer, more)
