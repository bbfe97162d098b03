"""A change in words: what to change, what it does, and the new launch as a command to copy."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from forensics.diagnosis import RunReport
from forensics.findings import Remedy
from forensics.redact import redact_argv, redact_value
from forensics.views.clean import one_line
from forensics.views.words import amount, value

if TYPE_CHECKING:
    from forensics.launch import DiffLine

BASIS = {
    "observed": "seen in this log",
    "computed": "computed from this log",
    "lower_bound": "a lower bound from the failed request",
    "prior": "similar launches",
    "heuristic": "SGLang's own rule of thumb",
    "documented": "documentation and known reports",
}
"""What a remedy rests on, in words."""

_EFFECTS = {
    "free_gib_at_capture": "{} GiB free at capture",
    "free_gib_at_capture_scaled": "{} if the pool's excess shrinks with it",
    "free_gib": "{} GiB free",
    "kv_tokens": "{} KV tokens",
    "kv_tokens_change": "{} KV tokens",
    "kv_pool_gib": "{} GiB of KV pool",
}
_SPELLED = {"gpu": "GPU", "gpus": "GPUs", "cuda": "CUDA", "jit": "JIT", "ram": "RAM", "ib": "IB"}
_ACTIONS = {
    "align_settings": "give both sides the same settings",
    "choose_other_gpus": "choose other GPUs",
    "copy_weights_to_local_disk": "copy the weights to a local disk",
    "drain_node": "take the node out of service",
    "drop_argument": "leave the argument out",
    "grant_sys_nice": "grant the capability SYS_NICE",
    "inspect_rank_gpu": "look at the rank's GPU",
    "install_missing_python_module": "install the missing Python module",
    "limit_image_size": "limit the size of images",
    "mask_cuda_compat_dir": "hide CUDA's compatibility libraries",
    "check_ib_link": "check the InfiniBand link",
    "persist_jit_cache": "keep the cache of compiled kernels",
    "precompile_deep_gemm": "compile DeepGEMM's kernels beforehand",
    "raise_container_memory": "raise the container's memory limit",
    "raise_liveness_initial_delay": "let the liveness probe begin later",
    "read_prefill_log": "read the prefill server's log",
    "redownload_checkpoint": "download the checkpoint again",
    "report_bug": "report the defect",
    "retry_start": "start again",
    "scheduled_restart": "restart on a schedule",
    "start_sequentially": "start one after the other",
    "stop_other_process": "stop the other process",
    "stop_other_server": "stop the other server",
    "tune_triton_moe_config": "tune Triton's MoE configuration",
    "update_driver_or_image": "update the driver or take another image",
    "use_build_with_native_model": "use a build that has the model itself",
    "use_preconverted_checkpoint": "use a checkpoint that is converted already",
    "use_sm120_patched_build": "use a build with kernels for SM120",
    "wipe_jit_cache": "wipe the cache of compiled kernels",
}
"""Actions whose names, read as words, would be no English."""

_CONSTRAINT = re.compile(r"[<>=!~]=?\s*\d")
"""A version constraint, not a placeholder such as `<your release>`."""

_CONTEXT_LINES = 1


def phrase(remedy: Remedy) -> str:
    """The change in words: `lower --mem-fraction-static from 0.95 to 0.88`."""
    new = "" if remedy.to is None else value(remedy.to)
    if remedy.kind == "action":
        spelled = " ".join(_SPELLED.get(word, word) for word in remedy.name.split("_"))
        words = _ACTIONS.get(remedy.name, spelled)
        return f"{words}{f' ({new})' if new else ''}"
    if remedy.kind == "package":
        return _package(remedy, new)
    name = remedy.name
    if remedy.kind == "flag":
        name = f"--{name.removeprefix('--').replace('_', '-')}"
    on, off = ("add", "remove") if remedy.kind == "flag" else ("turn on", "turn off")
    if remedy.direction in ("remove", "disable"):
        return f"{'remove' if remedy.direction == 'remove' else off} {name}{_from(remedy)}"
    if remedy.direction == "enable" and (remedy.to is None or remedy.to is True):
        return f"{on} {name}"
    if remedy.kind == "env":
        return f"set {name}={new}{_from(remedy)}"
    verb = {"increase": "raise", "decrease": "lower"}.get(remedy.direction, "set")
    old = f" from {value(remedy.from_)}" if remedy.from_ is not None else ""
    return f"{verb} {name}{old}{f' to {new}' if new else ''}"


def _package(remedy: Remedy, new: str) -> str:
    if new == "installed":
        return f"install the Python package {remedy.name}"
    grades = ("upgrade", "downgrade", "remove")
    act = remedy.direction if remedy.direction in grades else "install"
    to = f" to {new}" if act != "install" else new if _CONSTRAINT.match(new) else f" {new}"
    return f"{act} {remedy.name}{to if new else ''}{_from(remedy)}"


def to_do(remedy: Remedy) -> str:
    """A change in words; the name of an action alone would not say how."""
    how = f": {remedy.reason}" if remedy.kind == "action" and remedy.reason else ""
    return f"{phrase(remedy)}{how}"


def effect_words(remedy: Remedy) -> str:
    """The predicted numbers: `7.57 GiB free at capture, 425,250 KV tokens (-128,478)`."""
    parts = []
    for name, data in remedy.effect.items():
        if name.removesuffix("_change") != name and name.removesuffix("_change") in remedy.effect:
            continue
        number = _signed(data) if name.endswith("_change") else amount(data)
        words = f"{name}_".replace("_gib_", "_").strip("_").replace("_", " ")
        unit = " GiB" if "_gib_" in f"{name}_" else ""
        part = _EFFECTS.get(name, f"{words} {{}}{unit}").format(number)
        parts.append(part + _change(remedy, name))
    return ", ".join(parts)


def command_lines(report: RunReport, width: int) -> list[str]:
    """The new launch as a command to copy; empty where there is none."""
    if not report.new_command:
        return []
    return shell_lines(report.new_command, report.new_env, report.remove_env, width)


def shell_lines(
    argv: list[str], env: Mapping[str, str], remove_env: Sequence[str], width: int
) -> list[str]:
    """A launch quoted for a shell, wrapped with backslashes, its secrets masked."""
    variables: dict[str, str] = redact_value(dict(env))
    words = [f"{one_line(name)}={shlex.quote(one_line(text))}" for name, text in variables.items()]
    if remove_env:
        unset = [f"-u {shlex.quote(one_line(name))}" for name in remove_env]
        words = ["env", *unset, *words]
    lines, line = [], ""
    for word in [*words, *_options(redact_argv(argv))]:
        if line.strip() and len(line) + len(word) + 3 > width:
            lines.append(f"{line}\\")
            line = "    "
        line += f"{word} "
    return [*lines, line.rstrip()]


def diff_lines(diff: list[DiffLine], *, whole: bool = False) -> list[tuple[str, str]]:
    """Sign and text of each line; what is far from a change is one line with the sign `...`."""
    changed = [number for number, line in enumerate(diff) if line.sign != " "]
    rows: list[tuple[str, str]] = []
    left_out = 0
    for number, line in enumerate(diff):
        if whole or any(abs(number - at) <= _CONTEXT_LINES for at in changed):
            if left_out:
                rows.append(("...", f"{left_out} unchanged"))
                left_out = 0
            rows.append((line.sign, one_line(line.text)))
        else:
            left_out += 1
    return [*rows, ("...", f"{left_out} unchanged")] if left_out else rows


def _options(argv: list[str]) -> list[str]:
    """Options with their values, each quoted, so that a line never parts the two."""
    result: list[str] = []
    for argument in argv:
        quoted = shlex.quote(one_line(argument))
        if result and result[-1].startswith("--") and not argument.startswith("--"):
            result[-1] += f" {quoted}"
        else:
            result.append(quoted)
    return result


def _change(remedy: Remedy, name: str) -> str:
    """` (-115,456)`, where the effect also says by how much."""
    change = remedy.effect.get(f"{name}_change")
    if isinstance(change, bool) or not isinstance(change, int | float):
        return ""
    return f" ({_signed(change)})"


def _signed(number: object) -> str:
    """A change with its sign: `+1,024`."""
    positive = isinstance(number, int | float) and number > 0
    return f"{'+' if positive else ''}{amount(number)}"


def _from(remedy: Remedy) -> str:
    return "" if remedy.from_ in (None, True) else f" (now {value(remedy.from_)})"
