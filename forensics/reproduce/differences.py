"""What is not here as it was where the log was written, by how much it matters to the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from forensics.launch import Launch
from forensics.reproduce.machine import Found
from forensics.reproduce.model import Difference, Failure, Figures, Gpu, Weight
from forensics.reproduce.releases_apart import Moved

SAME_GIB = 1.5
"""NVML counts a card larger than an allocator's message does, by 0.6 GiB and more."""

OUTSIDE_GIB = 0.75
"""What a process has taken of a card before weights: context and NCCL."""

HELD_GIB = 1.0
"""Memory in use on a card from which on somebody else is on it."""

LOG_ROOM_GIB = 1.0
_ORDER: tuple[Weight, ...] = ("blocking", "matters", "minor")
_OTHERS = ("torch", "transformers", "sgl-kernel", "flashinfer-python", "triton")


@dataclass(frozen=True, slots=True)
class There:
    """The launch as its log shows it."""

    launch: Launch
    figures: Figures
    total_gib: float | None = None
    """Of a card, where an allocator's message told."""
    failure: Failure | None = None
    release: str | None = None
    withheld: tuple[str, ...] = ()
    """Its variables by which code is found, which the preflight has not set: nobody consented."""


def differences(there: There, found: Found, moved: Sequence[Moved]) -> list[Difference]:
    """All differences, the gravest first."""
    all_of_them = [
        *_nodes(there.launch),
        *_gpus(there, found),
        *_releases(there, found, moved),
        *_packages(there, found),
        *_places(there, found),
        *_host(found),
    ]
    return sorted(all_of_them, key=lambda difference: _ORDER.index(difference.weight))


def needs_gpus(launch: Launch) -> bool:
    """Whether a launch runs on GPUs that can be asked for: not on the CPU alone."""
    return launch.get("device") in (None, "cuda", "auto")


