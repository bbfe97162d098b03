"""Whether a trial gave back the GPU memory that it took, as the driver says (NVML)."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable

TOLERANCE_GIB = 0.25
"""Another process may take a little meanwhile, and the driver keeps some for itself."""

PATIENCE_S = 20.0
"""The driver gives memory back some seconds after a process is gone."""


def free_gib() -> list[float] | None:
    """Free memory of each GPU, GiB; None where there is none, or no NVML to ask."""
    try:
        pynvml = importlib.import_module("pynvml")  # the extra `reproduce` has it
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        try:
            handles = [
                pynvml.nvmlDeviceGetHandleByIndex(index)
                for index in range(pynvml.nvmlDeviceGetCount())
            ]
            frees = [pynvml.nvmlDeviceGetMemoryInfo(handle).free / 2**30 for handle in handles]
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError:
        return None
    return frees or None


def is_returned(
    before: list[float] | None,
    now: Callable[[], list[float] | None] = free_gib,
    patience_s: float = PATIENCE_S,
    hurry: Callable[[], bool] = lambda: False,
) -> bool | None:
    """Wait until as much is free as before; None where that cannot be told."""
    if before is None:
        return None
    deadline = time.monotonic() + patience_s
    while True:
        after = now()
        if after is None or len(after) != len(before):
            return None
        if all(here >= there - TOLERANCE_GIB for here, there in zip(after, before, strict=True)):
            return True
        if time.monotonic() >= deadline or hurry():
            return False
        time.sleep(0.5)
