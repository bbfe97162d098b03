"""The fraction, chunk and batch size that SGLang picks when nobody says.

Facts: memory model, section 3. `gpu_total_mib` is always the smallest card's total of the node
in MiB, as nvidia-smi prints it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from forensics.releases import version_key

GIB = 1024.0
"""One GiB in MiB."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The flags that the automatic fraction depends on; None where the default applies."""

    version: str
    tp_size: int = 1
    pp_size: int = 1
    dp_size: int = 1
    enable_dp_attention: bool = False
    chunked_prefill_size: int | None = None
    """Before the division by the DP size that DP attention applies."""
    max_prefill_tokens: int = 16384
    max_bs: int | None = None
    """Largest decode batch captured."""
    speculative_algorithm: str | None = None
    draft_tokens: int = 1
    max_running_requests: int | None = None
    prefill_sizes: int = 0
    """How many prefill (piecewise) graphs are captured."""
    mla_piecewise: bool = False
    """Piecewise graphs of an MLA model, 0.5.10-0.5.13."""
    disaggregation_mode: str = "null"
    deepep: bool = False
    post_capture_sizing: bool = False

    @classmethod
    def of_launch(cls, get: Callable[[str], Any], version: str) -> Settings:
        """From a launch's values, by field name; `get` gives None for what is not known."""
        dp_size = _whole(get("dp_size")) or 1
        dp_attention = get("enable_dp_attention") is True
        chunk = _whole(get("chunked_prefill_size"))
        if chunk and dp_attention and _at_least(version, "0.4.5"):
            chunk *= dp_size
        return cls(
            version=version,
            tp_size=_whole(get("tp_size")) or 1,
            pp_size=_whole(get("pp_size")) or 1,
            dp_size=dp_size,
            enable_dp_attention=dp_attention,
            chunked_prefill_size=chunk,
            max_prefill_tokens=_whole(get("max_prefill_tokens")) or 16384,
            max_bs=largest_batch(get),
            speculative_algorithm=get("speculative_algorithm"),
            draft_tokens=_whole(get("speculative_num_draft_tokens")) or 1,
            max_running_requests=_whole(get("max_running_requests")),
            prefill_sizes=len(prefill_sizes(get)),
            disaggregation_mode=str(get("disaggregation_mode") or "null"),
            deepep=get("moe_a2a_backend") == "deepep",
        )


def largest_batch(get: Callable[[str], Any]) -> int | None:
    """The largest decode batch that a launch captures, as far as its values tell."""
    decode = _phase(get, "decode")
    sizes = get("cuda_graph_bs") or decode.get("bs")
    listed = [s for s in sizes if isinstance(s, int)] if isinstance(sizes, list) else []
    if listed:
        return max(listed)
    return _whole(get("cuda_graph_max_bs")) or _whole(decode.get("max_bs"))


def prefill_sizes(get: Callable[[str], Any]) -> list[int]:
    """The prefill graph sizes (tokens) that a launch captures; none where they are off."""
    prefill = _phase(get, "prefill")
    off = prefill.get("backend") == "disabled" or get("disable_piecewise_cuda_graph") is True
    sizes = prefill.get("bs") or get("piecewise_cuda_graph_tokens")
    if off or not isinstance(sizes, list) or get("enable_piecewise_cuda_graph") is False:
        return []
    return [s for s in sizes if isinstance(s, int)]


def _phase(get: Callable[[str], Any], phase: str) -> dict[str, Any]:
    config = get("cuda_graph_config")
    inner = config.get(phase) if isinstance(config, dict) else None
    return inner if isinstance(inner, dict) else {}


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _at_least(version: str, release: str) -> bool:
    return version_key(version) >= version_key(release)


def automatic_fraction(gpu_total_mib: float | None, settings: Settings) -> float | None:
    """The fraction that the release picks, 3 decimals; None where nothing useful is left.

    Text models on NVIDIA cards; the scaling for vision towers (section 3.4) is not included.
    """
    version = settings.version
    if gpu_total_mib is None:
        return 0.95 if _at_least(version, "0.5.20") else 0.88
    if not _at_least(version, "0.4.7"):
        fraction = _early_fraction(gpu_total_mib, settings)
    elif not _at_least(version, "0.5.3"):
        reserve = _reserve_by_class_gib(gpu_total_mib, settings)
        fraction = (gpu_total_mib - reserve * GIB) / gpu_total_mib
    else:
        fraction = (gpu_total_mib - _reserve_mib(gpu_total_mib, settings)) / gpu_total_mib
    return round(fraction, 3) if fraction > 0 else None


