"""Write the flagship fixtures: four launch logs of the GLM-5 incident of 18 February 2026.

A 400 GB mixture-of-experts model in NVFP4 is brought up on eight 96 GB GPUs (SM120), tensor
parallel 8. Launch A fails on an unknown architecture; B runs out of memory while CUDA graphs are
captured, with 0.95 of each GPU given to weights and KV pool; C, with 0.88, comes up and serves,
until the first sampled requests meet NaN. `abc` is all three appended to one file, as `>>` does.

The facts (arguments, warnings, sizes, the allocator's figures, who failed first) are the
incident's; clock times between them, and the order in which eight ranks get to print, are drawn
from a seeded generator, so that the same script always writes the same bytes.

    python scripts/make_incident.py [FOLDER]
"""

from __future__ import annotations

import random
import sys
from datetime import datetime
from pathlib import Path

from incident_startup import Log, Plan, clock, numexpr, to_capture
from incident_tracebacks import (
    PROBABILITY_ASSERT,
    OutOfMemory,
    capture_failed,
    decode_failed,
    unknown_architecture,
)

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
RANKS = 8

LAUNCH_B = Plan(0.95, 8, (1, 2, 4, 8), 3.94, 0.03, 553728, 31.70, 1.36, 0.96, 718205934)
LAUNCH_C = Plan(
    0.88, 64, (1, 2, 4, 8, 12, 16, 24, 32, 40, 48, 56, 64), 0.31, 0.2, 425216, 24.34, 8.67, 8.27,
    336190057,
)  # fmt: skip


def launch_a() -> str:
    """Transformers 4.57.1 does not know the architecture; nothing is ever started."""
    log = Log(datetime(2026, 2, 18, 21, 12, 40), random.Random("A"))
    numexpr(log)
    log.text += unknown_architecture()
    return log.text


def launch_b() -> str:
    """Out of memory on TP4, first of eight equals, while CUDA graphs are captured."""
    log = Log(datetime(2026, 2, 18, 23, 47, 17, 300_000), random.Random("B"))
    to_capture(log, LAUNCH_B)
    log.text += "\r  0%|          | 0/4 [00:00<?, ?it/s]"
    log.text += (
        "\rCapturing batches (bs=8 avail_mem=0.93 GB):   0%|          | 0/4 [00:00<?, ?it/s]"
    )
    refused = [OutOfMemory(4, 247.44), OutOfMemory(1, 249.44), OutOfMemory(6, 251.44, 94.71)]
    for error, pause in zip(refused, (5.1, 0.4, 0.8), strict=True):
        log.wait(pause)
        log.rank(error.gpu, f"Scheduler hit an exception: {capture_failed(error)}".rstrip("\n"))
        log.text += "\n\n"
    log.wait(0.3)
    for _ in refused:
        log.main("Received sigquit from a child process. It usually means the child failed.")
    log.text += "Killed\n"
    return log.text


def launch_c() -> str:
    """Comes up and serves; NaN when the first requests are sampled."""
    log = Log(datetime(2026, 2, 19, 0, 2, 11), random.Random("C"))
    to_capture(log, LAUNCH_C)
    _capture(log, LAUNCH_C)
    _ready(log)
    _trials(log)
    log.text += PROBABILITY_ASSERT * RANKS
    log.wait(0.6)
    log.rank(2, f"Scheduler hit an exception: {decode_failed()}".rstrip("\n"))
    log.text += "\n\n"
    log.main("SIGQUIT received. signum=None, frame=None. It usually means one child failed.")
    for rank in (5, 0, 7, 1, 3, 6, 4):
        log.wait(0.1)
        log.rank(rank, f"Scheduler hit an exception: {decode_failed()}".rstrip("\n"))
        log.text += "\n\n"
    log.text += "Killed\n"
    return log.text


