"""A launch written back as a command, changed, and compared."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.launch import (
    Launch,
    diff,
    parse_command,
    parse_dump,
    render,
    unsupported,
    with_command,
)
from forensics.launch.arguments import tokens
from forensics.launch.command import read_flags
from forensics.releases import NO_DEFAULT, releases, table, version_key

SERVER = ["python3", "-m", "sglang.launch_server"]


def launch_of(release: str, **flags: object) -> Launch:
    return Launch(flags={"model_path": "m", **flags}, release=release)  # type: ignore[dict-item]


def typed(command: str, release: str | None = None) -> Launch:
    launch = parse_command(command, None if release is None else table(release))
    assert launch is not None
    launch.release = release
    return launch


def dumped(version: str, **values: object) -> Launch:
    """A whole dump of a release's defaults with some values in place of them."""
    fields = {
        f.name: None if f.default is NO_DEFAULT else f.default
        for f in table(version).fields.values()
    }
    call = ", ".join(f"{name}={value!r}" for name, value in (fields | values).items())
    late = version_key(version) >= version_key("0.5.19")
    text = repr(fields | values) if late else f"ServerArgs({call})"
    launch = parse_dump(f"server_args={text}")
    assert launch is not None
    launch.release = version
    return launch


@pytest.mark.parametrize(
    ("release", "flag"),
    [
        ("0.4.6", "--cuda-graph-max-bs"),
        ("0.5.13", "--cuda-graph-max-bs"),
        ("0.5.14", "--cuda-graph-max-bs-decode"),
        ("0.5.20", "--cuda-graph-max-bs-decode"),
        ("0.5.23", "--cuda-graph-max-bs-decode"),
    ],
)
@pytest.mark.parametrize("name", ["cuda_graph_max_bs", "cuda_graph_max_bs_decode"])
def test_a_change_speaks_the_release(release: str, flag: str, name: str) -> None:
    after = launch_of(release).with_changes({name: 32})
    assert after.argv() == [*SERVER, "--model-path", "m", flag, "32"]


def test_a_change_keeps_the_typed_command() -> None:
    before = typed(
        "python -m sglang.launch_server --model m --mem-fraction 0.95 --odd x --tp 8", "0.5.9"
    )
    after = before.with_changes({"mem_fraction_static": 0.88, "max_running_requests": 64})
    assert shlex.join(after.argv()) == (
        "python -m sglang.launch_server --model m --mem-fraction-static 0.88 --odd x --tp 8"
        " --max-running-requests 64"
    )
    assert before.flags["mem_fraction_static"] == 0.95
    assert [(d.sign, d.text) for d in diff(before, after) if d.sign != " "] == [
        ("-", "--mem-fraction 0.95"),
        ("+", "--mem-fraction-static 0.88"),
        ("+", "--max-running-requests 64"),
    ]


def test_none_takes_a_flag_back() -> None:
    before = typed("sglang serve m --cuda-graph-bs 1 2 4 --disable-cuda-graph --tp 2", "0.5.9")
    after = before.with_changes({"cuda_graph_bs": None, "disable_cuda_graph": False})
    assert after.argv() == ["sglang", "serve", "m", "--tp", "2"]
    assert dumped("0.5.9", tp_size=8).with_changes({"tp_size": None}).argv() == SERVER


def test_a_repeated_flag_is_set_once() -> None:
    before = typed("sglang serve m --tp 2 --port 1 --tp 4", "0.5.9")
    assert before.with_changes({"tp_size": 8}).argv() == [
        *("sglang", "serve", "m", "--tp-size", "8", "--port", "1")
    ]


def test_environment_changes() -> None:
    before = Launch(flags={"model_path": "m"}, env={"A": "1", "B": "2"}, release="0.5.9")
    after = before.with_changes({}, {"A": None, "B": "3 4", "HF_TOKEN": "x"})
    assert after.env == {"B": "3 4", "HF_TOKEN": "[redacted]"}
    assert [(d.sign, d.text) for d in diff(before, after)] == [
        ("-", "A=1"),
        ("-", "B=2"),
        ("+", "B='3 4'"),
        ("+", "HF_TOKEN='[redacted]'"),
        (" ", "python3 -m sglang.launch_server"),
        (" ", "--model-path m"),
    ]


def test_what_a_release_cannot_say_is_left_out() -> None:
    before = launch_of("0.4.4")
    changes = {"moe_a2a_backend": "mooncake", "no_such_thing": 1, "mem_fraction_static": 0.8}
    assert unsupported(before, changes) == ["moe_a2a_backend", "no_such_thing"]
    assert before.with_changes(changes).argv()[-2:] == ["--mem-fraction-static", "0.8"]


