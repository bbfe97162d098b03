"""What start-up leaves for serving: too little for the activations of a full prefill."""

from __future__ import annotations

from collections.abc import Iterator

from forensics.findings import Finding
from forensics.rules.base import Skip, rule
from forensics.rules.case import Case
from forensics.rules.memory_facts import automatic, fraction_of, least, whole
from forensics.rules.shortage import shortages
from forensics.rules.thresholds import threshold

_MIB_A_TOKEN = 1.5
"""SGLang's own reserve for activations, generous: MiB a token of a prefill chunk."""
_THIN = threshold(
    "thin_reserve_share",
    0.5,
    "of SGLang's own reserve for a chunk",
    "Below it a busy prefill may fail; large models have failed from half downwards",
)
_BARE_GIB = threshold("thin_reserve_gib", 1.0, "GiB", "Less than this is thin for any chunk size")
_FAR = threshold(
    "fraction_above_automatic",
    0.05,
    "of the memory",
    "A fraction further above the automatic one is worth a word",
    most=1.0,
)


@rule(
    "thin-reserve",
    playbook="serving-oom",
    class_="activation_oom",
    severity="warning",
    role="precursor",
    summary="Little memory is left after start-up for the activations of a full prefill",
    needs="free memory after the last capture, and the chunk size",
)
def thin_reserve(case: Case) -> Iterator[Finding | Skip]:
    """Hold what is left after capture against what SGLang itself would reserve for a chunk."""
    ends = [
        e
        for e in case.run.of("max_total_tokens", "capture_end", "memory_pool_end")
        if (e.number("available_gib") or e.number("avail_gib")) is not None
    ]
    left = least(ledger.end_gib for ledger in case.run.ledgers())
    if left is None or not ends or case.run.first("max_total_tokens") is None:
        yield Skip("free memory after start-up is not shown")
        return
    chunk = whole(case.run.launch.get("chunked_prefill_size"))
    tokens = chunk if chunk and chunk > 0 else 16384
    reserve = _MIB_A_TOKEN * tokens / 1024
    if left >= max(case.threshold(_THIN) * reserve, case.threshold(_BARE_GIB)) or left <= 0:
        return
    event = ends[-1]
    failed = any(f.phase in ("serving", "warmup") for f, _ in shortages(case))
    if case.run.ready is not None and not failed and left >= case.threshold(_BARE_GIB):
        return  # it serves: SGLang's own reserve is generous
    yield case.finding(
        "thin-reserve",
        "activation_oom",
        event,
        severity="warning" if failed or case.run.ready is None else "info",
        role="precursor",
        title=f"{left:.2f} GiB are left after start-up for prefills of {tokens} tokens",
        explanation=f"SGLang itself would reserve {_MIB_A_TOKEN} MiB a token: {tokens} tokens x "
        f"{_MIB_A_TOKEN} MiB = {reserve:.1f} GiB, a generous figure; {left:.2f} GiB are left.",
        rank=event.rank,
        phase="serving",
        known_at=case.known(event),
        confidence="medium",
        facts={"free_gib": left, "reserve_gib": round(reserve, 2), "came_true": failed},
        playbook="serving-oom",
    )


@rule(
    "fraction-above-automatic",
    playbook="serving-oom",
    class_="activation_oom",
    severity="info",
    role="precursor",
    summary="The fraction is far above what the release would choose for these flags",
    needs="the fraction, the card's total and the flags",
)
def fraction_above_automatic(case: Case) -> Iterator[Finding | Skip]:
    """A typed fraction far above the automatic one leaves less than SGLang thinks is needed."""
    fraction, own = fraction_of(case.run), automatic(case)
    if fraction is None or own is None:
        yield Skip("the card's total is not in the log")
        return
    dump = case.run.first("server_args_dump")
    if dump is None or fraction <= own + case.threshold(_FAR):
        return
    if any(failure.phase in ("init", "load") for failure in case.run.failures):
        return  # the fraction is used only after loading
    total = least(ledger.total_gib for ledger in case.run.ledgers()) or 0.0
    failed = any(True for _ in shortages(case))
    yield case.finding(
        "fraction-above-automatic",
        "activation_oom",
        dump,
        severity="info",
        role="precursor",
        title=f"mem_fraction_static {fraction:g} is far above the automatic {own:.3f}",
        explanation=f"This release would choose {own:.3f} for these flags; {fraction:g} takes "
        f"{total * (fraction - own):.1f} GiB more from graphs and activations.",
        rank=None,
        known_at=case.known(dump),
        confidence="medium",
        facts={"fraction": fraction, "automatic": round(own, 3), "came_true": failed},
        playbook="serving-oom",
    )
