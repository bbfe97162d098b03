"""The look before the plan: GPUs by NVML, versions of the launch's own Python, differences."""

from __future__ import annotations

import os
import socket
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from forensics import pipeline
from forensics.launch import Launch, parse_command
from forensics.releases import table
from forensics.reproduce import look as looking
from forensics.reproduce.differences import There, differences, gpus_needed
from forensics.reproduce.machine import Asked, Found, look
from forensics.reproduce.model import Difference, Failure, Figures, Gpu, Machine
from forensics.reproduce.preflight import preflight
from forensics.reproduce.releases_apart import moved, rewritten
from forensics.reproduce.subject import of_log, with_python

GENUINE = Path(__file__).parents[2] / "fixtures" / "genuine"
NVML = """
class NVMLError(Exception):
    pass
class _Of:
    def __init__(self, **fields):
        self.__dict__.update(fields)
def nvmlInit(): pass
def nvmlShutdown(): pass
def nvmlDeviceGetCount(): return 2
def nvmlDeviceGetHandleByIndex(index): return index
def nvmlDeviceGetMemoryInfo(handle):
    return _Of(total=140 * 2**30, free=(139 - 100 * handle) * 2**30)
def nvmlDeviceGetComputeRunningProcesses(handle):
    return [_Of(pid=1, usedGpuMemory=100 * 2**30)] if handle else []
def nvmlDeviceGetUUID(handle): return f"GPU-{handle}"
def nvmlDeviceGetName(handle): return b"NVIDIA H200"
"""


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("pynvml")
    exec(NVML, vars(module))
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return module


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """A folder that a Python finds sglang 0.5.23 and NVML in."""
    folder = tmp_path / "site"
    for name, version in (("sglang", "0.5.23"), ("torch", "2.9.1")):
        info = folder / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (info / "METADATA").write_text(text)
    (folder / "pynvml.py").write_text(NVML)
    return folder


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as one:
        one.bind(("", 0))
        one.listen()
        yield int(one.getsockname()[1])


def launch(text: str, release: str = "0.5.9") -> Launch:
    found = parse_command(f"python3 -m sglang.launch_server {text}", table(release))
    assert found is not None
    found.release = release
    return found


def machine(*gpus: Gpu, **versions: str) -> Found:
    versions = versions or {"sglang": "0.5.9"}
    return Found(Machine(gpus=list(gpus), versions=versions), asked=True, gpus_known=True)


def gpu(index: int = 0, total: float = 140.4, free: float = 139.9, *processes: str) -> Gpu:
    return Gpu(index=index, name="A", total_gib=total, free_gib=free, processes=list(processes))


def found(there: There, here: Found, moved: Any = ()) -> dict[str, Difference]:
    return {difference.what: difference for difference in differences(there, here, moved)}


def test_gpus_are_what_nvml_says(nvml: types.ModuleType) -> None:
    first, second = looking.by_nvml(None)
    assert first["name"] == "NVIDIA H200"
    assert (first["total_gib"], first["free_gib"], first["processes"]) == (140.0, 139.0, [])
    assert second["processes"][0].startswith("1 ")
    assert second["processes"][0].endswith(", 100.00 GiB")


@pytest.mark.parametrize(
    ("visible", "seen"), [("1", [1]), ("1,0", [1, 0]), ("GPU-1", [1]), ("", []), ("7", [])]
)
def test_a_launch_sees_the_gpus_that_are_visible_to_it(
    nvml: types.ModuleType, visible: str, seen: list[int]
) -> None:
    assert [one["index"] for one in looking.by_nvml(visible)] == seen


