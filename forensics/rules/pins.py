"""Which versions of its neighbours an SGLang release was built with."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from forensics.launch import Launch
from forensics.releases import version_key

_KERNELS = ("sglang-kernel", "sgl-kernel")
"""One package: it was renamed in 0.5.10."""


@cache
def _table() -> dict[str, dict[str, str]]:
    text = Path(__file__).with_name("pins.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def pinned(release: str, package: str) -> str | None:
    """The version that a release pins; of a release between two known ones, the older one's."""
    known = [v for v in _table() if version_key(v) <= version_key(release)]
    newest = max(known, key=version_key, default=None)
    if newest is None:
        return None
    names = _KERNELS if package in _KERNELS else (package,)
    return next((_table()[newest][n] for n in names if n in _table()[newest]), None)


def pinned_for(launch: Launch, package: str) -> str:
    """A version constraint for a launch's release; words in angle brackets if it is not known.

    For torch only the minor release matters, since patch releases keep the ABI.
    """
    candidates = _candidates(launch)
    versions = {pinned(release, package) for release in candidates}
    if len(versions) != 1 or None in versions:
        return "<the version that this SGLang release pins>"
    version = str(versions.pop())
    if package == "torch":
        return f"=={'.'.join(version.split('.')[:2])}.*"
    return f"=={version}"


def _candidates(launch: Launch) -> list[str]:
    stated = launch.release or launch.versions.get("sglang")
    if stated:
        return [stated]
    if launch.release_range is None:
        return []
    first, last = (version_key(v) for v in launch.release_range)
    return [v for v in _table() if first <= version_key(v) <= last]


def kernel_package(launch: Launch) -> str:
    """The name of the kernel wheel in the launch's release."""
    candidates = _candidates(launch)
    old = bool(candidates) and version_key(candidates[-1]) < version_key("0.5.10")
    return "sgl-kernel" if old else "sglang-kernel"


def maybe_below(launch: Launch, release: str) -> bool:
    """Whether the launch may be older than a release: true unless it is known to be not."""
    stated = launch.release or launch.versions.get("sglang")
    oldest = stated or (launch.release_range[0] if launch.release_range else None)
    return oldest is None or version_key(oldest) < version_key(release)
