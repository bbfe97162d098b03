"""The KV pool as the log shows it: too small for its purpose, or its books do not balance."""

from __future__ import annotations

import re
from collections.abc import Iterator

from forensics.events import Event
from forensics.findings import Finding, Remedy, Severity
from forensics.memory import Ledger
from forensics.remedies import action, flag, kept
from forensics.rules.base import DEGRADED, FAILURE, Skip, rule
from forensics.rules.case import Case
from forensics.rules.fractions import grow_pool
from forensics.rules.memory_facts import context_len, fraction_of, whole

_LEAK = re.compile(
    r"(?i)(?:pool|allocator|cache|mem(?:ory)?) ?\w* ?leak detected|pool mem leak|leak detected!"
)
_SIZE = re.compile(r"(\w+)=(\d+)")
_RETURNED_GIB = 4.0
"""Free memory at capture above the slack by so much came back after the pool was sized."""
_RETURNED_SHARE = 0.06
_TINY = 0.25
"""A pool below this share of one full request, while more than it is free."""


@rule(
    "kv-accounting",
    class_="kv_accounting_bug",
    summary="The server's own check of KV or request slots finds some that nobody holds",
    needs="the exception of the check",
)
def kv_accounting(case: Case) -> Iterator[Finding | Skip]:
    """Slots neither free nor cached: a defect of the bookkeeping, not a shortage."""
    for failure in case.run.failures:
        chain = failure.traceback.chain if failure.traceback else []
        said = next((r.message for r in chain if _LEAK.search(r.message)), None)
        if said is None and not _LEAK.search(failure.event.text):
            continue
        yield case.finding(
            "kv-accounting",
            "kv_accounting_bug",
            failure.event,
            title="KV slots are missing in the server's own books: a defect, not a shortage",
            explanation="When the server is idle, every slot must be free or hold a cached prefix."
            f"{_balance(said or failure.event.text)} GPU memory is as it should be; the word leak "
            "means slots.",
            evidence=case.failure_evidence(failure),
            remedies=_accounting(case),
            not_helpful=[
                "mem_fraction_static, in either direction: no memory is short",
                "fewer running requests: it only delays the check",
            ],
            rank=failure.rank,
            phase=failure.phase,
            weight=FAILURE,
            facts={"figures": dict(_SIZE.findall(said or "")), "outcome": "failed"},
        )
        return


def _balance(said: str) -> str:
    sizes = {name: int(value) for name, value in _SIZE.findall(said)}
    total = sizes.get("max_total_num_tokens") or sizes.get("total_size")
    held = [sizes[n] for n in ("available_size", "evictable_size", "protected_size") if n in sizes]
    if not total or not held:
        return ""
    shown = " - ".join(f"{value}" for value in held)
    return f" Here {total} - {shown} = {total - sum(held)} are neither."


def _accounting(case: Case) -> list[Remedy]:
    radix = None
    if case.run.launch.get("disable_radix_cache") is not True:
        radix = flag(
            case.run.launch,
            "disable_radix_cache",
            True,
            "without cached prefixes the books are simpler; only until the defect is mended",
            cost="no reuse of prefixes",
        )
    return kept(
        action("upgrade_sglang", "such defects are mended from release to release"),
        radix,
        action("report_bug", "the message and the launch flags are what the developers need"),
    )


@rule(
    "kv-pool-undersized",
    class_="kv_pool_undersized",
    summary="The KV pool is far too small although GPU memory is free",
    names={
        "kv-pool-under-context": (
            "kv_pool_undersized",
            "The KV pool holds fewer tokens than one request of the full context",
        )
    },
    needs="pool size, context length and free memory after start-up",
)
def kv_pool_undersized(case: Case) -> Iterator[Finding | Skip]:
    """Memory that came back after sizing, or a share that is simply too low."""
    summary, context = case.run.first("max_total_tokens"), context_len(case)
    ledgers = [ledger for ledger in case.run.ledgers() if ledger.kv_tokens]
    if not ledgers or not context:
        yield Skip("pool size or context length is not known")
        return
    ledger = min(ledgers, key=lambda one: one.kv_tokens or 0)
    tokens = ledger.kv_tokens or 0
    if tokens >= context:
        return
    event = summary or _pool_line(case)
    if event is None:
        return
    returned = _returned(case, ledger)
    typed = _typed_limit(case)
    if returned is not None and not typed:
        yield _undersized(case, event, ledger, tokens, context, returned)
    elif finding := _small(case, event, ledger, tokens, context, typed):
        yield finding


def _pool_line(case: Case) -> Event | None:
    return case.run.first("kv_pool_under_context", "kv_cache_allocated")


def _typed_limit(case: Case) -> bool:
    return whole(case.run.launch.get("max_total_tokens")) is not None


def _returned(case: Case, ledger: Ledger) -> float | None:
    """Free memory beyond the slack of the fraction at capture: it was in use at sizing."""
    fraction = fraction_of(case.run)
    free = ledger.capture_begin_gib if ledger.capture_begin_gib is not None else ledger.end_gib
    if fraction is None or ledger.baseline_gib is None or free is None:
        return None
    above = free - ledger.baseline_gib * (1 - fraction)
    return above if above > max(_RETURNED_GIB, _RETURNED_SHARE * ledger.baseline_gib) else None