def _capture(log: Log, plan: Plan) -> None:
    """Launch C: twelve sizes, the largest first; the first one allocates the shared buffers."""
    sizes = sorted(plan.sizes, reverse=True)
    log.text += f"\r  0%|          | 0/{len(sizes)} [00:00<?, ?it/s]"
    free = plan.capture_gib - 0.02
    for done, size in enumerate(sizes):
        log.text += (
            f"\rCapturing batches (bs={size} avail_mem={free:.2f} GB): "
            f"{round(100 * done / len(sizes)):3d}%|{'#' * (10 * done // len(sizes)):<10}| "
            f"{done}/{len(sizes)} [{clock(3.2 * done)}<{clock(3.2 * (len(sizes) - done))}, "
            " 3.20s/it]"
        )
        free -= 1.41 if done == 0 else 0.04
    log.text += "\n"
    log.wait(3.2 * len(sizes))
    used = plan.capture_gib - free
    log.ranks(
        0.3,
        lambda _: (
            f"Capture cuda graph end. Time elapsed: {38.2 + log.dice.random():.2f} s. "
            f"mem usage={used:.2f} GB. avail mem={free:.2f} GB."
        ),
    )
    log.wait(0.9)
    log.rank(
        0,
        f"max_total_num_tokens={plan.kv_tokens}, chunked_prefill_size=8192, "
        f"max_prefill_tokens=16384, max_running_requests={plan.requests}, context_len=202752, "
        f"available_gpu_mem={free:.2f} GB",
    )


def _ready(log: Log) -> None:
    log.wait(1.5)
    for said in (
        "Started server process [30877]",
        "Waiting for application startup.",
        "Application startup complete.",
        "Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)",
    ):
        log.main(f"INFO:     {said}")
    log.wait(1.0)
    _access(log, 51310, "GET /model_info")
    _prefill(log, 6, 0.0)
    log.wait(2.8)
    _access(log, 51312, "POST /generate")
    log.main("The server is fired up and ready to roll!")


def _trials(log: Log) -> None:
    """A few greedy requests by hand, idle health checks, then the first sampled requests."""
    log.wait(9)
    for trial, (prompt, steps) in enumerate(((19, 1), (44, 3), (212, 6), (1536, 9))):
        log.wait(17)
        _prefill(log, prompt, 12.0 + 4 * trial)
        for step in range(1, steps + 1):
            log.wait(1.05)
            speed = 37.9 + 1.1 * log.dice.random()
            log.rank(
                0,
                f"Decode batch, #running-req: 1, #token: {prompt + 40 * step}, token usage: 0.00, "
                f"cuda graph: True, gen throughput (token/s): {speed:.2f}, #queue-req: 0",
            )
        _access(log, 51320 + 2 * trial, "POST /v1/chat/completions")
    for port in range(51340, 51360, 2):
        log.wait(30)
        _access(log, port, "GET /health")
    log.wait(11)
    _prefill(log, 4096, 3.1)
    _prefill(log, 8192, 5380.2, new=5, running=1, usage=0.01)
    log.wait(0.4)


def _access(log: Log, port: int, request: str) -> None:
    log.main(f'INFO:     127.0.0.1:{port} - "{request} HTTP/1.1" 200 OK')


def _prefill(
    log: Log, tokens: int, speed: float, new: int = 1, running: int = 0, usage: float = 0.0
) -> None:
    log.rank(
        0,
        f"Prefill batch, #new-seq: {new}, #new-token: {tokens}, #cached-token: 0, "
        f"token usage: {usage:.2f}, #running-req: {running}, #queue-req: 0, "
        f"input throughput (token/s): {speed:.2f}, cuda graph: False",
    )


def logs() -> dict[str, str]:
    """File name to text."""
    a, b, c = launch_a(), launch_b(), launch_c()
    return {
        "sglang-glm5-a.log": a,
        "sglang-glm5.log": b,
        "sglang-glm5-c.log": c,
        "sglang-glm5-abc.log": a + b + c,
    }


def main() -> None:
    """Write the four logs."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FIXTURES
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in logs().items():
        (folder / name).write_bytes(text.encode())


if __name__ == "__main__":
    main()
