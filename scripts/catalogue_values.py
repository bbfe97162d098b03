"""Values for the marks of a message template: of the right shape, and all different in one line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

ALTERNATIVE = "input throughput (token/s):"
"""A field that two exclusive branches of 0.5.9 add in the same words."""

NO_VALUE: list[str] = []


class Mark(Protocol):
    """What is known of a value: the expression that gives it, and its format."""

    @property
    def expression(self) -> str:
        """Source text of the expression."""

    @property
    def spec(self) -> str:
        """Format specification, such as `.2f`; empty where there is none."""


SHAPES: list[tuple[str, str, list[str]]] = [
    # expression, text to fill in, what of it a field must hold (None: all of it)
    (r"token_usage_msg|token_msg", "token usage: 0.31, ", ["0.31"]),
    (r"forward_occupancy_log_string", "fwd occupancy: 93.10%", ["93.1"]),
    (r"iter_msg|sol_suffix|estimate_suffix|quant_str|replayssm_rawv|It only takes", "", NO_VALUE),
    (r"graph_backend\[|_graph_backend_label", "cuda graph", NO_VALUE),
    (r"can_run_cuda_graph|self\.soft|include_parent", "True", ["True"]),
    (r"capture_bs|num_tokens_list|capture_num_tokens", "[1, 2, 4, 8]", ["[1, 2, 4, 8]"]),
    (r"capture_name", "cuda graph", NO_VALUE),
    (r"phase_str", "Decode", NO_VALUE),
    (r"cache_name|pool_label", "KV Cache", NO_VALUE),
    (r"traceback", "Traceback (most recent call last):", ["Traceback (most recent call last):"]),
    (r"type\(self\.model\)\.__name__", "LlamaForCausalLM", ["LlamaForCausalLM"]),
    (r"dtype", "torch.bfloat16", ["torch.bfloat16"]),
    (r"allow_patterns", "['*.safetensors']", ["['*.safetensors']"]),
    (r"CUDA_VISIBLE_DEVICES", "0,1,2,3", ["0,1,2,3"]),
    (r"backend", "full", ["full"]),
    (r"debug_name", "Scheduler", ["Scheduler"]),
    (r"lora_ref", "sql", ["sql"]),
    (r"self\.device$|kwargs\['device'\]|^device$", "cuda", ["cuda"]),
    (r"detail|message$|result\.std|_evictable_str", "because", NO_VALUE),
]
"""By the name of the expression; the first that fits."""


def fill(parts: tuple[str | Mark, ...]) -> tuple[str, list[str]]:
    """The first line of the message with every mark filled, and what fields must hold."""
    line, values = "", []
    for place, part in enumerate(_once(parts)):
        text, wanted = (part, NO_VALUE) if isinstance(part, str) else _value(part, place)
        line += text
        if "\n" in line:
            break
        values += wanted
    return line.split("\n", 1)[0], values


def _once(parts: tuple[str | Mark, ...]) -> Iterator[str | Mark]:
    """The parts without a field that two branches of the source add in the same words."""
    seen: set[str] = set()
    skip = False
    for part in parts:
        if isinstance(part, str):
            words = part.strip(", ")
            skip = words == ALTERNATIVE and words in seen
            seen.add(words)
        if not skip:
            yield part


def _value(mark: Mark, place: int) -> tuple[str, list[str]]:
    for pattern, text, wanted in SHAPES:
        if re.search(pattern, mark.expression):
            return text, wanted
    number = 11 + place
    if digits := re.search(r"\.(\d)f", mark.spec):
        text = f"{number}.{place:02}"[: len(str(number)) + 1 + int(digits[1])]
        return text, [text]
    return str(number), [str(number)]
