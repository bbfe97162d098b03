"""What is there where a launch would run: run by the launch's own Python, as text after `-c`.

Needs nothing but Python 3.8, since that Python need not have this package. Prints one line of
JSON. Its one argument is JSON too: `packages`, `paths`, `ports`, `near` (a port beside which a
free one is wanted), `folder`, `gpus` (whether to ask).
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
from typing import Any

GIB = 2**30


def look(asked: dict[str, Any]) -> dict[str, Any]:
    """All that was asked for; what could not be looked at is said in `notes`."""
    notes: list[str] = []
    found: dict[str, Any] = {
        "python": sys.executable,
        "versions": versions(asked.get("packages", [])),
        "host": host(),
        "paths": {path: os.path.exists(path) for path in asked.get("paths", [])},
        "ports": {str(port): is_free(port) for port in asked.get("ports", [])},
        "free_port": free_near(asked.get("near")),
        "disk_gib": disk(asked.get("folder")),
        "gpus": gpus(notes) if asked.get("gpus", True) else None,
    }
    found["notes"] = notes
    return found


def versions(packages: list[str]) -> dict[str, str]:
    """Version by package, as far as they are installed; nothing is imported for it."""
    from importlib import metadata

    found: dict[str, str] = {}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def host() -> dict[str, float] | None:
    """Total and available host memory, GiB; a container's own limit where it is lower."""
    kib: dict[str, int] = {}
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                name, _, rest = line.partition(":")
                kib[name] = int(rest.split()[0])
    except (OSError, ValueError, IndexError):
        return None
    total, free = kib.get("MemTotal", 0) * 1024, kib.get("MemAvailable", 0) * 1024
    limit, used = limits()
    if limit is not None and limit < total:
        total, free = limit, min(free, max(limit - (used or 0), 0))
    return {"total_gib": round(total / GIB, 2), "free_gib": round(free / GIB, 2)}


def limits(root: str = "/sys/fs/cgroup") -> tuple[int | None, int | None]:
    """Limit and use of the container's memory, bytes; None where there is no limit."""
    for limit, used in (
        ("memory.max", "memory.current"),
        ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
    ):
        try:
            with open(os.path.join(root, limit), encoding="ascii") as file:
                most = int(file.read())
            with open(os.path.join(root, used), encoding="ascii") as file:
                return most, int(file.read())
        except (OSError, ValueError):
            continue
    return None, None


def is_free(port: int) -> bool:
    """Whether a server could listen on a port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("", port))
        except (OSError, OverflowError):
            return False
    return True


def free_near(port: int | None) -> int | None:
    """The first free port after one, within a few hundred."""
    if port is None:
        return None
    return next((one for one in range(port + 1, min(port + 300, 65536)) if is_free(one)), None)


def disk(folder: str | None) -> float | None:
    """Free room of a folder, or of the nearest one above that exists, GiB."""
    while folder and not os.path.isdir(folder):
        above = os.path.dirname(folder)
        folder = above if above != folder else ""
    return round(shutil.disk_usage(folder).free / GIB, 2) if folder else None


def gpus(notes: list[str]) -> list[dict[str, Any]] | None:
    """The GPUs that a launch would see: by NVML, else by torch; None where neither can tell."""
    try:
        return by_nvml(os.environ.get("CUDA_VISIBLE_DEVICES"))
    except ImportError:
        pass
    except Exception as error:
        notes.append(f"NVML cannot be asked: {error}")
    try:
        return by_torch(notes)
    except ImportError:
        notes.append("neither nvidia-ml-py nor torch is there to ask for GPUs")
    except Exception as error:
        notes.append(f"torch cannot be asked for GPUs: {error}")
    return None


def by_nvml(visible: str | None) -> list[dict[str, Any]]:
    """Total and free memory of each GPU, GiB, and the processes on it."""
    import pynvml

    pynvml.nvmlInit()
    try:
        found = [one_of_nvml(pynvml, index) for index in range(pynvml.nvmlDeviceGetCount())]
    finally:
        pynvml.nvmlShutdown()
    if visible is None or visible == "":
        return found if visible is None else []
    wanted = [word.strip() for word in visible.split(",")]
    by_name: dict[str, dict[str, Any]] = {}
    for gpu in found:
        by_name[str(gpu["index"])] = by_name[gpu["uuid"]] = gpu
    return [by_name[word] for word in wanted if word in by_name]


def one_of_nvml(pynvml: Any, index: int) -> dict[str, Any]:
    """One GPU as NVML has it."""
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    try:
        running = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    except pynvml.NVMLError:
        running = []
    return {
        "index": index,
        "uuid": text(pynvml.nvmlDeviceGetUUID(handle)),
        "name": text(pynvml.nvmlDeviceGetName(handle)),
        "total_gib": round(memory.total / GIB, 2),
        "free_gib": round(memory.free / GIB, 2),
        "processes": [process(one.pid, one.usedGpuMemory) for one in running],
    }


def process(pid: int, used: int | None) -> str:
    """A process on a GPU in words: pid, name, GiB."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            name = file.read().strip()
    except OSError:
        name = "of another container"
    size = "" if used is None else f", {used / GIB:.2f} GiB"
    return f"{pid} {name}{size}"


def by_torch(notes: list[str]) -> list[dict[str, Any]]:
    """Total and free memory of each GPU by torch, which tells nothing of processes."""
    import torch

    found = []
    for index in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(index)
        found.append(
            {
                "index": index,
                "name": torch.cuda.get_device_name(index),
                "total_gib": round(total / GIB, 2),
                "free_gib": round(free / GIB, 2),
                "processes": [],
            }
        )
    if found:
        notes.append("GPUs are as torch sees them: processes on them are not known")
    return found


def text(name: str | bytes) -> str:
    """A name, which older bindings give as bytes."""
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else name


if __name__ == "__main__":
    print(json.dumps(look(json.loads(sys.argv[1]))))