def test_an_nvml_that_fails_is_said_and_nothing_is_claimed(
    nvml: types.ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise vars(nvml)["NVMLError"]("Driver Not Loaded")

    monkeypatch.setattr(nvml, "nvmlInit", fail)
    monkeypatch.setitem(sys.modules, "torch", None)
    notes: list[str] = []
    assert looking.gpus(notes) is None
    assert "Driver Not Loaded" in notes[0]


def test_torch_tells_where_nvml_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = types.ModuleType("torch")
    vars(torch)["cuda"] = types.SimpleNamespace(
        device_count=lambda: 1,
        mem_get_info=lambda index: (79 * 2**30, 80 * 2**30),
        get_device_name=lambda index: "H100",
    )
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setitem(sys.modules, "torch", torch)
    notes: list[str] = []
    (one,) = looking.gpus(notes) or []
    assert (one["name"], one["free_gib"], one["total_gib"]) == ("H100", 79.0, 80.0)
    assert "processes on them are not known" in notes[0]


def test_a_containers_limit_counts_as_its_memory(tmp_path: Path) -> None:
    assert looking.limits(str(tmp_path)) == (None, None)
    (tmp_path / "memory.max").write_text("max\n")
    assert looking.limits(str(tmp_path)) == (None, None)
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("400\n")
    assert looking.limits(str(tmp_path)) == (1000, 400)


def test_the_launches_own_python_is_asked(packages: Path, taken_port: int, tmp_path: Path) -> None:
    what = Asked(
        paths=(str(tmp_path), "/no/model"), ports=(taken_port,), near=taken_port, folder="/no/where"
    )
    env = {"PYTHONPATH": str(packages), "CUDA_VISIBLE_DEVICES": "1"}
    seen = look([sys.executable, "-m", "sglang.launch_server"], env, [], what)
    assert seen.asked
    assert seen.machine.versions["sglang"] == "0.5.23"
    assert [one.index for one in seen.machine.gpus] == [1]
    assert seen.paths == {str(tmp_path): True, "/no/model": False}
    assert seen.ports == {taken_port: False}
    assert seen.free_port is not None
    assert seen.free_port > taken_port
    assert seen.disk_gib is not None
    assert seen.machine.host_total_gib


def test_a_python_that_does_not_answer_is_said(tmp_path: Path) -> None:
    silent = tmp_path / "python3"
    silent.write_text("#!/bin/sh\nexec sleep 60\n")
    silent.chmod(0o755)
    seen = look([str(silent)], {}, [], Asked(gpus=False), patience_s=0.3)
    assert not seen.asked
    assert "no answer within 0.3 s" in seen.machine.notes[0]
    seen = look([str(tmp_path / "none" / "python3")], {}, [], Asked(gpus=False))
    assert "No such file" in seen.machine.notes[0]


def test_what_a_log_sets_is_not_obeyed_before_anybody_consents(tmp_path: Path) -> None:
    """A log's PYTHONPATH would run its `sitecustomize` as soon as Python is asked anything."""
    trap = tmp_path / "trap"
    trap.mkdir()
    (trap / "sitecustomize.py").write_text(f"open({str(tmp_path / 'sprung')!r}, 'w')")
    log = GENUINE / "h200-capture-failed.log"
    mine = of_log(pipeline.analyze([str(log)]), [str(log)])
    with_python(mine, sys.executable)
    mine.env = {"PYTHONPATH": str(trap), "PATH": str(trap)}
    preflight(mine, {})
    assert not (tmp_path / "sprung").exists()
    preflight(mine, {"PYTHONPATH": str(trap)})
    assert (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("flags", "needed"),
    [
        ("--tp 8", 8),
        ("--tp 4 --pp-size 2", 8),
        ("--tp 2 --dp 4", 8),
        ("--tp 8 --dp 8 --enable-dp-attention", 8),
        ("--tp 16 --nnodes 2 --node-rank 0", 8),
        ("--port 1", 1),
    ],
)
def test_gpus_that_a_launch_needs(flags: str, needed: int) -> None:
    assert gpus_needed(launch(f"--model-path m {flags}")) == needed


def test_too_few_gpus_block(nvml: types.ModuleType) -> None:
    there = There(launch("--model-path m --tp 8"), Figures(), release="0.5.9")
    assert found(there, machine(gpu()))["GPUs"].weight == "blocking"
    here = machine()
    here.gpus_known = False
    unknown = found(there, here)["GPUs"]
    assert (unknown.weight, unknown.here) == ("matters", "not known")


def test_what_nobody_consented_to_is_not_set_and_so_proves_no_absence() -> None:
    here = machine(gpu())
    here.machine.versions, here.asked = {}, True
    plain = There(launch("--model-path m"), Figures(), release="0.5.9")
    assert found(plain, here)["sglang"].weight == "blocking"
    withheld = There(launch("--model-path m"), Figures(), release="0.5.9", withheld=("PYTHONPATH",))
    seen = found(withheld, here)["sglang"]
    assert seen.weight == "matters"
    assert "without PYTHONPATH" in seen.because


def test_a_card_of_another_size_matters_and_nvmls_own_count_does_not() -> None:
    there = There(launch("--model-path m"), Figures(baseline_gib=138.6), 139.72, release="0.5.9")
    assert found(there, machine(gpu(total=140.4))) == {}
    other = found(there, machine(gpu(total=79.6, free=79.1)))["GPU memory"]
    assert (other.in_log, other.here, other.weight) == ("139.7 GiB", "79.6 GiB", "matters")


def test_a_card_that_somebody_is_on_matters() -> None:
    there = There(launch("--model-path m --tp 2"), Figures(), release="0.5.9")
    here = machine(gpu(0), gpu(1, 140.4, 40.0, "17 python3, 99.00 GiB"), gpu(2, 140.4, 1.0))
    (other,) = found(there, here).values()
    assert other.what == "GPU 1 is in use"
    assert "17 python3" in (other.here or "")


def test_less_free_memory_than_the_log_had() -> None:
    there = There(launch("--model-path m"), Figures(baseline_gib=139.5), release="0.5.9")
    assert found(there, machine(gpu(free=139.4))) == {}
    there = There(launch("--model-path m"), Figures(baseline_gib=139.8), release="0.5.9")
    assert found(there, machine(gpu(free=139.41)))["free on GPU 0"].weight == "matters"
    assert "free on GPU 0" not in found(there, machine(gpu(free=139.9)))


def test_several_nodes_and_a_missing_model_block() -> None:
    there = There(launch("--model-path /m --nnodes 2 --node-rank 0"), Figures(), release="0.5.9")
    here = machine(gpu())
    here.paths = {"/m": False}
    seen = found(there, here)
    assert seen["nodes"].weight == seen["model path"].weight == "blocking"
    assert "--with model_path" in seen["model path"].because


def test_a_taken_port_blocks_unless_it_is_the_failure() -> None:
    plain = There(launch("--model-path m"), Figures(), release="0.5.9")
    here = machine(gpu())
    here.ports = {30000: False}
    assert found(plain, here)["port 30000"].weight == "blocking"
    failure = Failure(rule="port-in-use", class_="port_in_use", phase="init", title="taken")
    about = There(plain.launch, Figures(), failure=failure, release="0.5.9")
    assert "port 30000" not in found(about, here)
    here.ports = {30000: True}
    assert found(about, here)["port 30000"].weight == "matters"


def test_a_python_without_sglang_blocks_and_says_how_to_name_another() -> None:
    here = machine(gpu(), torch="2.9.1")
    seen = found(There(launch("--model-path m"), Figures(), release="0.5.9"), here)
    assert seen["sglang"].weight == "blocking"
    assert "--python" in seen["sglang"].because


def test_another_release_is_told_by_what_became_of_the_flags() -> None:
    old = launch("--model-path m --cuda-graph-max-bs 32 --nsa-decode-backend fa3")
    assert old.command is not None
    changes = moved(old.command, old, table("0.5.23"))
    there = There(old, Figures(), release="0.5.9")
    seen = found(there, machine(gpu(), sglang="0.5.23"), changes)["sglang"]
    assert seen.weight == "matters"
    assert "`--cuda-graph-max-bs` is now `--cuda-graph-max-bs-decode 32`" in seen.because
    assert "`--nsa-decode-backend` is now `--dsa-decode-backend fa3`" in seen.because
    assert rewritten(old.command, old, table("0.5.23"))[3:] == [
        *("--model-path", "m", "--cuda-graph-max-bs-decode", "32", "--dsa-decode-backend", "fa3")
    ]
    assert moved(old.command, old, table("0.5.9")) == []


def test_a_flag_that_the_release_at_hand_lacks_blocks() -> None:
    old = launch("--model-path m --torchao-config int8wo-128")
    assert old.command is not None
    changes = moved(old.command, old, table("0.5.23"))
    there = There(old, Figures(), release="0.5.9")
    seen = found(there, machine(gpu(), sglang="0.5.23"), changes)["sglang"]
    assert seen.weight == "blocking"
    assert "`--torchao-config`" in seen.because


def test_the_launch_is_written_in_the_words_of_the_release_at_hand(
    packages: Path, tmp_path: Path
) -> None:
    log = tmp_path / "server.log"
    text = (GENUINE / "h200-capture-failed.log").read_text()
    log.write_text(text)
    mine = of_log(pipeline.analyze([str(log)]), [str(log)])
    with_python(mine, sys.executable)
    before = mine.argv
    looked = preflight(mine, {"PYTHONPATH": str(packages)})
    assert looked.subject.release.version == "0.5.23"
    assert looked.subject.argv[3:] == before[3:]  # 0.5.16 has the same words for these
    by_what = {difference.what: difference for difference in looked.differences}
    assert by_what["sglang"].in_log == "0.5.16"
    assert looked.is_blocked  # the model is not here
    assert os.environ.get("PYTHONPATH") != str(packages)


def test_other_packages_are_told_by_their_weight() -> None:
    there = There(launch("--model-path m"), Figures(), release="0.5.9")
    there.launch.versions = {"torch": "2.8.0", "triton": "3.4"}
    seen = found(there, machine(gpu(), sglang="0.5.9", torch="2.9.1", triton="3.5"))
    assert (seen["torch"].weight, seen["triton"].weight) == ("matters", "minor")


def test_the_gravest_difference_comes_first() -> None:
    there = There(launch("--model-path m --tp 2"), Figures(), release="0.5.9")
    there.launch.versions = {"triton": "3.4"}
    order = [d.weight for d in differences(there, machine(gpu(), sglang="0.5.9"), ())]
    assert order == sorted(order, key=["blocking", "matters", "minor"].index)


def test_figures_are_expected_from_what_others_leave(packages: Path) -> None:
    """Of cards of 140 GiB, the second has 100 taken: less by as much is there to share out."""
    log = GENUINE / "h200-capture-failed.log"
    mine = of_log(pipeline.analyze([str(log)]), [str(log)])
    with_python(mine, sys.executable)
    assert mine.figures.baseline_gib is not None
    env = {"PYTHONPATH": str(packages), "CUDA_VISIBLE_DEVICES": "0"}
    assert preflight(mine, env).baseline_gib is None
    looked = preflight(mine, env | {"CUDA_VISIBLE_DEVICES": "1"})
    assert looked.baseline_gib == pytest.approx(mine.figures.baseline_gib - 101)
