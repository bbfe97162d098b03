"""The stand-in computes with PyTorch alone, on any device; here on the CPU where PyTorch is."""

from __future__ import annotations

import pytest

from forensics.probe.model import Geometry
from forensics.probe.stand_in import StandIn

torch = pytest.importorskip("torch")


@pytest.mark.parametrize(("heads", "kv_heads", "head_dim"), [(8, 2, 16), (16, 16, 192), (7, 2, 8)])
def test_every_batch_size_gives_logits_for_its_requests(
    heads: int, kv_heads: int, head_dim: int
) -> None:
    geometry = Geometry(
        layers=3,
        hidden=64,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        value_dim=head_dim,
        ffn=128,
        vocab=500,
        context_len=4096,
        batch_sizes=[1, 4, 80],
    )
    model = StandIn(torch, torch.device("cpu"), geometry)
    model.step(1)
    model.make_logits()
    model._logits.fill_(float("nan"))
    model.step(4)
    assert model._logits.shape == (80, 500)
    assert bool(model._logits[:4].isfinite().all())
    assert bool(model._logits[4:].isnan().all())
