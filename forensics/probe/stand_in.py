"""A stand-in for a model: its matrices and its number of kernels, none of its knowledge.

All layers share one layer's weights, since graphs keep pointers, not weights. A layer launches
about as many kernels as the server's fused ones (twelve) and makes tensors of the same sizes;
attention reads a short window that all requests and heads share. Capture costs buffers (allocated
apart), activations, kernel nodes and the pool's rounding, none of which depend on what is read.
"""

from __future__ import annotations

from typing import Any

from forensics.probe.model import Geometry

WINDOW = 64
"""KV entries that attention reads."""


class StandIn:
    """Decodes noise for a batch, in bfloat16."""

    def __init__(self, torch: Any, device: Any, geometry: Geometry) -> None:
        self._torch, self._geometry = torch, geometry
        self._heads = geometry.heads
        self._largest = max(geometry.batch_sizes)
        hidden, head, kv = geometry.hidden, geometry.head_dim, geometry.kv_heads
        wide = self._heads * head

        def matrix(rows: int, columns: int) -> Any:
            made = torch.empty(rows, columns, dtype=torch.bfloat16, device=device)
            return made.normal_(0.0, 0.02)

        self._qkv = matrix(wide + 2 * kv * head, hidden)
        self._out = matrix(hidden, wide)
        self._gate_up = matrix(2 * geometry.ffn, hidden)
        self._down = matrix(hidden, geometry.ffn)
        self._head = matrix(geometry.vocab, hidden)
        self._norm = torch.ones(hidden, dtype=torch.bfloat16, device=device)
        self._keys, self._values = matrix(head, WINDOW), matrix(WINDOW, head)
        self._cache = matrix(self._largest, 2 * kv * head)
        self._tokens = matrix(self._largest, hidden)
        self._slots = torch.arange(self._largest, device=device)
        self._angle = matrix(self._largest, 1)
        self._logits: Any = None
        self._device = device

    def make_logits(self) -> None:
        """Allocate the buffer that logits are kept in, in float32 as the server does."""
        size = (self._largest, self._geometry.vocab)
        self._logits = self._torch.empty(size, dtype=self._torch.float32, device=self._device)

    def step(self, batch: int) -> None:
        """One decode step of so many requests."""
        functional = self._torch.nn.functional
        with self._torch.inference_mode():
            residual = self._tokens[:batch].clone()
            for _ in range(self._geometry.layers):
                residual.addmm_(self._attention(self._normed(residual), batch), self._out.t())
                gate_up = functional.linear(self._normed(residual), self._gate_up)
                residual.addmm_(functional.glu(gate_up, dim=-1), self._down.t())
            logits = functional.linear(self._normed(residual), self._head)
            if self._logits is not None:
                self._logits[:batch].copy_(logits)

    def _normed(self, residual: Any) -> Any:
        functional = self._torch.nn.functional
        return functional.rms_norm(residual, (self._geometry.hidden,), self._norm)

    def _attention(self, normed: Any, batch: int) -> Any:
        wide = self._heads * self._geometry.head_dim
        rows = self._torch.nn.functional.linear(normed, self._qkv)
        rows.mul_(self._angle[:batch])
        self._cache.index_copy_(0, self._slots[:batch], rows[:, wide:])
        query = rows[:, :wide].reshape(-1, self._geometry.head_dim)
        read = self._torch.mm(self._torch.mm(query, self._keys), self._values)
        return read.view(batch, wide)
