"""Properties of memory remedies over generated incidents: what they state is what they give."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forensics.diagnosis import RunReport
from forensics.findings import Remedy
from forensics.pipeline import analyze
from forensics.releases import releases

SRT = "/opt/venv/lib/python3.12/site-packages/sglang/srt"
CAPTURE = ("model_executor/cuda_graph_runner.py", "capture")
PREFILL = ("managers/scheduler.py", "event_loop_normal")
SLOW = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@st.composite
def incidents(draw: st.DrawFn) -> dict[str, float | str | int]:
    """Figures of a launch whose pool was sized by its fraction."""
    baseline = draw(st.floats(20.0, 180.0).map(lambda x: round(x, 2)))
    weights = round(baseline * draw(st.floats(0.1, 0.6)), 2)
    return {
        "release": draw(st.sampled_from(releases())),
        "baseline": baseline,
        "weights": weights,
        "fraction": draw(st.sampled_from([0.85, 0.88, 0.9, 0.93, 0.95, 0.97])),
        "taken": round(draw(st.floats(0.1, 0.4)), 2),
        "request": draw(st.integers(100, 900)),
        "chunk": draw(st.sampled_from([2048, 8192, 16384])),
        "running": draw(st.sampled_from([16, 64, 256])),
    }


def lines(case: dict[str, float | str | int], frame: tuple[str, str]) -> str:
    base, weights = float(case["baseline"]), float(case["weights"])
    slack = base * (1 - float(case["fraction"]))
    pool, begin = base - weights - slack, slack * (1 - float(case["taken"]))
    oom = (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {case['request']}.00 MiB. "
        f"GPU 0 has a total capacity of {base + 0.7:.2f} GiB of which 50.00 MiB is free. "
        f"Including non-PyTorch memory, this process has {base + 0.65:.2f} GiB memory in use. Of "
        f"the allocated memory {base - 0.3:.2f} GiB is allocated by PyTorch, and 90.00 MiB is "
        "reserved by PyTorch but unallocated."
    )
    at = "[2026-01-05 10:00:0"
    serving = frame == PREFILL
    return "\n".join(
        [
            f"sglang=={case['release']}",
            f"{at}0] server_args=ServerArgs(model_path='/models/any', tp_size=1, "
            f"mem_fraction_static={case['fraction']}, chunked_prefill_size={case['chunk']}, "
            f"max_running_requests={case['running']}, max_total_tokens=None)",
            f"{at}1 TP0] Load weight begin. avail mem={base:.2f} GB",
            f"{at}2 TP0] Load weight end. type=LlamaForCausalLM, dtype=torch.bfloat16, "
            f"avail mem={base - weights:.2f} GB, mem usage={weights:.2f} GB.",
            f"{at}3 TP0] KV Cache is allocated. #tokens: {int(pool * 8192)}, "
            f"K size: {pool / 2:.2f} GB, V size: {pool / 2:.2f} GB",
            f"{at}3 TP0] Memory pool end. avail mem={slack:.2f} GB",
            f"{at}4 TP0] Capture cuda graph begin. This can take up to several minutes. "
            f"avail mem={begin:.2f} GB",
            *([f"{at}5] The server is fired up and ready to roll!"] if serving else []),
            f"{at}6 TP0] Scheduler hit an exception: Traceback (most recent call last):",
            f'  File "{SRT}/{frame[0]}", line 404, in {frame[1]}',
            f'  File "{SRT}/models/llama.py", line 301, in forward',
            oom,
            "",
            f"{at}7] Received sigquit from a child process. It usually means the child failed.",
        ]
    )


def report_of(text: str) -> RunReport:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.txt"
        path.write_text(text)
        return analyze([str(path)]).reports[0]


def root_remedies(report: RunReport) -> list[Remedy]:
    assert report.root_cause is not None
    return report.root_cause.remedies


@SLOW
@given(incidents())
def test_a_lower_fraction_gives_capture_what_it_states(case: dict[str, float | str | int]) -> None:
    report = report_of(lines(case, CAPTURE))
    base, now = float(case["baseline"]), float(case["fraction"])
    begin = base * (1 - now) * (1 - float(case["taken"]))
    for remedy in root_remedies(report):
        if remedy.name != "mem_fraction_static":
            continue
        assert remedy.direction == "decrease"
        assert remedy.to == round(remedy.to, 2) < now
        assert remedy.to * base > float(case["weights"])
        given_back = base * (now - remedy.to)
        assert remedy.effect["free_gib_at_capture"] == pytest.approx(begin + given_back, abs=0.03)


@SLOW
@given(incidents())
def test_a_lower_fraction_frees_for_serving_what_it_states(
    case: dict[str, float | str | int],
) -> None:
    report = report_of(lines(case, PREFILL))
    base, now = float(case["baseline"]), float(case["fraction"])
    found = [r for r in root_remedies(report) if r.name == "mem_fraction_static"]
    assert found
    for remedy in found:
        assert remedy.direction == "decrease"
        assert remedy.to < now
        assert remedy.effect["free_gib"] == pytest.approx(base * (now - remedy.to), abs=0.006)
        assert remedy.effect["free_gib"] >= float(case["request"]) / 1024


@SLOW
@given(incidents(), st.sampled_from([CAPTURE, PREFILL]))
def test_no_remedy_names_a_flag_that_the_release_lacks(
    case: dict[str, float | str | int], frame: tuple[str, str]
) -> None:
    report = report_of(lines(case, frame))
    table = report.run.launch.table()
    assert table.version == case["release"]
    for finding in report.findings:
        for remedy in finding.remedies:
            if remedy.kind == "flag":
                assert table.has(remedy.name), remedy.name
