"""The smallest command that comes to the same launch, from a dump of resolved values.

Facts: launch arguments, sections 4 and 6. The dump shows what flags were resolved to, so a
value that differs from the default need not have been typed.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from forensics.launch.arguments import groups, tokens
from forensics.launch.model import Argument, Launch, Value
from forensics.memory.automatic import Settings, automatic_fraction, default_chunk, default_max_bs

TYPED, LIKELY, RESOLVED = "typed", "likely typed", "resolved"

_FIRST = (
    "model_path",
    "tp_size",
    "pp_size",
    "dp_size",
    "ep_size",
    "nnodes",
    "node_rank",
    "dist_init_addr",
)
_ALWAYS_RESOLVED = frozenset(
    {"random_seed", "cuda_graph_config", "piecewise_cuda_graph_tokens", "nccl_port"}
    | {"custom_sigquit_handler", "stat_loggers"}
    | {"piecewise_cuda_graph_max_tokens", "uses_mamba_radix_cache"}
)
_OWN_CHOICES: dict[str, tuple[Value, ...]] = {
    "sampling_backend": ("flashinfer", "pytorch", "ascend"),
    "grammar_backend": ("xgrammar",),
    "mm_attention_backend": ("fa3", "triton_attn", "sdpa", "fa4"),
    "max_running_requests": (32, 48, 256),
    "page_size": (1, 16, 32, 64, 128),
    "cuda_graph_max_bs": (8, 16, 24, 32, 48, 80, 160, 256, 512),
    "chunked_prefill_size": (-1, 2048, 4096, 8192, 16384),
    "load_balance_method": ("round_robin", "follow_bootstrap_room"),
    "mamba_scheduler_strategy": ("no_buffer",),
    "mamba_radix_cache_strategy": ("no_buffer",),
    "expert_distribution_recorder_buffer_size": (1000,),
    "mm_process_config": ({},),
    "mm_feature_transport": ("cpu", "cuda_ipc"),
    "kt_method": ("AMXINT4",),
    "kt_threadpool_count": (2,),
}
"""Values that SGLang picks by itself; another value was typed."""
_MODEL_RULES = ("attention_backend", "prefill_attention_backend", "decode_attention_backend")
_MODEL_SUFFIXES = ("_runner_backend", "_gemm_backend")
_RARE_ATTENTION = frozenset(
    {"cutlass_mla", "flashmla", "flex_attention", "hpc_ops", "tokenspeed_mla", "wave"}
)
_NEVER_OWN: dict[str, frozenset[str]] = {
    **dict.fromkeys(_MODEL_RULES, _RARE_ATTENTION),
    "moe_runner_backend": frozenset(
        {"flashinfer_cutedsl", "experimental_sgl_trtllm", "experimental_sgl_marlin", "hpc_ops"}
        | {"humming", "lora_cutedsl", "lora_triton", "lora_marlin"}
    ),
    "fp8_gemm_runner_backend": frozenset(
        {"cutlass", "flashinfer_cutlass", "flashinfer_deepgemm", "triton"}
    ),
    "fp4_gemm_runner_backend": frozenset(
        {"flashinfer_cudnn", "flashinfer_cutedsl", "flashinfer_cutlass", "flashinfer_trtllm"}
    ),
}
"""Backends that no rule of SGLang picks (source of 0.4.6.post5, 0.5.9, 0.5.23): they were typed."""
_HIGHEST_OWN_FRACTION = 0.92
"""No rule of any release picks more on any card (0.911 on the largest; 0.88 fixed to 0.4.4)."""
_FEATURE_RULES = frozenset(
    {"disable_overlap_schedule", "disable_piecewise_cuda_graph", "disable_shared_experts_fusion"}
    | {"disable_hybrid_swa_memory", "disable_chunked_prefix_cache", "disable_prefill_cuda_graph"}
)
_DRAFT_PATH = "speculative_draft_model_path"
_COPIES = {
    "tokenizer_path": "model_path",
    "served_model_name": "model_path",
    _DRAFT_PATH: "model_path",
}


def minimal_flags(launch: Launch, gpu_total_mib: float | None = None) -> list[Argument]:
    """The flags that explain a launch, each marked `typed`, `likely typed` or `resolved`.

    Where the command is known its flags are `typed` and the rest `resolved`. Else defaults,
    fields without a flag and derived values are left out. `gpu_total_mib` is the smallest
    card's total as nvidia-smi prints it; it tells automatic values from typed ones.
    """
    release = launch.table()
    found: list[Argument] = []
    for field in _ordered(launch.flags):
        value = launch.flags[field]
        if value is None or field in launch.removed or release.is_default(field, value):
            continue
        mark = _mark(launch, field, value, gpu_total_mib)
        words = tokens(field, value, release)
        if mark is not None and words:
            found.append(Argument(field, value, tuple(words), mark))
    return found


def argv(launch: Launch, gpu_total_mib: float | None = None) -> list[str]:
    """The command as typed, else the program with the `typed` and `likely typed` flags."""
    if launch.command is not None:
        return list(launch.command)
    kept = [a for a in minimal_flags(launch, gpu_total_mib) if a.mark != RESOLVED]
    return [*launch.program, *(word for argument in kept for word in argument.tokens)]


def not_repeated(launch: Launch, gpu_total_mib: float | None = None) -> list[str]:
    """Flags that `argv` leaves out, since their value may be SGLang's own choice; as one would type
    them. Empty where the command is known: it is repeated as it is.
    """
    if launch.command is not None:
        return []
    found = minimal_flags(launch, gpu_total_mib)
    return [shlex.join(a.tokens) for a in found if a.mark == RESOLVED]


def grouped(words: Sequence[str], launch: Launch) -> list[tuple[str, ...]]:
    """A command as its program, then one flag with its values per item."""
    length = len(launch.program)
    release = launch.table() if launch.release or launch.release_range else None
    parts = [group.tokens for group in groups(list(words[length:]), release)]
    return [tuple(words[:length]), *parts]


def _ordered(flags: dict[str, Value]) -> Iterator[str]:
    yield from (name for name in _FIRST if name in flags)
    yield from (name for name in flags if name not in _FIRST)


def _mark(launch: Launch, field: str, value: Value, gpu_total_mib: float | None) -> str | None:
    """How sure it is that a field was typed; None for a value that was derived for certain."""
    if field in launch.typed:
        return TYPED
    if field in _ALWAYS_RESOLVED or _copied(launch, field, value):
        return None
    if value == [] and launch.table().default(field) is None:
        return None  # resolution makes an empty list of what nobody typed
    if launch.command is not None:
        return RESOLVED
    if field == "mem_fraction_static":
        return _fraction_mark(launch, value, gpu_total_mib)
    if field in ("chunked_prefill_size", "cuda_graph_max_bs") and gpu_total_mib is not None:
        return None if value == _class_default(launch, field, gpu_total_mib) else LIKELY
    return _rule_mark(launch, field, value)


def _copied(launch: Launch, field: str, value: Value) -> bool:
    source = _COPIES.get(field)
    if source and value == launch.flags.get(source):
        # EAGLE does not start without its draft, whatever path that has.
        return field != _DRAFT_PATH or launch.flags.get("speculative_algorithm") is None
    if field == "device":
        return value == "cuda"
    if field == "cuda_graph_bs" and isinstance(value, list):
        return value in _generated_sizes(value)
    if field == "schedule_conservativeness":
        return value == 0.3 and launch.flags.get("enable_dp_attention") is True
    if field == "ep_size":
        return value == launch.flags.get("tp_size") and bool(
            launch.flags.get("moe_a2a_backend") in ("deepep", "mooncake")
            or launch.flags.get("enable_deepep_moe")
            or launch.flags.get("enable_ep_moe")
        )
    return False


def _generated_sizes(sizes: list[Value]) -> list[list[int]]:
    """The batch-size lists that SGLang makes up to the largest of these, from 0.5.3."""
    largest = max((s for s in sizes if isinstance(s, int)), default=0)
    plain = [1, 2, 4, 8, 12, *range(16, 257, 8), *range(272, 512, 16), *range(512, 1025, 32)]
    speculative = [*range(1, 9), *range(10, 33, 2), *range(40, 65, 4), *range(72, 257, 8)]
    speculative += range(272, 1025, 16)
    short = [[s for s in full if s <= largest] for full in (plain, speculative)]
    return [made if largest in made else [*made, largest] for made in short]


def _rule_mark(launch: Launch, field: str, value: Value) -> str:
    speculative = launch.flags.get("speculative_algorithm") is not None
    if not _is_choice(launch, field, value):
        return RESOLVED
    if field == "max_running_requests" and not speculative:
        return LIKELY
    if value in _NEVER_OWN.get(field, ()):
        return LIKELY
    if field in _MODEL_RULES or field.endswith(_MODEL_SUFFIXES) or field in _FEATURE_RULES:
        return RESOLVED
    if field.startswith(("nsa_", "dsa_")) and field.endswith("_backend"):
        return RESOLVED
    return RESOLVED if value in _OWN_CHOICES.get(field, ()) else LIKELY


def _is_choice(launch: Launch, field: str, value: Value) -> bool:
    """Whether the parser takes the value; a build between releases may take more than they do."""
    declared = launch.table().fields.get(field)
    if declared is None:
        return True  # a fork, or a build between releases: nothing is known against it
    is_known = (launch.release or launch.versions.get("sglang")) == launch.table().version
    return not (is_known and declared.choices) or value in declared.choices


def _fraction_mark(launch: Launch, value: Value, gpu_total_mib: float | None) -> str:
    if not isinstance(value, int | float):
        return LIKELY
    if gpu_total_mib is not None:
        settings = Settings.of_launch(launch.get, launch.table().version)
        automatic = automatic_fraction(gpu_total_mib, settings)
        if automatic is not None and abs(value - automatic) <= 0.002 + 1e-9:
            return RESOLVED
        return LIKELY
    people = abs(value * 100 - round(value * 100)) < 1e-6 or value > _HIGHEST_OWN_FRACTION
    return LIKELY if people else RESOLVED


def _class_default(launch: Launch, field: str, gpu_total_mib: float) -> int | None:
    version = launch.table().version
    if field == "chunked_prefill_size":
        return default_chunk(gpu_total_mib, version)
    tp_size = launch.number("tp_size")
    return default_max_bs(gpu_total_mib, int(tp_size or 1), version)
