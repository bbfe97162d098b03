"""Which models capture expensively (capture costs: the split that explains most)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

Weight = Literal["light", "heavy"]

_SPARSE_OR_MLA = re.compile(
    r"deepseek[-_ ]?(v[2-9]|r1|ocr)|kimi|glm[-_ ]?moe[-_ ]?dsa|glm-?5|longcat"
    r"|minicpm3|mistral-?large-?3|mistral-?4|mistral-?small-?4|bailing.*v2_5|ring-?2\.5|pangu.*moe|sarvam.*mla|eagle.*deepseek",
    re.IGNORECASE,
)
_EXPERTS = re.compile(
    r"moe|mixtral|minimax|gpt-?oss|grok|llama-?4|dbrx|jamba|arctic|step3|a\d+b\b|mimo|glm-?4\.?5"
    r"|deepseek|qwen3_?5moe|qwen3-?next|ernie-?4\.?5|hunyuan|maverick|scout",
    re.IGNORECASE,
)
_DISTILLED = re.compile(r"distill", re.IGNORECASE)
_CLASS_NAME = re.compile(r"[A-Z]\w*For[A-Z]\w*")
HEAVY_RANKS = 8


def uses_mla(*names: str | None) -> bool:
    """Whether a model class, type or path names a model with MLA or sparse attention."""
    return any(_SPARSE_OR_MLA.search(name) for name in _telling(names))


def has_experts(*names: str | None) -> bool:
    """Whether a model class, type or path names a mixture of experts."""
    return any(_EXPERTS.search(name) for name in _telling(names))


def _telling(names: Iterable[str | None]) -> list[str]:
    """The names to judge by: model classes if there are any; a distilled model bears another's."""
    known = [name for name in names if name and not _DISTILLED.search(name)]
    return [name for name in known if _CLASS_NAME.fullmatch(name)] or known


def capture_class(*names: str | None, tp_size: int = 1, ep_size: int = 1) -> Weight:
    """`heavy` for MLA or sparse attention, and for experts over 8 ranks and more; else `light`.

    `names`: model class, model type, path; any may be None. Our reading of names, so a model
    that is not named after its kind counts as light.
    """
    if uses_mla(*names):
        return "heavy"
    wide = max(tp_size, ep_size) >= HEAVY_RANKS
    return "heavy" if wide and has_experts(*names) else "light"