def _early_fraction(total: float, settings: Settings) -> float:
    late = _at_least(settings.version, "0.4.6.post5")
    ranks = settings.tp_size * (settings.pp_size if late else 1)
    steps = ((16, 0.79), (8, 0.81), (4, 0.85), (2, 0.87))
    by_ranks = next((f for least, f in steps if ranks >= least), 0.88)
    if not _at_least(settings.version, "0.4.5") or total <= 81920:
        return by_ranks
    if not late:
        return (total - 13 * GIB) / total
    if total <= 96 * GIB:
        return 0.88
    return min(0.88 + 48 * GIB * (1 - 0.88) / total, (total - 18 * GIB) / total)


def _reserve_by_class_gib(total: float, settings: Settings) -> float:
    """0.4.7 to 0.5.2, GiB."""
    ranks = settings.tp_size * settings.pp_size
    if total < 35 * GIB:
        reserve = 2.8 + ranks / 10
    elif total < 90 * GIB:
        reserve = 9.5 + ranks / 2
    elif total < 160 * GIB:
        reserve = 12 + ranks / 2
    else:
        reserve = 32.0
    if settings.speculative_algorithm is not None:
        standalone = settings.speculative_algorithm == "STANDALONE"
        reserve += 6 if standalone and _at_least(settings.version, "0.5.2") else 2
    return reserve + (4 if settings.enable_dp_attention else 0)


def _reserve_mib(total: float, settings: Settings) -> float:
    """From 0.5.3, MiB."""
    version = settings.version
    ranks = settings.tp_size * settings.pp_size
    if settings.post_capture_sizing and _at_least(version, "0.5.16"):
        return (1536 if _at_least(version, "0.5.18") else 512) + GIB * ranks / 8
    role = settings.disaggregation_mode if _at_least(version, "0.5.15") else "null"
    reserve = 512 + 1.5 * max(_chunk(total, settings, role), 2048) + GIB * ranks / 8
    max_bs = settings.max_bs or default_max_bs(total, settings.tp_size, version)
    if role != "prefill":
        reserve += 2 * max_bs
        if settings.enable_dp_attention:
            reserve += (4.5 if max_bs > 300 else 3) * max_bs * settings.dp_size
    if role != "decode" and _at_least(version, "0.5.8"):
        late_mla = settings.mla_piecewise and not _at_least(version, "0.5.14")
        reserve += 1536 if late_mla else 8 * settings.prefill_sizes
    if total > 60 * GIB:
        reserve = max(reserve, 10240)
    if _at_least(version, "0.5.15") and settings.deepep:
        reserve += 2048
    return reserve + _speculation_mib(settings)


def _chunk(total: float, settings: Settings, role: str) -> int:
    if role == "decode" and settings.max_running_requests:
        return settings.max_running_requests * settings.draft_tokens
    chunk = settings.chunked_prefill_size
    if chunk is None:
        return default_chunk(total, settings.version)
    return chunk if chunk > 0 else settings.max_prefill_tokens


def _speculation_mib(settings: Settings) -> int:
    if settings.speculative_algorithm is None or _at_least(settings.version, "0.5.14"):
        return 0
    if settings.speculative_algorithm == "STANDALONE":
        return 6144
    if settings.speculative_algorithm == "NGRAM":
        return 0
    return 4096 if _at_least(settings.version, "0.5.10") else 2048


def default_chunk(gpu_total_mib: float, version: str) -> int:
    """`chunked_prefill_size` when absent, by GPU memory."""
    if not _at_least(version, "0.4.7"):
        return 2048 if gpu_total_mib < 25_000 else 8192
    bounds: tuple[tuple[int, int], ...] = ((35, 2048), (160, 8192))
    if _at_least(version, "0.5.3"):
        small = 4096 if _at_least(version, "0.5.20") else 2048
        bounds = ((20, 2048), (35, small), (60, 4096), (160, 8192))
    return next((chunk for bound, chunk in bounds if gpu_total_mib < bound * GIB), 16384)


def default_max_bs(gpu_total_mib: float, tp_size: int, version: str) -> int:
    """The largest captured decode batch when absent, by GPU memory and tensor parallel size."""
    wide = tp_size >= 4
    if not _at_least(version, "0.4.7"):
        return (80 if wide else 8) if gpu_total_mib < 25_000 else 160
    if not _at_least(version, "0.5.3"):
        if gpu_total_mib < 35 * GIB:
            return 80 if wide else 8
        return 512 if gpu_total_mib > 160 * GIB else 256 if gpu_total_mib > 90 * GIB else 160
    if gpu_total_mib < 20 * GIB:
        return 8
    if gpu_total_mib < 35 * GIB:
        if _at_least(version, "0.5.20"):
            return 160 if wide else 48
        return 80 if wide else 24 if _at_least(version, "0.5.4.post3") else 16
    if gpu_total_mib < 60 * GIB:
        return 160 if wide else 32
    return 512 if wide or gpu_total_mib >= 160 * GIB else 256
