"""The tracebacks of the GLM-5 incident: what each rank prints when a launch breaks.

Files, functions and exceptions are the incident's; line numbers inside packages are plausible
for a build between SGLang 0.5.8.post1 and 0.5.9, not exact.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

SITE = "/opt/glm/lib/python3.12/site-packages"
SRT = f"{SITE}/sglang/srt"

ANOTHER = "\nDuring handling of the above exception, another exception occurred:\n\n"

SOLUTIONS = """\
Possible solutions:
1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)
2. set --cuda-graph-max-bs to a smaller value (e.g., 16)
3. disable torch compile by not using --enable-torch-compile
4. disable CUDA graph by --disable-cuda-graph. (Not recommended. Huge performance loss)
Open an issue on GitHub https://github.com/sgl-project/sglang/issues/new/choose \n
"""

DEVICE_ASSERT = """\
torch.AcceleratorError: CUDA error: device-side assert triggered
Search for `cudaErrorAssert' in https://docs.nvidia.com/cuda/cuda-runtime-api/\
group__CUDART__TYPES.html for more information.
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace \
below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
"""

PROBABILITY_ASSERT = (
    "/pytorch/aten/src/ATen/native/cuda/TensorCompare.cu:112: _assert_async_cuda_kernel: block: "
    "[0,0,0], thread: [0,0,0] Assertion `probability tensor contains either `inf`, `nan` or "
    "element < 0` failed.\n"
)

UNKNOWN_TYPE = (
    "The checkpoint you are trying to load has model type `glm_moe_dsa` but Transformers does not "
    "recognize this architecture. This could be because of an issue with the checkpoint, or "
    "because your version of Transformers is out of date.\n\n"
    "You can update Transformers with the command `pip install --upgrade transformers`. If this "
    "does not work, and the checkpoint is very new, then there may not be a release version that "
    "supports this model yet. In this case, you can get the most up-to-date code by installing "
    "Transformers from source with the command "
    "`pip install git+https://github.com/huggingface/transformers.git`\n"
)


@dataclass(frozen=True)
class OutOfMemory:
    """The figures of one allocator message, as torch prints them."""

    gpu: int
    free_mib: float
    in_use_gib: float = 94.72

    def __str__(self) -> str:
        return (
            f"CUDA out of memory. Tried to allocate 694.00 MiB. GPU {self.gpu} has a total "
            f"capacity of 94.97 GiB of which {self.free_mib:.2f} MiB is free. Including "
            f"non-PyTorch memory, this process has {self.in_use_gib:.2f} GiB memory in use. Of the "
            "allocated memory 87.43 GiB is allocated by PyTorch, and 6.44 GiB is reserved by "
            "PyTorch but unallocated. If reserved but unallocated memory is large try setting "
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
            "documentation for Memory Management  "
            "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
        )


_CAPTURE = """\
{srt}/model_executor/cuda_graph_runner.py:371 __init__ > self.capture()
{srt}/model_executor/cuda_graph_runner.py:524 capture > _capture_one_stream()
{srt}/model_executor/cuda_graph_runner.py:511 _capture_one_stream > \
) = self.capture_one_batch_size(bs, forward, stream_idx)
{srt}/model_executor/cuda_graph_runner.py:730 capture_one_batch_size > run_once()
{srt}/model_executor/cuda_graph_runner.py:717 run_once > \
logits_output_or_pp_proxy_tensors = forward(
{site}/torch/utils/_contextlib.py:120 decorate_context > return func(*args, **kwargs)
{srt}/models/deepseek_v2.py:2921 forward > hidden_states = self.model(
{srt}/models/deepseek_v2.py:2733 forward > hidden_states, residual = layer(
{srt}/models/deepseek_v2.py:2398 forward > hidden_states = self.self_attn(
{srt}/models/deepseek_v2.py:1375 forward > return self.forward_core(s)
{srt}/models/deepseek_v2.py:1463 forward_core > return self.forward_absorb_core(*inner_state)
{srt}/models/deepseek_v2.py:1819 forward_absorb_core > attn_output = self.attn_mqa(
{srt}/layers/radix_attention.py:127 forward > return forward_batch.attn_backend.forward(
{srt}/layers/attention/base_attn_backend.py:93 forward > return self.forward_decode(
{srt}/layers/attention/flashinfer_mla_backend.py:641 forward_decode > \
k_buffer = forward_batch.token_to_kv_pool.get_key_buffer(layer.layer_id).to(
"""

