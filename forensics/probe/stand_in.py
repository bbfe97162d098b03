"""A stand-in for a model: its matrices and its number of kernels, none of its knowledge.

All layers share one layer's weights, since graphs keep pointers, not weights. Attention reads a
short window that all requests share: capture costs buffers (allocated apart), activations,
kernel nodes and the pool's rounding, none of which depend on what was read.
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
        self._heads = geometry.heads - geometry.heads % geometry.kv_heads or geometry.heads
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
        self._keys = matrix(kv * head, max(WINDOW, self._largest)).view(kv, head, -1)
        self._values = matrix(kv * max(WINDOW, self._largest), head).view(kv, -1, head)
        self._tokens = matrix(self._largest, hidden)
        self._slots = torch.arange(self._largest, device=device)
        self._angle = torch.ones(self._largest, 1, head // 2, dtype=torch.bfloat16, device=device)
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
            hidden = self._tokens[:batch]
            residual = hidden
            for _ in range(self._geometry.layers):
                normed = functional.rms_norm(residual, (self._geometry.hidden,), self._norm)
                residual = residual + self._attention(normed, batch)
                normed = functional.rms_norm(residual, (self._geometry.hidden,), self._norm)
                gate, up = functional.linear(normed, self._gate_up).chunk(2, dim=-1)
                residual = residual + functional.linear(functional.silu(gate) * up, self._down)
            normed = functional.rms_norm(residual, (self._geometry.hidden,), self._norm)
            logits = functional.linear(normed, self._head)
            if self._logits is not None:
                self._logits[:batch].copy_(logits)

    def _attention(self, normed: Any, batch: int) -> Any:
        geometry, functional = self._geometry, self._torch.nn.functional
        head, kv = geometry.head_dim, geometry.kv_heads
        wide = self._heads * head
        rows = functional.linear(normed, self._qkv)
        query, key, value = rows.split([wide, kv * head, kv * head], dim=-1)
        query = self._turned(query.view(batch, self._heads, head), batch)
        key = self._turned(key.view(batch, kv, head), batch)
        self._keys.index_copy_(2, self._slots[:batch], key.permute(1, 2, 0))
        self._values.index_copy_(
            1, self._slots[:batch], value.view(batch, kv, head).transpose(0, 1)
        )
        grouped = query.reshape(batch, kv, -1, head).transpose(0, 1).reshape(kv, -1, head)
        scores = self._torch.bmm(grouped, self._keys[:, :, :WINDOW])
        read = self._torch.bmm(scores.softmax(dim=-1), self._values[:, :WINDOW])
        back = read.reshape(kv, batch, -1, head).transpose(0, 1).reshape(batch, wide)
        return functional.linear(back, self._out)

    def _turned(self, heads: Any, batch: int) -> Any:
        """Rotary position embedding."""
        half = heads.shape[-1] // 2
        left, right, angle = heads[..., :half], heads[..., half : 2 * half], self._angle[:batch]
        turned = (left * angle - right * angle, right * angle + left * angle)
        return self._torch.cat(turned, dim=-1)
