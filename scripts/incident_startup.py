"""How a launch of the GLM-5 incident starts: its log up to the begin of graph capture."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from forensics.releases import Missing, table

MODEL = "lukealonso/GLM-5-NVFP4"
SCALE_FORMAT = (
    "DeepGemm is enabled but the scale_fmt of checkpoint is not ue8m0. "
    "This might cause accuracy degradation on Blackwell."
)
ROPE = (
    "Transformers version 5.2.0 is used for model type glm_moe_dsa. If you experience issues "
    "related to RoPE parameters, they may be due to incompatibilities between Transformers >=5.0.0 "
    "and some models. You can try downgrading to transformers==4.57.1 as a workaround."
)
SHARDS = 83
RANKS = range(8)

TYPED = {
    "model_path": MODEL,
    "served_model_name": "glm-5",
    "reasoning_parser": "glm45",
    "tool_call_parser": "glm47",
    "trust_remote_code": True,
    "tp_size": 8,
    "kv_cache_dtype": "fp8_e4m3",
    "quantization": "modelopt_fp4",
    "attention_backend": "flashinfer",
    "moe_runner_backend": "flashinfer_cutlass",
    "disable_custom_all_reduce": True,
    "enable_flashinfer_allreduce_fusion": True,
    "host": "0.0.0.0",
    "port": 8000,
}
RESOLVED = {
    "tokenizer_path": MODEL,
    "chunked_prefill_size": 8192,
    "page_size": 64,
    "device": "cuda",
    "load_balance_method": "round_robin",
    "uvicorn_access_log_exclude_prefixes": [],
    "sampling_backend": "flashinfer",
    "grammar_backend": "xgrammar",
    "nsa_prefill_backend": "flashmla_auto",
    "nsa_decode_backend": "flashmla_kv",
    "mamba_scheduler_strategy": "no_buffer",
    "speculative_moe_runner_backend": "flashinfer_cutlass",
    "expert_distribution_recorder_buffer_size": 1000,
    "piecewise_cuda_graph_max_tokens": 2048,
    "encoder_urls": [],
    "custom_weight_loader": [],
    "mm_process_config": {},
}
"""What argument resolution filled in, where that differs from the declared default."""


@dataclass(frozen=True)
class Plan:
    """What differs between launches B and C."""

    fraction: float
    requests: int
    sizes: tuple[int, ...]
    seconds_per_shard: float
    spread: float
    kv_tokens: int
    kv_gib: float
    pool_end_gib: float
    capture_gib: float
    random_seed: int


@dataclass
class Log:
    """A log being written, with its clock."""

    now: datetime
    dice: random.Random
    text: str = ""

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += timedelta(seconds=seconds)

    def main(self, message: str) -> None:
        """A line of the main process."""
        self.text += f"[{self.now:%Y-%m-%d %H:%M:%S}] {message}\n"

    def rank(self, rank: int, message: str) -> None:
        """A line of one rank."""
        self.text += f"[{self.now:%Y-%m-%d %H:%M:%S} TP{rank}] {message}\n"

    def ranks(self, spread_s: float, *messages: Callable[[int], str]) -> None:
        """Lines of all ranks, each rank's in order, the ranks in the order they get to it."""
        begin = self.now
        after = sorted((self.dice.random() * spread_s, rank) for rank in RANKS)
        for delay, rank in after:
            self.now = begin + timedelta(seconds=delay)
            for message in messages:
                self.rank(rank, message(rank))
        self.now = begin + timedelta(seconds=spread_s)


def numexpr(log: Log) -> None:
    """What NumExpr says in the first second, in a format that is not SGLang's own."""
    for line, said in (
        (148, 'detected 128 virtual cores but NumExpr set to maximum of 64, check "NUMEXPR_MAX_'
         'THREADS" environment variable.'),
        (151, 'NumExpr detected 128 cores but "NUMEXPR_MAX_THREADS" not set, so enforcing safe '
         "limit of 16."),
    ):  # fmt: skip
        log.main(f"INFO utils.py:{line}: Note: {said}")


def to_capture(log: Log, plan: Plan) -> None:
    """Everything from the first line to the begin of graph capture."""
    _arguments(log, plan)
    _processes(log)
    _weights(log, plan)
    log.rank(0, "Using KV cache dtype: torch.float8_e4m3fn")
    pool = f"KV Cache is allocated. #tokens: {plan.kv_tokens}, KV size: {plan.kv_gib:.2f} GB"
    log.ranks(0.3, lambda _: pool)
    log.wait(0.4)
    log.ranks(0.4, lambda _: f"Memory pool end. avail mem={plan.pool_end_gib:.2f} GB")
    log.now = log.now.replace(microsecond=0) + timedelta(seconds=1)
    log.ranks(
        0.5,
        lambda _: (
            "Capture cuda graph begin. This can take up to several minutes. "
            f"avail mem={plan.capture_gib:.2f} GB"
        ),
    )
    log.rank(0, f"Capture cuda graph bs {list(plan.sizes)}")


