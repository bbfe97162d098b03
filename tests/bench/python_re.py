"""A plain Python loop over a log, as one would write it in an afternoon: the naive peer.

Counts batches by rank and adds up their throughput; nothing is kept, nothing else is understood.
"""

from __future__ import annotations

import re
import sys
from collections import Counter

HEAD = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?: (TP\d+))?\] (.*)")
DECODE = re.compile(
    r"Decode batch, #running-req: (\d+), #token: (\d+), token usage: ([\d.]+), "
    r"cuda graph: (\w+), gen throughput \(token/s\): ([\d.]+), #queue-req: (\d+)"
)
PREFILL = re.compile(
    r"Prefill batch, #new-seq: (\d+), #new-token: (\d+), #cached-token: (\d+), "
    r"token usage: ([\d.]+), #running-req: (\d+), #queue-req: (\d+), "
    r"input throughput \(token/s\): ([\d.]+)"
)

batches: Counter[tuple[str, str]] = Counter()
tokens_per_second = 0.0
with open(sys.argv[1], encoding="utf-8", errors="replace") as log:
    for line in log:
        if not (head := HEAD.match(line)):
            continue
        rank, message = head[2], head[3]
        if found := DECODE.match(message):
            batches[rank, "decode"] += 1
            tokens_per_second += float(found[5])
        elif found := PREFILL.match(message):
            batches[rank, "prefill"] += 1
            tokens_per_second += float(found[7])
print(sum(batches.values()), round(tokens_per_second))
