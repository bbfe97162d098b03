"""The GPU through PyTorch. Imported only when a probe runs; the only module that needs torch."""

from __future__ import annotations

import importlib
from typing import Any

from forensics.grammar.oom import parse_out_of_memory
from forensics.probe.model import Geometry, ProbeError
from forensics.probe.probing import OutOfMemory
from forensics.probe.stand_in import StandIn

_WARM_UPS = 2
"""Eager runs before a size is captured, as SGLang has it."""


def first_card(index: int = 0) -> TorchCard:
    """A GPU to probe. Raises ProbeError where there is no PyTorch or no such GPU."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        raise ProbeError(
            "probe needs PyTorch in this Python, which has none: run it where SGLang is installed,"
            " or see --dry-run"
        ) from None
    except OSError as error:
        raise ProbeError(f"PyTorch cannot be loaded: {error}") from None
    if not torch.cuda.is_available():
        raise ProbeError("probe needs a CUDA GPU, and PyTorch sees none here; see --dry-run")
    count = torch.cuda.device_count()
    if index >= count:
        raise ProbeError(f"there is no GPU {index}: PyTorch sees {count}")
    return TorchCard(torch, index)


class TorchCard:
    """One GPU."""

    def __init__(self, torch: Any, index: int) -> None:
        self._torch, self._device = torch, torch.device("cuda", index)
        torch.cuda.set_device(self._device)
        self.name = str(torch.cuda.get_device_name(self._device))
        self.torch = str(torch.__version__)
        self.total_gib = torch.cuda.mem_get_info(self._device)[1] / 2**30
        self._held: list[Any] = []
        self._graphs: list[Any] = []
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream()
        self._stand_in: StandIn | None = None

    def free_gib(self, *, emptied: bool = True) -> float:
        """Free memory by the driver; by default after unused cache was given back."""
        self._torch.cuda.synchronize()
        if emptied:
            self._torch.cuda.empty_cache()
        return float(self._torch.cuda.mem_get_info(self._device)[0]) / 2**30

    def hold(self, gib: float, pieces: int = 1) -> None:
        """Allocate plain memory and keep it. Raises OutOfMemory."""
        size = int(gib * 2**30 / pieces)
        if size <= 0:
            return
        with _Memory(self._torch):
            for _ in range(pieces):
                held = self._torch.empty(size, dtype=self._torch.uint8, device=self._device)
                self._held.append(held)

    def stand_in(self, geometry: Geometry) -> float:
        """Make the stand-in and run it once; GiB it took. Raises OutOfMemory."""
        before = self.free_gib()
        with _Memory(self._torch):
            self._stand_in = StandIn(self._torch, self._device, geometry)
            self._run(1)
        return before - self.free_gib()

    def buffers(self, attention_gib: float) -> None:
        """Allocate attention's and the logits' buffers. Raises OutOfMemory."""
        assert self._stand_in is not None
        self.hold(attention_gib)
        with _Memory(self._torch):
            self._stand_in.make_logits()

    def capture(self, batch: int) -> None:
        """Run one batch size twice and capture its graph. Raises OutOfMemory."""
        torch, model = self._torch, self._stand_in
        assert model is not None
        with _Memory(torch):
            for _ in range(_WARM_UPS):
                self._run(batch)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool, stream=self._stream):
                model.step(batch)
            self._graphs.append(graph)

    def _run(self, batch: int) -> None:
        """One eager step on the stream of captures: libraries keep a workspace for each stream."""
        assert self._stand_in is not None
        self._torch.cuda.synchronize()
        with self._torch.cuda.stream(self._stream):
            self._stand_in.step(batch)
        self._torch.cuda.synchronize()


class _Memory:
    """Turns an error that is, or was caused by, a refused allocation into OutOfMemory."""

    def __init__(self, torch: Any) -> None:
        self._kind: type[BaseException] = torch.cuda.OutOfMemoryError

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        seen: BaseException | None = error
        while seen is not None:
            text = str(seen)
            if isinstance(seen, self._kind) or "CUBLAS_STATUS_ALLOC_FAILED" in text:
                oom = parse_out_of_memory(text)
                raise OutOfMemory(
                    text.splitlines()[0] if text else "out of memory",
                    oom.requested_gib if oom else None,
                    oom.free_gib if oom else None,
                ) from None
            # Leaving a capture that failed fails as well; its own error hides the first one.
            seen = seen.__cause__ or seen.__context__