def _arguments(log: Log, plan: Plan) -> None:
    numexpr(log)
    log.wait(2.2)
    for line, said in (
        (955, SCALE_FORMAT),
        (1025, ROPE),
    ):
        log.main(f"WARNING model_config.py:{line}: {said}")
    for line, said in (
        (1206, "Force NSA prefill to use MLA (i.e. disable MHA_ONE_SHOT) for GlmMoeDsaForCausalLM "
         "on Blackwell."),
        (1244, "DSA with TP mode is active, dp_size=1, tp_size=8, attn_tp_size=8, attention "
         "weights will be sharded across 8 ranks."),
        (1257, "Setting page size to 64 for DeepSeek DSA."),
        (1176, "Set NSA backends for fp8_e4m3 KV Cache: prefill=flashmla_auto, "
         "decode=flashmla_kv."),
    ):  # fmt: skip
        log.main(f"WARNING server_args.py:{line}: {said}")
    log.wait(0.9)
    log.main(f"server_args=ServerArgs({_dump(plan)})")
    log.main(SCALE_FORMAT)
    log.main(ROPE)
    log.wait(1.4)
    log.main("Using default HuggingFace chat template with detected content format: openai")


def _dump(plan: Plan) -> str:
    """Every field as the build printed it, in the order in which 0.5.9 declares them."""
    own = {
        "mem_fraction_static": plan.fraction,
        "max_running_requests": plan.requests,
        "random_seed": plan.random_seed,
        "cuda_graph_max_bs": plan.requests,
        "cuda_graph_bs": list(plan.sizes),
        "piecewise_cuda_graph_tokens": _piecewise_tokens(),
    }
    fields: dict[str, Any] = {}
    for name, declared in table("0.5.9").fields.items():
        default = declared.fallback if declared.default is None else declared.default
        fields[name] = None if isinstance(default, Missing) else default
    fields |= RESOLVED | TYPED | own
    return ", ".join(f"{name}={value!r}" for name, value in fields.items())


def _piecewise_tokens() -> list[int]:
    steps = ((4, 33, 4), (48, 257, 16), (288, 513, 32), (576, 1025, 64), (1280, 2049, 256))
    return [tokens for first, end, step in steps for tokens in range(first, end, step)]


def _processes(log: Log) -> None:
    log.wait(8.5)
    log.ranks(2.0, lambda _: SCALE_FORMAT, lambda _: ROPE, lambda _: SCALE_FORMAT, lambda _: ROPE)
    log.ranks(0.8, lambda _: "Init torch distributed begin.")
    for _, rank in sorted((log.dice.random(), rank) for rank in RANKS):
        log.text += (
            f"[Gloo] Rank {rank} is connected to 7 peer ranks. "
            "Expected number of connected peer ranks is : 7\n"
        )
    log.wait(1.5)
    log.rank(0, "sglang is using nccl==2.27.5")
    log.wait(3.6)
    log.ranks(
        0.4,
        lambda rank: (
            f"Init torch distributed ends. elapsed={5.4 + log.dice.random():.2f} s, "
            f"mem usage={0.13 + 0.01 * (rank == 0):.2f} GB"
        ),
    )


def _weights(log: Log, plan: Plan) -> None:
    log.wait(0.8)
    begin = log.now
    log.ranks(0.7, lambda _: "Load weight begin. avail mem=94.40 GB")
    log.ranks(
        0.6,
        lambda _: (
            "Detected nvfp4 checkpoint. Please note that the format is experimental and "
            "subject to change."
        ),
    )
    log.rank(0, "Shared experts fusion optimization enabled.")
    log.text += _shards(plan, log.dice)
    log.wait(SHARDS * plan.seconds_per_shard + 9)
    log.ranks(
        2.5,
        lambda _: (
            "Using FP8 KV cache but no scaling factors provided. Defaulting to scaling "
            "factors of 1.0. This may lead to less accurate results!"
        ),
        lambda _: (
            f"Load weight end. elapsed={(log.now - begin).total_seconds():.2f} s, "
            "type=GlmMoeDsaForCausalLM, dtype=torch.bfloat16, avail mem=33.20 GB, "
            "mem usage=61.20 GB."
        ),
    )
    log.wait(0.8)


def _shards(plan: Plan, dice: random.Random) -> str:
    """The progress bar of rank 0, one line an update, as releases to 0.5.9 print it."""
    bar = "\rLoading safetensors checkpoint shards: {:3d}% Completed | {}/{} [{}<{}, {}]\n"
    text = bar.format(0, 0, SHARDS, "00:00", "?", "?it/s")
    elapsed = 0.0
    for done in range(1, SHARDS + 1):
        took = plan.seconds_per_shard * (1 + plan.spread * (2 * dice.random() - 1))
        elapsed += took
        left = took * (SHARDS - done)
        rate = f"{took:5.2f}s/it" if took > 1 else f"{1 / took:5.2f}it/s"
        percent = round(100 * done / SHARDS)
        text += bar.format(percent, done, SHARDS, clock(elapsed), clock(left), rate)
    return text + "\n"


def clock(seconds: float) -> str:
    """Minutes and seconds, as progress bars print them."""
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"
