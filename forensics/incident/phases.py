"""What a process was doing when it failed, from the frames of its traceback.

Names of functions and modules of `sglang/srt`, stable over the releases 0.4.1 to 0.5.23 where
not said otherwise. A phase is taken from the outermost frame that names one step of the start,
since the frames inside it (a model's forward pass) occur in several phases.
"""

from __future__ import annotations

import re

from forensics.events import Frame

_STEPS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "graph_capture",
        re.compile(
            r"graph_runner\.py:|graph_backend|:(?:init_(?:cuda|device|decode|prefill|piecewise)\w*_graphs?"
            r"|capture(?:_\w+)?|_capture\w*|init_\w*cuda_graph\w*|init_\w*graph_runner\w*)$"
        ),
    ),
    (
        "kv_pool",
        re.compile(
            r":(?:init_memory_pool\w*|_init_pools|profile_max_num_token\w*|_profile\w*tokens?"
            r"|init_attention_backend\w*|_get_attention_backend\w*|init_tree_cache|init_cache\w*"
            r"|init_hi\w*cache|_create_buffers|init_kv_buffer|_resolve_memory_pool_config"
            r"|_flashinfer_autotune|kernel_warmup|alloc_memory_pool\w*)$"
            r"|memory_pool(?:_host)?\.py:__init__$|hiradix_cache\.py:__init__$|memory_pool_host\.py:"
        ),
    ),
    (
        "load",
        re.compile(
            r":(?:load_model|get_model|_initialize_model|initialize_model|create_weights"
            r"|load_weights\w*|process_weights_after_loading|_prepare_weights|download_weights\w*"
            r"|update_weights\w*)$|model_loader/loader\.py:|weight_utils\.py:"
        ),
    ),
    (
        "init",
        re.compile(
            r":(?:init_torch_distributed|init_distributed_environment|initialize_model_parallel"
            r"|prepare_server_args|from_cli_args|parse_args|init_process_group"
            r"|get_model_config|_set_envs_and_config|init_tokenizer\w*)$"
            r"|server_args\.py:__post_init__$|model_config\.py:__init__$|model_config\.py:"
        ),
    ),
)

_LOOP = re.compile(
    r":(?:(?:run_)?event_loop\w*|forward_thread_func\w*|handle_loop|run_batch|forward_batch_generation"
    r"|process_batch_result\w*|get_next_batch_to_run|self_check_during_idle|check_memory|recv_requests)$"
)
_CALLED = re.compile(r"(?:self|scheduler)\.(\w+)\(")
_WARMUP = re.compile(r":(?:_?execute_server_warmup|_wait_and_warmup|_warmup\w*)$")


def phase_of_frames(frames: list[Frame], *, ready: bool) -> str | None:
    """The phase that the frames show, None if they show none.

    `ready` tells a request while serving from the warm-up request before readiness.
    """
    places = [place for frame in frames for place in _places(frame)]
    if any(_LOOP.search(place) for place in places):
        return "serving" if ready else "warmup"
    for phase, step in _STEPS:
        if any(step.search(place) for place in places):
            return phase
    if any(_WARMUP.search(place) for place in places):
        return "warmup"
    return None


def _places(frame: Frame) -> list[str]:
    """The frame itself, and what its line calls: a cut traceback may lack the callee's frame."""
    own = f"{frame.file.rsplit('/srt/', 1)[-1]}:{frame.function}"
    return [own, *(f":{called}" for called in _CALLED.findall(frame.code))]
