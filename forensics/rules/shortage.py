"""Which mechanism a rank's out-of-memory has: decided once, so that one rule alone speaks of it.

What a failing rank was doing (its frames) and whose memory it was (the allocator's figures) decide,
never the words of the message. Frames name functions and modules of `sglang/srt` 0.4.1 to 0.5.23.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from forensics.incident import Failure
from forensics.rules.case import Case
from forensics.rules.gpu_growth import leaked_gib
from forensics.rules.neighbours import neighbour_class

DEVICE_OOM = frozenset(
    {
        "out_of_memory",
        "cuda_error_out_of_memory",
        "cuda_memory_allocation",
        "driver_out_of_memory",
        "cublas_alloc_failed",
        "virtual_memory_failed",
        "workspace_allocation_failed",
        "nccl_calloc_failed",
        "nccl_warn_out_of_memory",
    }
)
"""Message kinds that say that GPU memory ran out, by PyTorch, the driver or a library."""

_NCCL = re.compile(r"ncclUnhandledCudaError|unhandled cuda error|ncclSystemError", re.I)
_NCCL_NEAR = 12
"""Lines after a failure's record within which NCCL's own last words stand."""
_LITTLE_GIB = 2.0
"""Below this an unhandled CUDA error inside NCCL is taken for memory."""

_COMM_FRAMES = re.compile(
    r"deep_ep/|deepep\.py|nvshmem|mooncake.*ep\w*\.py|symm_mem|symmetric_memory|pynccl_allocator"
    r"|pynccl\w*\.py|custom_all_reduce\w*\.py|mscclpp|mnnvl|flashinfer/comm|trtllm_allreduce"
    r"|quick_all_reduce|nixl_ep"
)
_DRAFT_FRAMES = re.compile(r"speculative/|eagle\w*\.py|draft\w*\.py|_nextn\.py|\w+_mtp\.py")
_DRAFT_WORKER = re.compile(
    r"(?:eagle|standalone|multi_layer_eagle|mtp|dflash|draft)\w*(?:worker|draft)\w*\.py"
    r":|draft_worker|init_draft|:launch_draft"
)
_BY_FRAME = (
    ("logprob_oom", re.compile(r"logits_processor\.py|logprob")),
    ("lora_buffers_oom", re.compile(r"srt/lora/|lora_manager\.py|lora_layers?\.py")),
    (
        "state_cache_oom",
        re.compile(
            r":(?:MambaPool|_init_mamba\w*)|[Mm]amba\w*(?:pool|slot|cache)|mamba_checkpoint"
        ),
    ),
    ("sampling_buffer_oom", re.compile(r"/sampler\.py|sampling_batch_info|sampling/|penaltylib")),
    (
        "vision_encoder_oom",
        re.compile(
            r"get_image_feature|get_video_feature|get_audio_feature|mm_utils\.py:(?!general_mm_embed_routine)|/vision\.py|visual"
            r"|image_processor|multimodal/|siglip|/clip\.py|/\w*vit\w*\.py|vision_tower|vision_model"
        ),
    ),
    ("hicache_oom", re.compile(r"memory_pool_host\.py:__init__|memory_pool_host\.py:init")),
    (
        "hicache_transfer",
        re.compile(r"cache_controller|hiradix|memory_pool_host|hicache|l2_transfer|:get_flat_data"),
    ),
)
"""Class to the frames that show it, tried from the innermost frame outwards."""

_WORKSPACE = re.compile(
    r"attention\w*backend|attention/|workspace|flashmla|flashinfer_backend|_backend\.py:__init__"
)
_POOL = re.compile(r"memory_pool\.py|init_memory_pool|_init_pools|kv_cache_configurator|kv_pool")
_REPACK = re.compile(
    r"process_weights_after_loading|post_load_weights|repack|requant|swizzle|shuffle_weight"
    r"|_prepare_static_weights|marlin_utils|update_weights|per_token_group_quant|scaled_fp\d_quant"
    r"|quark|weight_dequant|block_dequant"
)
INNERMOST = 10


def is_device_oom(failure: Failure) -> bool:
    """Whether a failure is GPU memory running out, by PyTorch's allocator, driver or NCCL."""
    if failure.oom is not None:
        return True
    chain = failure.traceback.chain if failure.traceback else []
    kinds = {raised.kind for raised in chain} | {failure.event.kind}
    return bool(kinds & DEVICE_OOM)


_ROOT = re.compile(r"^.*/(?:python|site-packages|dist-packages)/")
"""Where packages lie is the installation's affair (`/sgl-workspace/...`)."""


def places(failure: Failure) -> list[str]:
    """The frames of the cause as `/package/file.py:function`, the innermost last."""
    frames = failure.traceback.cause.frames if failure.traceback else []
    return [f"/{_ROOT.sub('', frame.file)}:{frame.function}" for frame in frames]


