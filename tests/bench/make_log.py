"""Write a big, deterministic serving log of eight ranks, for measuring.

It begins as launch C of the incident does, up to readiness, and then serves: of the lines, 62 %
are decode batches, 19 % prefill batches, 18.5 % HTTP access, the rest retractions and other rare
kinds. The same size gives the same bytes.

    python tests/bench/make_log.py 200MB big.log
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

FIXTURES = Path(__file__).resolve().parent.parent.parent / "fixtures"
READY = b"The server is fired up and ready to roll!\n"
UNITS = {"kB": 10**3, "MB": 10**6, "GB": 10**9}
LINES_PER_SECOND = 40
LINES_PER_BLOCK = 20_000


def parse_size(text: str) -> int:
    """`200MB` as bytes; units are powers of 1000."""
    return int(float(text[:-2]) * UNITS[text[-2:]])


def decode(dice: Callable[[], float], rank: int) -> str:
    running = int(dice() * 63) + 1
    tokens = running * (400 + int(dice() * 6000))
    return (
        f" TP{rank}] Decode batch, #running-req: {running}, #token: {tokens}, "
        f"token usage: {tokens / 425216:.2f}, cuda graph: True, "
        f"gen throughput (token/s): {running * (20 + 18 * dice()):.2f}, #queue-req: 0\n"
    )


def prefill(dice: Callable[[], float], rank: int) -> str:
    new = int(dice() * 8192)
    return (
        f" TP{rank}] Prefill batch, #new-seq: {int(dice() * 6) + 1}, #new-token: {new}, "
        f"#cached-token: {64 * int(dice() * 50)}, token usage: {dice() * 0.9:.2f}, "
        f"#running-req: {int(dice() * 64)}, #queue-req: {int(dice() * 4)}, "
        f"input throughput (token/s): {new * (1 + dice()):.2f}, cuda graph: False\n"
    )


def access(dice: Callable[[], float], _: int) -> str:
    port = 30000 + int(dice() * 30000)
    path = "POST /v1/chat/completions" if dice() < 0.9 else "GET /health"
    return f'] INFO:     10.0.{int(dice() * 256)}.17:{port} - "{path} HTTP/1.1" 200 OK\n'


def rare(dice: Callable[[], float], rank: int) -> str:
    ratio = 0.3 + 0.4 * dice()
    return (
        f" TP{rank}] KV cache pool is full. Retract requests. #retracted_reqs: 1, "
        f"#new_tokens_gained: {int(dice() * 9000)}, #new_token_ratio: {ratio:.4f} -> "
        f"{ratio + 0.1:.4f}\n"
    )


def start() -> tuple[bytes, datetime]:
    """The log of a healthy start, and the time at which it was ready."""
    log = (FIXTURES / "sglang-glm5-c.log").read_bytes()
    head = log[: log.index(READY) + len(READY)]
    stamp = head.splitlines()[-1][1:20].decode()
    return head, datetime.fromisoformat(stamp)


def blocks(size: int) -> Iterator[bytes]:
    """The log in blocks, until it has at least `size` bytes."""
    head, now = start()
    yield head
    written = len(head)
    dice = random.Random(20260218).random
    line = 0
    while written < size:
        parts: list[str] = []
        for _ in range(LINES_PER_BLOCK):
            if line % LINES_PER_SECOND == 0:
                now += timedelta(seconds=1)
                stamp = f"[{now:%Y-%m-%d %H:%M:%S}"
            pick = dice()
            make = (
                decode if pick < 0.62 else prefill if pick < 0.81 else access if pick < 0.995
                else rare
            )  # fmt: skip
            parts += stamp, make(dice, line % 8)
            line += 1
        block = "".join(parts).encode()
        written += len(block)
        yield block


def write(size: int, path: Path) -> None:
    """Write a log of about `size` bytes."""
    with path.open("wb") as file:
        file.writelines(blocks(size))


if __name__ == "__main__":
    write(parse_size(sys.argv[1]), Path(sys.argv[2]))