_START = """\
{srt}/managers/scheduler.py:3128 run_scheduler_process > scheduler = Scheduler(
{srt}/managers/scheduler.py:366 __init__ > self.init_model_worker()
{srt}/managers/scheduler.py:562 init_model_worker > self.init_tp_model_worker()
{srt}/managers/scheduler.py:520 init_tp_model_worker > self.tp_worker = TpModelWorker(
{srt}/managers/tp_worker.py:247 __init__ > self._init_model_runner()
{srt}/managers/tp_worker.py:330 _init_model_runner > self._model_runner = ModelRunner(
{srt}/model_executor/model_runner.py:413 __init__ > self.initialize(min_per_gpu_memory)
{srt}/model_executor/model_runner.py:611 initialize > self.init_device_graphs()
{srt}/model_executor/model_runner.py:2158 init_device_graphs > \
self.graph_runner = graph_runners[self.device](self)
{srt}/model_executor/cuda_graph_runner.py:373 __init__ > raise Exception(
"""

_DECODE = """\
{srt}/managers/scheduler.py:3167 run_scheduler_process > scheduler.event_loop_overlap()
{site}/torch/utils/_contextlib.py:120 decorate_context > return func(*args, **kwargs)
{srt}/managers/scheduler.py:1171 event_loop_overlap > pop_and_process()
{srt}/managers/scheduler.py:1142 pop_and_process > self.process_batch_result(tmp_batch, tmp_result)
{srt}/managers/scheduler.py:2451 process_batch_result > \
self.process_batch_result_decode(batch, result)
{srt}/managers/scheduler_output_processor_mixin.py:423 process_batch_result_decode > \
result.copy_done.synchronize()
{site}/torch/cuda/streams.py:231 synchronize > super().synchronize()
"""

_CONFIG = """\
{site}/transformers/models/auto/configuration_auto.py:1360 from_pretrained > \
config_class = CONFIG_MAPPING[config_dict["model_type"]]
{site}/transformers/models/auto/configuration_auto.py:1048 __getitem__ > raise KeyError(key)
"""

_ARGUMENTS = """\
<frozen runpy>:198 _run_module_as_main >
<frozen runpy>:88 _run_code >
{site}/sglang/launch_server.py:29 <module> > server_args = prepare_server_args(sys.argv[1:])
{srt}/server_args.py:5464 prepare_server_args > return ServerArgs.from_cli_args(raw_args)
{srt}/server_args.py:4952 from_cli_args > \
return cls(**{{attr: getattr(args, attr) for attr in attrs}})
<string>:318 __init__ >
{srt}/server_args.py:712 __post_init__ > self._handle_gpu_memory_settings(gpu_mem)
{srt}/server_args.py:986 _handle_gpu_memory_settings > if not self.use_mla_backend():
{srt}/server_args.py:4983 use_mla_backend > model_config = self.get_model_config()
{srt}/server_args.py:4966 get_model_config > self.model_config = ModelConfig.from_server_args(self)
{srt}/configs/model_config.py:248 from_server_args > return ModelConfig(
{srt}/configs/model_config.py:125 __init__ > self.hf_config = get_config(
{srt}/utils/hf_transformers_utils.py:318 get_config > raise e
{srt}/utils/hf_transformers_utils.py:313 get_config > config = AutoConfig.from_pretrained(
{site}/transformers/models/auto/configuration_auto.py:1362 from_pretrained > raise ValueError(
"""


def traceback(frames: str, error: str) -> str:
    """A traceback as Python prints it; `frames` holds `file:line function > source` lines."""
    text = "Traceback (most recent call last):\n"
    for frame in frames.format(srt=SRT, site=SITE).splitlines():
        where, _, source = frame.partition(" >")
        place, _, function = where.rpartition(" ")
        file, _, line = place.rpartition(":")
        text += f'  File "{file}", line {line}, in {function}\n'
        text += _marked(source.strip()) if source.strip() else ""
    return f"{text}{error}\n"


def _marked(source: str) -> str:
    """A source line with Python 3.12's marks under the expression that was being evaluated."""
    before = re.match(r"return |.*? = ", source)
    if not before or "{" in source:
        return f"    {source}\n"
    expression = source[before.end() :]
    name = expression.index("[") if expression.endswith('"]]') else 0
    marks = "~" * name + "^" * (len(expression) - name)
    return f"    {source}\n    {' ' * before.end()}{marks}\n"


def capture_failed(error: OutOfMemory) -> str:
    """Launch B: the allocator's refusal, and the exception that the graph runner makes of it."""
    return (
        traceback(_CAPTURE, f"torch.OutOfMemoryError: {error}")
        + ANOTHER
        + traceback(_START, f"Exception: Capture cuda graph failed: {error}")
        + SOLUTIONS
        + "\n"
    )


def decode_failed() -> str:
    """Launch C: a copy to the host is where an earlier assertion on the GPU comes to light."""
    return traceback(_DECODE, DEVICE_ASSERT) + "\n"


def unknown_architecture() -> str:
    """Launch A: Transformers does not know the checkpoint's model type."""
    return (
        traceback(_CONFIG, "KeyError: 'glm_moe_dsa'")
        + ANOTHER
        + traceback(_ARGUMENTS, f"ValueError: {UNKNOWN_TYPE}").removesuffix("\n")
    )
