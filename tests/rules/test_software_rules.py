"""Rules of the software stack: whole logs, and one message for each signature."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from forensics.diagnosis import RunReport
from forensics.pipeline import analyze
from forensics.rules.signature_data import Signature, load_signatures
from forensics.rules.signature_rules import bounded

HERE = Path(__file__).parent
LOGS = sorted(path.parent for path in HERE.glob("*/expected.json"))
OURS = [
    folder
    for folder in LOGS
    if json.loads((folder / "expected.json").read_text()).get("family") == "software"
]
MESSAGES = tomllib.loads((HERE / "messages.toml").read_text(encoding="utf-8"))["message"]
SIGNATURES = load_signatures()

STEPS = {
    "init": ["managers/scheduler.py:__init__", "model_executor/model_runner.py:initialize"],
    "load": ["model_executor/model_runner.py:load_model"],
    "capture": ["model_executor/cuda_graph_runner.py:capture"],
    "warmup": ["managers/scheduler.py:event_loop_overlap"],
    "serving": ["managers/scheduler.py:event_loop_overlap"],
}


def report(path: Path) -> RunReport:
    return analyze([str(path)]).reports[-1]


@pytest.mark.parametrize("folder", OURS, ids=lambda folder: folder.name)
def test_whole_log(folder: Path) -> None:
    expected = json.loads((folder / "expected.json").read_text())
    found = report(folder / "hit.log")
    root = found.root_cause
    assert root is not None
    assert (root.rule, root.class_) == (expected["rule"], expected["class"])
    assert (root.rank, found.run.phase) == (expected["rank"], expected["phase"])
    assert root.first.line == expected["first"]
    assert [m.name for m in root.remedies[:3]] == expected["remedies"]
    loud = [f.rule for f in found.findings if (f.role, f.severity) == ("consequence", "critical")]
    assert loud == expected.get("consequences", [])


@pytest.mark.parametrize("folder", OURS, ids=lambda folder: folder.name)
def test_near_miss(folder: Path) -> None:
    path = folder / "miss.log"
    expected = json.loads((folder / "expected.json").read_text())
    root = report(path).root_cause
    assert root is None or root.rule != expected["rule"]


def log_of(message: dict[str, Any]) -> str:
    """A launch that ends with a message."""
    phase = message.get("phase", "load")
    at = "[2026-03-01 10:00:00"
    lines = [
        f"{at}] server_args=ServerArgs(model_path='/models/x', {message.get('flags', 'port=3')})"
    ]
    if phase == "args":
        return "\n".join([*lines, *traceback(message, "Traceback (most recent call last):", [])])
    for rank in ("TP0", "TP1"):
        lines.append(f"{at} {rank}] Load weight begin. avail mem=78.50 GB")
    if phase != "load":
        lines.append(
            f"{at} TP0] Load weight end. type=XForCausalLM, dtype=torch.bfloat16, "
            "avail mem=40.00 GB, mem usage=38.50 GB."
        )
        lines.append(f"{at} TP0] Capture cuda graph begin. avail mem=9.00 GB")
    if phase in ("warmup", "serving"):
        lines.append(f"{at} TP0] Capture cuda graph end. Time elapsed: 9.81 s")
    if phase == "serving":
        lines.append(f"{at}] The server is fired up and ready to roll!")
    head = f"{at} TP1] Scheduler hit an exception: Traceback (most recent call last):"
    lines += traceback(message, head, STEPS["load" if phase == "load" else phase])
    lines.append(f"{at}] Received sigquit from a child process. It usually means the child failed.")
    return "\n".join(lines)


def traceback(message: dict[str, Any], head: str, steps: list[str]) -> list[str]:
    frames = [f"sglang/srt/{step}" for step in steps] + message["frames"]
    lines = [head]
    for frame in frames:
        file, function = frame.rsplit(":", 1)
        lines += [f'  File "/site/{file}", line 10, in {function}', "    call_something_here"]
    return [*lines, message["text"], *message.get("after", []), ""]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda m: f"{m['rule']}-{m['text'][:30]}")
def test_message(message: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(log_of(message), encoding="utf-8")
    found = report(path)
    root = found.root_cause
    assert root is not None
    assert root.rule == message["rule"]
    phase = {"args": "init", "capture": "graph_capture"}.get(p := message.get("phase", "load"), p)
    assert found.run.phase == phase
    assert root.rank == (None if phase == "init" else "TP1")
    if wanted := message.get("remedy"):
        assert wanted in [m.name for m in root.remedies[:3]]


@pytest.mark.parametrize("signature", SIGNATURES, ids=lambda s: s.id)
def test_signature_is_sound(signature: Signature) -> None:
    for name in ("message", "unless", "frames", "inner", "exception", "opens"):
        if text := getattr(signature, name):
            re.compile(text, re.IGNORECASE)
    assert signature.remedy or signature.role != "root_cause"
    assert "{" not in signature.summary


def test_every_signature_has_a_log_or_a_message() -> None:
    shown = {message["rule"] for message in MESSAGES}
    shown |= {json.loads((f / "expected.json").read_text())["rule"] for f in OURS}
    roots = {s.id for s in SIGNATURES if s.role == "root_cause"}
    assert roots - shown == set()


def test_what_cured_a_launch_is_said(tmp_path: Path) -> None:
    failed = (HERE / "tp-split" / "hit.log").read_text()
    cured = (HERE / "fp4-gemm-nan" / "miss.log").read_text().split("/pytorch/")[0]
    cured = cured.replace("tp_size=4", "tp_size=4, ep_size=4")
    path = tmp_path / "log.txt"
    path.write_text(f"{failed}+ export SGLANG_ENABLE_JIT_DEEPGEMM=0\n{cured}", encoding="utf-8")
    first, second = analyze([str(path)]).reports
    assert (first.run.outcome, second.run.outcome) == ("failed", "serving")
    assert second.root_cause is None
    (change,) = [f for f in second.findings if f.rule == "changed-launch"]
    assert change.title.startswith("Fixed by: ")
    assert "SGLANG_ENABLE_JIT_DEEPGEMM=0" in change.facts["changes"]
    assert "tp_size 8 to 4" in change.facts["changes"]


def test_an_endless_word_hides_nothing_and_is_not_read_to_its_end(tmp_path: Path) -> None:
    message = next(m for m in MESSAGES if m["rule"] == "module-missing")
    path = tmp_path / "log.txt"
    path.write_text(log_of({**message, "text": message["text"] + " " + "y" * 19_000}))
    root = report(path).root_cause
    assert root is not None
    assert root.rule == "module-missing"
    assert len(bounded("boom " + "y" * 20_000 + " end")) < 400
    assert bounded("boom " + "y" * 20_000 + " end").endswith(" end")


def test_a_flag_that_no_release_has_is_to_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log.txt"
    path.write_text(
        "usage: launch_server.py [-h] --model-path MODEL_PATH\n"
        "launch_server.py: error: unrecognized arguments: --make-it-quick\n"
    )
    root = report(path).root_cause
    assert root is not None
    assert root.rule == "refused-arguments"
    assert [remedy.name for remedy in root.remedies] == ["drop_argument"]
