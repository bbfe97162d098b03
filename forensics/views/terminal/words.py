"""The words of `forensics.views.words`, where they stood before."""

from forensics.views.words import (
    DOING,
    PHASE,
    SEVERITY_STYLE,
    Places,
    amount,
    count,
    duration,
    fold_ranks,
    percent,
    value,
)

__all__ = [
    "DOING",
    "PHASE",
    "SEVERITY_STYLE",
    "Places",
    "amount",
    "count",
    "duration",
    "fold_ranks",
    "percent",
    "value",
]