def _undersized(
    case: Case, event: Event, ledger: Ledger, tokens: int, context: int, returned: float
) -> Finding:
    pool = next((e for e in case.run.of("kv_cache_allocated") if e.rank == event.rank), None)
    grown = (
        f"{ledger.after_pool_gib:.2f} GiB were free after the pool and "
        if (ledger.after_pool_gib is not None)
        else ""
    )
    refused = case.run.first("request_too_long", "input_too_long")
    return case.finding(
        "kv-pool-undersized",
        "kv_pool_undersized",
        event,
        title=f"The KV pool has {tokens:,} tokens for a context of {context:,}, with "
        f"{ledger.end_gib or 0:.1f} GiB free",
        explanation=f"{grown}{ledger.capture_begin_gib or 0:.2f} at capture: {returned:.1f} GiB "
        "more than the fraction leaves alone. Memory that loading still held when the pool was "
        "sized came back afterwards, so the pool got next to nothing. Longer prompts than the "
        "pool are refused.",
        evidence=case.evidence(pool, *_jump(case, event.rank), event, refused),
        remedies=kept(
            action("upgrade_sglang", "temporaries of the loader are released before sizing"),
            _raise_past(case, ledger),
            action("report_bug", "the two free-memory lines around the pool are the proof"),
        ),
        not_helpful=[
            "a lower mem_fraction_static: the pool would be smaller still",
            "a shorter context: the pool stays as it is",
        ],
        rank=event.rank,
        phase="kv_pool",
        known_at=case.known(event),
        weight=DEGRADED + 5,
        facts={"kv_tokens": tokens, "context_len": context, "returned_gib": round(returned, 2)},
    )


def _jump(case: Case, rank: str | None) -> list[Event]:
    kinds = ("memory_pool_end", "capture_begin")
    return [e for k in kinds if (e := next((x for x in case.run.of(k) if x.rank == rank), None))]


def _raise_past(case: Case, ledger: Ledger) -> Remedy | None:
    """The fraction that would have given one full request in spite of the temporaries."""
    context, cell = context_len(case), ledger.cell_bytes
    fraction, baseline = fraction_of(case.run), ledger.baseline_gib
    if not context or not cell or fraction is None or not baseline:
        return None
    lacking = cell * (context - (ledger.kv_tokens or 0)) / 2**30
    raised = round(fraction + lacking / baseline + 0.005, 2)
    if not fraction < raised < 0.95:
        return None
    return flag(
        case.run.launch,
        "mem_fraction_static",
        raised,
        f"adds {baseline * (raised - fraction):.1f} GiB to the pool: one full request fits",
        direction="increase",
        basis="computed",
        cost="less memory for activations, of which there is plenty here",
        effect={
            "kv_pool_gib": round(baseline * (raised - fraction), 2),
            "kv_tokens": int(
                (ledger.kv_tokens or 0) + baseline * (raised - fraction) * 2**30 / cell
            ),
        },
    )


def _small(
    case: Case, event: Event, ledger: Ledger, tokens: int, context: int, typed: bool
) -> Finding | None:
    """A pool smaller than one full request, by choice or by a low share."""
    refused = case.run.first("request_too_long", "input_too_long")
    warned = case.run.first("kv_pool_under_context")
    event = warned if warned and warned.line < event.line else event
    quiet = case.run.ready is not None and refused is None and warned is None
    if quiet and tokens >= _TINY * context:
        return None  # long contexts that nobody uses are common, and it serves
    end = ledger.end_gib or 0.0
    pool = ledger.pool_gib or 0.0
    idle = tokens < _TINY * context and end > max(4 * pool, 8.0)
    fatal = _ended_warmup(case, refused)
    root = fatal or (idle and refused is not None and (not typed or _model_takes(refused, context)))
    why = "max_total_tokens limits it" if typed else f"{end:.1f} GiB are free after start-up"
    return case.finding(
        "kv-pool-under-context",
        "kv_pool_undersized",
        event,
        severity="critical" if fatal else _severity(case, root, typed),
        role="root_cause" if root else "precursor",
        title=f"The KV pool holds {tokens:,} tokens, fewer than one request of {context:,}",
        explanation=f"A request longer than the pool cannot be served; {why}."
        + (" SGLang's own first request was refused, which ends the start." if fatal else ""),
        evidence=case.evidence(event, refused),
        remedies=_larger_or_shorter(case, tokens, typed, root, fatal),
        rank=event.rank,
        phase="warmup" if fatal else "kv_pool",
        known_at=case.known(refused if fatal and refused else event),
        weight=FAILURE if fatal else DEGRADED,
        facts={"kv_tokens": tokens, "context_len": context, "came_true": refused is not None},
        playbook="kv-pool-undersized",
    )


def _ended_warmup(case: Case, refused: Event | None) -> bool:
    """The request that SGLang warms up with was refused: the server never comes to serve."""
    run = case.run
    return run.ready is None and refused is not None and bool(run.counts["warmup_failed"])


def _model_takes(refused: Event, context: int) -> bool:
    """Whether the model would take a prompt that was refused: the pool is what is too short."""
    length = refused.number("input_len")
    return length is not None and length < context


def _severity(case: Case, root: bool, typed: bool) -> Severity:
    if root and not typed:
        return "critical"
    return "warning" if root or case.run.ready is None else "info"


def _larger_or_shorter(
    case: Case, tokens: int, typed: bool, root: bool, fatal: bool
) -> list[Remedy]:
    launch, limit, shorter = case.run.launch, None, None
    if typed and fatal:
        why = "the pool is capped by it; so many hold one request of the full context"
        limit = flag(launch, "max_total_tokens", context_len(case), why, basis="computed")
    elif typed:
        why = "the pool is capped by it"
        limit = flag(launch, "max_total_tokens", None, why, direction="remove")
    if not root:
        shorter = flag(
            launch,
            "context_length",
            tokens,
            "requests longer than the pool cannot be served anyway",
            direction="decrease",
            basis="computed",
        )
    return kept(limit, None if typed else grow_pool(case), shorter)
