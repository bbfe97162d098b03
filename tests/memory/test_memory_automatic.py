"""The automatic fraction of every rule range, and the defaults that feed it."""

from __future__ import annotations

import pytest

from forensics.launch import Launch
from forensics.memory import Settings, automatic_fraction, default_chunk, default_max_bs


@pytest.mark.parametrize(
    ("total", "settings", "fraction"),
    [
        (81_559, Settings("0.5.6", tp_size=8), 0.818),
        (81_559, Settings("0.5.6"), 0.835),
        (97_887, Settings("0.5.9", tp_size=8), 0.848),
        (97_887, Settings("0.5.9", tp_size=8, chunked_prefill_size=4096, max_bs=32), 0.895),
        (143_771, Settings("0.5.6", tp_size=8), 0.897),
        (143_771, Settings("0.5.16", prefill_sizes=58), 0.903),  # as genuine launches show
        (143_771, Settings("0.5.16", max_bs=512), 0.903),  # MLA: no prefill graphs
        (81_559, Settings("0.4.4", tp_size=8), 0.81),
        (81_559, Settings("0.4.4", tp_size=2), 0.87),
        (97_887, Settings("0.4.5.post3", tp_size=8), 0.864),
        (81_559, Settings("0.4.6.post5", tp_size=4, pp_size=2), 0.81),
        (97_887, Settings("0.4.6.post5"), 0.88),
        (143_771, Settings("0.4.6.post5"), 0.872),
        (81_559, Settings("0.4.7", tp_size=8), 0.831),
        (24_576, Settings("0.4.9", tp_size=1), 0.879),
        (81_559, Settings("0.5.2", tp_size=8, speculative_algorithm="STANDALONE"), 0.755),
        (81_559, Settings("0.5.9", tp_size=8, speculative_algorithm="EAGLE"), 0.793),
        (81_559, Settings("0.5.12", tp_size=8, speculative_algorithm="EAGLE"), 0.768),
        (81_559, Settings("0.5.14", tp_size=8, speculative_algorithm="EAGLE"), 0.818),
        (143_771, Settings("0.5.18", post_capture_sizing=True), 0.988),
        (None, Settings("0.5.9"), 0.88),
        (None, Settings("0.5.20"), 0.95),
        (
            8_192,
            Settings("0.5.9", tp_size=8, enable_dp_attention=True, dp_size=8, max_bs=512),
            None,
        ),
    ],
)
def test_rules(total: float | None, settings: Settings, fraction: float | None) -> None:
    found = automatic_fraction(total, settings)
    assert found == (None if fraction is None else pytest.approx(fraction, abs=0.0011))


def test_roles_and_expert_buffers() -> None:
    plain = automatic_fraction(143_771, Settings("0.5.16", tp_size=8, prefill_sizes=58))
    prefill = Settings("0.5.16", tp_size=8, prefill_sizes=58, disaggregation_mode="prefill")
    decode = Settings("0.5.16", tp_size=8, disaggregation_mode="decode", max_running_requests=512)
    deepep = Settings("0.5.16", tp_size=8, prefill_sizes=58, deepep=True)
    assert plain is not None
    assert (automatic_fraction(143_771, prefill) or 0) > plain
    assert (automatic_fraction(143_771, decode) or 0) > plain
    assert automatic_fraction(143_771, deepep) == pytest.approx(plain - 2048 / 143_771, abs=1e-3)


@pytest.mark.parametrize(
    ("total", "version", "tp_size", "chunk", "max_bs"),
    [
        (24_564, "0.4.6", 1, 2048, 8),
        (24_564, "0.4.6", 4, 2048, 80),
        (81_559, "0.4.6", 4, 8192, 160),
        (24_564, "0.4.9", 1, 2048, 8),
        (97_887, "0.4.9", 1, 8192, 256),
        (183_359, "0.4.9", 1, 16384, 512),
        (16_384, "0.5.9", 8, 2048, 8),
        (24_564, "0.5.3", 1, 2048, 16),
        (24_564, "0.5.9", 1, 2048, 24),
        (24_564, "0.5.20", 1, 4096, 48),
        (24_564, "0.5.20", 4, 4096, 160),
        (49_140, "0.5.9", 2, 4096, 32),
        (81_559, "0.5.9", 2, 8192, 256),
        (81_559, "0.5.9", 4, 8192, 512),
        (183_359, "0.5.9", 1, 16384, 512),
    ],
)
def test_defaults(total: float, version: str, tp_size: int, chunk: int, max_bs: int) -> None:
    assert default_chunk(total, version) == chunk
    assert default_max_bs(total, tp_size, version) == max_bs


def test_settings_of_a_launch() -> None:
    launch = Launch(
        flags={
            "tp_size": 8,
            "dp_size": 8,
            "enable_dp_attention": True,
            "chunked_prefill_size": 1024,
            "cuda_graph_config": {"decode": {"max_bs": 64}, "prefill": {"bs": [4, 8]}},
            "moe_a2a_backend": "deepep",
        }
    )
    settings = Settings.of_launch(launch.get, "0.5.16")
    assert settings.chunked_prefill_size == 8192  # the division by DP taken back
    assert settings.max_bs == 64
    assert settings.prefill_sizes == 2
    assert settings.deepep
    assert Settings.of_launch(Launch().get, "0.5.9") == Settings("0.5.9")