def shortages(case: Case) -> Iterator[tuple[Failure, str]]:
    """Failures of GPU memory in reading order, each with its mechanism."""
    for failure in case.run.failures:
        if is_device_oom(failure) or nccl_memory(case, failure):
            yield failure, mechanism_of(case, failure)


def first_shortage(case: Case, *mechanisms: str) -> Failure | None:
    """The first failure of GPU memory, if it has one of these mechanisms."""
    failure, mechanism = next(shortages(case), (None, ""))
    return failure if mechanism in mechanisms else None


_CLASSES = {"kv_pool_oom": "activation_oom", "hicache_transfer": "activation_oom"}
"""Mechanisms that are finer than the published classes."""


def class_of(case: Case, failure: Failure) -> tuple[str, str]:
    """The mechanism of a failure of GPU memory, and its published class."""
    mechanism = mechanism_of(case, failure)
    return mechanism, _CLASSES.get(mechanism, mechanism)


def mechanism_of(case: Case, failure: Failure) -> str:
    """The mechanism of a failure of GPU memory: a published class, or a finer name."""
    if in_communication(case, failure):
        return "comm_buffer_oom"
    if neighbour := neighbour_class(case, failure):
        return neighbour
    if failure.phase == "graph_capture":
        return "graph_capture_oom"
    if failure.phase in ("load", "kv_pool") and is_draft(case, failure):
        return "draft_model_oom"
    if any("update_weights" in place for place in places(failure)):
        return "load_peak_oom"
    by_frame = class_of_frames(failure)
    if failure.phase in ("init", "load"):
        return by_frame if by_frame == "lora_buffers_oom" else _of_loading(failure)
    if failure.phase == "kv_pool":
        return by_frame if by_frame in _BEFORE_CAPTURE else _of_pool(failure)
    return by_frame or _of_serving(case, failure)


_BEFORE_CAPTURE = frozenset({"lora_buffers_oom", "state_cache_oom", "hicache_oom"})
"""Mechanisms that frames show before capture too; the others belong to a forward pass."""


def _of_loading(failure: Failure) -> str:
    repacking = any(_REPACK.search(place) for place in places(failure))
    return "load_peak_oom" if repacking else "weights_do_not_fit"


def _of_pool(failure: Failure) -> str:
    inner = places(failure)[-4:]
    if any(_POOL.search(place) for place in inner):
        return "kv_pool_oom"
    if any(_WORKSPACE.search(place) for place in inner):
        return "workspace_oom"
    return "kv_pool_oom" if any(_POOL.search(p) for p in places(failure)) else "workspace_oom"


def _of_serving(case: Case, failure: Failure) -> str:
    if leaked_gib(case, failure) is not None:
        return "gpu_memory_leak"
    oom = failure.oom
    cached = (oom.reserved_unallocated_gib or 0.0) if oom else 0.0
    if oom and cached >= max(2 * oom.requested_gib, 1.0):
        return "allocator_fragmentation"
    inner = places(failure)[-3:]
    if any(re.search(r"workspace", place) for place in inner):
        return "workspace_oom"
    return "activation_oom"


def class_of_frames(failure: Failure) -> str | None:
    """The class that the innermost frames show by themselves; None if they show none."""
    for place in reversed(places(failure)[-INNERMOST:]):
        for class_, pattern in _BY_FRAME:
            if pattern.search(place):
                return class_
    return None


def is_draft(case: Case, failure: Failure) -> bool:
    """Whether a failure happened in a draft model's worker."""
    if not case.run.launch.get("speculative_algorithm"):
        return False
    return any(_DRAFT_WORKER.search(p) or _DRAFT_FRAMES.search(p) for p in places(failure))


def in_communication(case: Case, failure: Failure) -> bool:
    """Whether the buffer that was refused is one of NCCL or of an all-to-all or all-reduce."""
    if nccl_memory(case, failure):
        return True
    return any(_COMM_FRAMES.search(place) for place in places(failure)[-4:])


def nccl_memory(case: Case, failure: Failure) -> bool:
    """Whether an NCCL error is memory: by its last words, else by how little was free."""
    chain = failure.traceback.chain if failure.traceback else []
    said = "\n".join([*(raised.message for raised in chain), failure.event.text])
    if not _NCCL.search(said) and "NCCL" not in said:
        return False
    if re.search(r"CUDA (?:c|m)alloc|out of memory", said):
        return True
    near = (failure.line - _NCCL_NEAR, failure.event.end_line + _NCCL_NEAR)
    for event in case.run.of("nccl_calloc_failed", "nccl_warn_out_of_memory"):
        if event.source == failure.event.source and (
            near[0] <= event.line <= near[1] or event.kind == "nccl_warn_out_of_memory"
        ):
            return True
    free = [f for ledger in case.run.ledgers() if (f := ledger.end_gib or ledger.after_pool_gib)]
    return bool(_NCCL.search(said)) and bool(free) and min(free) < _LITTLE_GIB
