"""A disk that is full: the warning of the hub client is where it begins."""

from __future__ import annotations

import re
from collections.abc import Iterator

from forensics.events import Event
from forensics.findings import Finding, Remedy
from forensics.incident import Failure
from forensics.remedies import action, env, flag, kept
from forensics.rules.base import FAILURE, Skip, rule
from forensics.rules.case import Case

_FULL = re.compile(r"No space left on device|Not enough free disk space|Disk quota exceeded", re.I)
_SHARED = re.compile(r"/dev/shm|shared memory|shm_open|shmem", re.I)
_CACHES = re.compile(r"\.triton|flashinfer|torch_extensions|inductor|deep_gemm|tvm", re.I)


@rule(
    "disk-full",
    class_="checkpoint_io",
    summary="No space left on the disk",
    needs="the system's error in a failure of the process",
)
def disk_full(case: Case) -> Iterator[Finding | Skip]:
    """A download (or a cache) filled the disk; a warning before it is the first sign."""
    if (failure := next((f for f in case.run.failures if _says_full(f)), None)) is None:
        return
    frames = " ".join(f.file for f in failure.traceback.frames) if failure.traceback else ""
    downloading = "hugging" in frames or "download" in frames or failure.phase in ("init", "load")
    if _SHARED.search(_message(failure)) or not downloading:
        return
    warning = _warning(case, failure)
    yield case.finding(
        "disk-full",
        "checkpoint_io",
        warning or failure.event,
        title="The disk is full: the checkpoint could not be stored",
        explanation=_story(warning, failure),
        evidence=[*case.evidence(warning), *case.failure_evidence(failure)],
        remedies=_remedies(case, frames),
        not_helpful=[
            "memory flags: the disk is full, not the GPU",
            "a token of the hub: access works",
        ],
        rank=failure.rank,
        phase=failure.phase,
        known_at=case.known(failure.event, failure.event.end_line),
        weight=FAILURE + 4,
    )


def _warning(case: Case, failure: Failure) -> Event | None:
    """The first warning of the hub client before a failure."""
    warnings = case.run.of("disk_full_expected", "python_warning")
    return next((e for e in warnings if e.line < failure.line and _FULL.search(e.text)), None)


def _message(failure: Failure) -> str:
    chain = failure.traceback.chain if failure.traceback else []
    return "\n".join([failure.event.text, *(raised.message for raised in chain)])


def _says_full(failure: Failure) -> bool:
    return bool(_FULL.search(_message(failure)))


def _story(warning: Event | None, failure: Failure) -> str:
    said = "The system refused to write: no space left on the device."
    if warning is None:
        return said
    return (
        "The hub client had compared the file with the free space, warned and gone on; "
        f"{failure.line - warning.line} lines later it ended as foretold. A restart resumes the "
        "download and fails, or hangs, at the same place."
    )


def _remedies(case: Case, frames: str) -> list[Remedy]:
    where = "<larger volume>"
    caches = bool(_CACHES.search(frames))
    return kept(
        flag(case.run.launch, "download_dir", where, "a volume with room for all shards"),
        env("HF_HOME", "set", "moves the whole cache of the hub client", to=where),
        action("free_disk_space", "old snapshots in the hub cache are the usual cause"),
        env("XDG_CACHE_HOME", "set", "moves the caches of compiled kernels", to=where)
        if caches
        else None,
    )