def gpus_needed(launch: Launch) -> int:
    """GPUs that a launch takes on one node: tp * pp, and that for each replica without DP
    attention."""
    ranks = _whole(launch, "tp_size") * _whole(launch, "pp_size")
    if launch.get("enable_dp_attention") is not True:
        ranks *= _whole(launch, "dp_size")
    return -(-ranks // max(_whole(launch, "nnodes"), 1))


def ports_of(launch: Launch) -> list[int]:
    """Ports that a launch would listen on, as far as they are fixed."""
    found = [_whole(launch, "port", 30000)]
    address = launch.get("dist_init_addr")
    if isinstance(address, str) and address.rpartition(":")[2].isdigit():
        found.append(int(address.rpartition(":")[2]))
    if nccl := _whole(launch, "nccl_port", 0):
        found.append(nccl)
    return [port for port in dict.fromkeys(found) if 0 < port < 65536]


def paths_of(launch: Launch) -> list[str]:
    """Models that a launch reads from the disk; the id of a hub is no path."""
    named = (launch.get("model_path"), launch.get("speculative_draft_model_path"))
    return [path for path in named if isinstance(path, str) and path.startswith(("/", "./", "~"))]


def _whole(launch: Launch, name: str, default: int = 1) -> int:
    number = launch.number(name)
    return default if number is None else int(number)


def _nodes(launch: Launch) -> Iterator[Difference]:
    nodes = _whole(launch, "nnodes")
    if nodes > 1:
        because = f"the launch waits for {nodes - 1} more, which are not started from here"
        yield Difference(
            what="nodes", in_log=str(nodes), here="1", weight="blocking", because=because
        )


def _gpus(there: There, found: Found) -> Iterator[Difference]:
    launch, gpus = there.launch, found.machine.gpus
    if not needs_gpus(launch):
        return
    needed = gpus_needed(launch)
    if len(gpus) < needed:
        yield Difference(
            what="GPUs",
            in_log=str(needed),
            here=str(len(gpus)) if found.gpus_known else "not known",
            weight="blocking" if found.gpus_known else "matters",
            because="the launch needs one for each rank of tensor and pipeline parallelism",
        )
    used = gpus[:needed]
    yield from _sizes(there, used)
    yield from _occupied(there, used)


def _sizes(there: There, used: list[Gpu]) -> Iterator[Difference]:
    baseline = there.figures.baseline_gib
    total = there.total_gib or (None if baseline is None else baseline + OUTSIDE_GIB)
    here = min((gpu.total_gib for gpu in used), default=None)
    if total is None or here is None or abs(here - total) <= SAME_GIB:
        return
    yield Difference(
        what="GPU memory",
        in_log=f"{total:.1f} GiB",
        here=f"{here:.1f} GiB",
        weight="matters",
        because="weights and graphs take as much as there, so what is left for them differs",
    )


def _occupied(there: There, used: list[Gpu]) -> Iterator[Difference]:
    baseline = there.figures.baseline_gib
    for gpu in used:
        held = gpu.total_gib - gpu.free_gib
        if gpu.processes or held > HELD_GIB:
            who = "; ".join(gpu.processes) or "no process is shown"
            yield Difference(
                what=f"GPU {gpu.index} is in use",
                here=f"{held:.2f} GiB held ({who})",
                weight="matters",
                because="what others hold is missing to the launch, and may change meanwhile",
            )
        elif baseline is not None and baseline - SAME_GIB < gpu.free_gib < baseline - 0.3:
            yield Difference(
                what=f"free on GPU {gpu.index}",
                in_log=f"{baseline:.2f} GiB before weights",
                here=f"{gpu.free_gib:.2f} GiB before the launch",
                weight="matters",
                because="there is less to share out than the log had",
            )


def _releases(there: There, found: Found, moved: Sequence[Moved]) -> Iterator[Difference]:
    log, here = there.release, found.machine.versions.get("sglang")
    if here is None:
        if found.asked:
            yield _not_installed(there, found)
        return
    if log is None or log == here:
        return
    gone = [flag for flag in moved if flag.how == "gone"]
    because = _sentence(moved) or "kernels, defaults and memory use differ between releases"
    yield Difference(
        what="sglang",
        in_log=log,
        here=here,
        weight="blocking" if gone else "matters",
        because=because,
    )


def _not_installed(there: There, found: Found) -> Difference:
    because = f"{found.machine.python} has no sglang: --python names one that has"
    weight: Weight = "blocking"
    if there.withheld:
        weight = "matters"
        names = ", ".join(there.withheld)
        because = f"looked for without {names}, which needs consent; with it there may be one"
    return Difference(
        what="sglang", in_log=there.release, here="not installed", weight=weight, because=because
    )


def _sentence(moved: Sequence[Moved]) -> str:
    """`--cuda-graph-max-bs` is now `--cuda-graph-max-bs-decode 32`; ..."""
    parts = []
    for flag in moved:
        if flag.how == "gone":
            parts.append(f"`{flag.what}` is not known here")
        elif flag.how == "default":
            parts.append(f"{flag.what} is {flag.now} here")
        else:
            how = "is now" if flag.how == "renamed" else "is deprecated for"
            parts.append(f"`{flag.what}` {how} `{flag.now}`")
    return "; ".join(parts)


def _packages(there: There, found: Found) -> Iterator[Difference]:
    if "sglang" not in found.machine.versions:
        return  # said, and nothing else is of use
    for package in _OTHERS:
        log, here = there.launch.versions.get(package), found.machine.versions.get(package)
        if log is None or log == here:
            continue
        of_note = package in ("torch", "transformers")
        yield Difference(
            what=package,
            in_log=log,
            here=here or "not installed",
            weight="matters" if of_note else "minor",
            because="it decides which models load, or what kernels take"
            if of_note
            else "kernels may behave otherwise",
        )


def _places(there: There, found: Found) -> Iterator[Difference]:
    for path, exists in found.paths.items():
        if not exists:
            because = "the launch would fail at once: --with model_path=... names another place"
            yield Difference(
                what="model path", in_log=path, here="missing", weight="blocking", because=because
            )
    about_ports = there.failure is not None and there.failure.rule == "port-in-use"
    for port, free in found.ports.items():
        if free and about_ports:
            yield Difference(
                what=f"port {port}",
                in_log="taken",
                here="free",
                weight="matters",
                because="what held it there is not here, so the control will hardly fail",
            )
        elif not free and not about_ports:
            because = "the launch would fail for that alone: --with port=... takes another"
            yield Difference(what=f"port {port}", here="taken", weight="blocking", because=because)


def _host(found: Found) -> Iterator[Difference]:
    free, total = found.machine.host_free_gib, found.machine.host_total_gib
    if free is not None and total and free < 0.1 * total:
        because = "loading weights passes through host memory"
        yield Difference(
            what="host memory",
            here=f"{free:.1f} of {total:.1f} GiB free",
            weight="matters",
            because=because,
        )
    if found.disk_gib is not None and found.disk_gib < LOG_ROOM_GIB:
        yield Difference(
            what="disk",
            here=f"{found.disk_gib:.2f} GiB free",
            weight="matters",
            because="the logs of the trials may not fit",
        )
