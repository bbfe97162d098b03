"""What helps when memory runs out while serving, by mechanism, best first."""

from __future__ import annotations

from collections.abc import Callable

from forensics.findings import Remedy
from forensics.incident import Failure
from forensics.remedies import action, env, flag, kept
from forensics.rules.case import Case
from forensics.rules.fractions import baseline_of, lower_by
from forensics.rules.memory_facts import whole

_SMALL_CHUNK = 1024
_PAGE = 64
_RESERVE_SHARE = 0.025
"""At least this share of a card is freed at once: one refused request is a lower bound."""


def remedies_for(
    case: Case, first: Failure, mechanism: str, running: int | None = None
) -> list[Remedy]:
    """The remedies of a mechanism (`forensics.rules.shortage`)."""
    makers = _ORDER.get(mechanism, _ORDER["activation_oom"])
    return kept(*(make(case, first, running) for make in makers))


def fraction(case: Case, first: Failure, running: int | None = None) -> Remedy | None:
    """A lower fraction, by the refused request or a small share of the card."""
    del running
    base = baseline_of(case)
    if base is None:
        return None
    missing = max(first.oom.requested_gib if first.oom else 0.0, _RESERVE_SHARE * base)
    return lower_by(case, missing, "activations")


def chunk(case: Case, first: Failure, running: int | None = None) -> Remedy | None:
    """Half the chunk; chunking switched on where it is off."""
    del first, running
    launch = case.run.launch
    size = whole(launch.get("chunked_prefill_size"))
    if size is None:
        return None
    if size <= 0:
        return flag(
            launch,
            "chunked_prefill_size",
            4096,
            "chunking is off; it bounds the tokens, and so the activations, of one prefill",
            direction="set",
            basis="heuristic",
            cost="slower prefill of long prompts",
        )
    if size <= _SMALL_CHUNK:
        return None
    return flag(
        launch,
        "chunked_prefill_size",
        size // 2,
        f"activations of a prefill grow with its chunk of {size}: half of it takes half",
        basis="heuristic",
        cost="slower prefill of long prompts",
    )


def fewer(case: Case, first: Failure, running: int | None = None) -> Remedy | None:
    """Fewer running requests than were running, or than are allowed."""
    del first
    allowed = whole(case.run.launch.get("max_running_requests"))
    seen = f"up to {running} were running; " if running else ""
    most = min(int(running * 0.6) if running else 512, allowed // 2 if allowed else 1024)
    if most < 1:
        return None
    return flag(
        case.run.launch,
        "max_running_requests",
        max(most // 8 * 8, 1),
        f"{seen}buffers of sampling and decoding grow with running requests",
        direction="decrease",
        basis="heuristic",
        cost="less concurrency",
    )


def segments(case: Case, first: Failure, running: int | None = None) -> Remedy | None:
    """Expandable segments, where much is cached in pieces."""
    del running
    oom = first.oom
    cached = (oom.reserved_unallocated_gib or 0.0) if oom else 0.0
    if oom is None or cached <= max(oom.requested_gib, 0.5):
        return None
    name = "PYTORCH_HIP_ALLOC_CONF" if oom.backend == "HIP" else "PYTORCH_CUDA_ALLOC_CONF"
    if "expandable_segments:True" in case.run.launch.env.get(name, ""):
        return None
    made: Remedy = env(
        name,
        "set",
        f"{cached:.2f} GiB are cached in pieces of which none held {oom.requested_gib:.2f}",
        to="expandable_segments:True",
        cost="none known; not with memory saver or IPC-shared weights",
    )
    return made


def _page(case: Case, first: Failure, running: int | None) -> Remedy | None:
    del first, running
    page = whole(case.run.launch.get("page_size")) or 1
    if page >= _PAGE:
        return None
    return flag(
        case.run.launch,
        "page_size",
        _PAGE,
        f"with pages of {page} a transfer gathers single tokens into large temporary buffers",
        direction="increase",
        cost="cached prefixes match in steps of a page",
    )


def _without_hicache(case: Case, first: Failure, running: int | None) -> Remedy | None:
    del first, running
    return flag(
        case.run.launch,
        "enable_hierarchical_cache",
        None,
        "no transfers, no buffers for them",
        direction="remove",
        cost="prefixes that leave the GPU are lost",
    )


def _logprob_range(case: Case, first: Failure, running: int | None) -> Remedy | None:
    del case, first, running
    return action(
        "reduce_logprob_range",
        "log-probabilities of a whole prompt need logits of the whole vocabulary for each of its "
        "tokens; ask for the last tokens only (logprob_start_len)",
    )


def _images(case: Case, first: Failure, running: int | None) -> Remedy | None:
    del case, first, running
    return action("limit_image_size", "the encoder's memory grows with the pixels of a batch")


def _upgrade(case: Case, first: Failure, running: int | None) -> Remedy | None:
    del case, first, running
    return action("upgrade_sglang", "such leaks are mended from release to release")


def _restart(case: Case, first: Failure, running: int | None) -> Remedy | None:
    del case, first, running
    return action("scheduled_restart", "keeps it below the card's size until then")


def fewer_adapters(case: Case, first: Failure, running: int | None = None) -> Remedy | None:
    """Half the adapters of a batch."""
    del first, running
    now = whole(case.run.launch.get("max_loras_per_batch")) or 8
    return flag(
        case.run.launch,
        "max_loras_per_batch",
        max(now // 2, 1),
        f"buffers for {now} adapters of the largest rank are held; half of them take half",
        direction="decrease",
        basis="computed",
        cost="fewer adapters in one batch",
    )


def lower_rank(case: Case, first: Failure, running: int | None = None) -> Remedy | None:
    """A smaller largest rank, where one is set."""
    del first, running
    now = whole(case.run.launch.get("max_lora_rank"))
    if not now or now <= 8:
        return None
    return flag(
        case.run.launch,
        "max_lora_rank",
        now // 2,
        "adapter buffers grow with the largest rank that is allowed for",
        direction="decrease",
        basis="computed",
        cost="adapters of a larger rank are refused",
    )


_Maker = Callable[[Case, Failure, int | None], Remedy | None]
_ORDER: dict[str, tuple[_Maker, ...]] = {
    "activation_oom": (fraction, chunk, segments),
    "logprob_oom": (chunk, _logprob_range, fraction, segments),
    "vision_encoder_oom": (chunk, fraction, _images, segments),
    "sampling_buffer_oom": (fewer, fraction, chunk),
    "hicache_transfer": (_page, fraction, _without_hicache),
    "hicache_oom": (fraction, _without_hicache),
    "allocator_fragmentation": (segments, fraction, chunk),
    "workspace_oom": (fraction, chunk),
    "lora_buffers_oom": (fewer_adapters, lower_rank, fraction),
    "state_cache_oom": (fraction, fewer),
    "gpu_memory_leak": (_upgrade, _restart, fraction),
}