def test_merged_switches() -> None:
    after = launch_of("0.5.20").with_changes({"disable_piecewise_cuda_graph": True})
    assert after.argv()[-2:] == ["--cuda-graph-backend-prefill", "disabled"]
    after = launch_of("0.5.12").with_changes({"cuda_graph_backend_prefill": "disabled"})
    assert after.argv()[-1:] == ["--disable-piecewise-cuda-graph"]
    assert unsupported(launch_of("0.5.23"), {"enforce_piecewise_cuda_graph": True})


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(releases()), st.data())
def test_no_flag_that_the_release_lacks(release: str, data: st.DataObject) -> None:
    source = table(data.draw(st.sampled_from(releases())))
    name = data.draw(st.sampled_from(sorted(source.fields)))
    after = launch_of(release).with_changes({name: data.draw(st.sampled_from([1, "x", True]))})
    flags = [w.split("=")[0] for w in after.argv() if w.startswith("--")]
    assert all(table(release).field_for_flag(flag) is not None for flag in flags)


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("tp_size", 8, ["--tp-size", "8"]),
        ("trust_remote_code", True, ["--trust-remote-code"]),
        ("trust_remote_code", False, []),
        ("context_length", None, []),
        ("enable_tf32_matmul", False, ["--no-enable-tf32-matmul"]),
        ("enable_tf32_matmul", True, ["--enable-tf32-matmul"]),
        ("cuda_graph_bs_decode", [1, 2], ["--cuda-graph-bs-decode", "1", "2"]),
        (
            "limit_mm_data_per_request",
            {"image": 1},
            ["--limit-mm-data-per-request", '{"image": 1}'],
        ),
        ("json_model_override_args", '{"a": 1}', ["--json-model-override-args", '{"a": 1}']),
        ("chunked_prefill_size", -1, ["--chunked-prefill-size=-1"]),
        ("watermark_key", "x", None),
    ],
)
def test_value_rules(field: str, value: object, words: list[str] | None) -> None:
    release = table("0.5.23")
    made = tokens(field, value, release)  # type: ignore[arg-type]
    assert made == words
    if words:
        assert read_flags(words, release) == {field: value}


def test_minimal_command_of_a_dump() -> None:
    launch = dumped(
        "0.5.9",
        model_path="org/m",
        tokenizer_path="org/m",
        served_model_name="org/m",
        tp_size=8,
        mem_fraction_static=0.95,
        random_seed=123456,
        device="cuda",
        cuda_graph_bs=[1, 2, 4, 8],
        cuda_graph_max_bs=8,
        chunked_prefill_size=8192,
        attention_backend="flashinfer",
        sampling_backend="flashinfer",
        kv_cache_dtype="fp8_e4m3",
        trust_remote_code=True,
    )
    assert launch.argv() == [
        *SERVER,
        *("--model-path", "org/m", "--tp-size", "8"),
        "--trust-remote-code",
        *("--kv-cache-dtype", "fp8_e4m3", "--mem-fraction-static", "0.95"),
    ]
    marks = {a.field: a.mark for a in launch.minimal_flags()}
    assert marks["attention_backend"] == marks["chunked_prefill_size"] == "resolved"
    assert marks["mem_fraction_static"] == "likely typed"
    known = {a.field: a.mark for a in launch.minimal_flags(gpu_total_mib=97887)}
    assert known["cuda_graph_max_bs"] == "likely typed"
    assert "chunked_prefill_size" not in known


def test_the_heuristic_fraction_was_not_typed() -> None:
    launch = dumped("0.5.9", model_path="m", mem_fraction_static=0.848, tp_size=8)
    assert "--mem-fraction-static" not in launch.argv()
    marks = {a.field: a.mark for a in launch.minimal_flags()}
    assert marks["mem_fraction_static"] == "resolved"
    launch = dumped(
        "0.5.9", model_path="m", mem_fraction_static=0.85, tp_size=8, chunked_prefill_size=8192
    )
    marks = {a.field: a.mark for a in launch.minimal_flags(gpu_total_mib=97887)}
    assert marks["mem_fraction_static"] == "resolved"  # within 0.002 of what 0.5.9 picks
    marks = {a.field: a.mark for a in launch.minimal_flags()}
    assert marks["mem_fraction_static"] == "likely typed"


def test_dump_and_command_together() -> None:
    command = typed("A=1 sglang serve m --tp 8 --mem-fraction-static 0.9")
    launch = with_command(dumped("0.5.9", model_path="m", tp_size=8, page_size=64), command)
    assert launch.argv() == ["sglang", "serve", "m", "--tp", "8", "--mem-fraction-static", "0.9"]
    assert launch.env == {"A": "1"}
    assert launch.flags["page_size"] == 64
    marks = {a.field: a.mark for a in launch.minimal_flags()}
    assert marks["tp_size"] == "typed"
    assert marks["page_size"] == "resolved"


def test_render_quotes_and_folds() -> None:
    words = [*SERVER, "--model-path", "a b", "--cuda-graph-bs", "1", "2", "--trust-remote-code"]
    text = render(words, {"X": "$(rm)"})
    assert text.splitlines() == [
        "X='$(rm)' \\",
        "python3 -m sglang.launch_server \\",
        "  --model-path 'a b' \\",
        "  --cuda-graph-bs 1 2 \\",
        "  --trust-remote-code",
    ]
    assert shlex.split(text.replace("\\\n", " "))[1:] == words


def test_get_knows_other_names() -> None:
    launch = launch_of("0.5.14", cuda_graph_max_bs_decode=16)
    assert launch.get("cuda_graph_max_bs") == 16
    assert launch.number("cuda_graph_max_bs") == 16.0
    assert launch.get("absent", 3) == 3
    assert launch.number("model_path") is None


def test_the_table_follows_the_dump_for_other_builds() -> None:
    launch = dumped("0.5.9")
    launch.release = "0.5.9.dev40+gabcdef"
    assert launch.table().version == "0.5.9"
    launch.release_range = None
    assert launch.table().version == "0.5.8.post1"
    assert Launch().table().version == releases()[-1]
