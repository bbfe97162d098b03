"""What wrappers, escapes and glue leave of a line, and how they are recognised."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from forensics.reading import Piece, Unwrapper, detect

LOG_TEXT = """\
[2025-07-29 18:14:40] server_args=ServerArgs(model_path='/m', tp_size=2, x=[1, 2], y="a: 'b'")
[2025-07-29 18:14:43 TP0] Load weight begin. avail mem=78.50 GB
[2026-01-04 10:00:00.123 DP0 TP1] Init torch distributed ends. elapsed=3.20 s, mem usage=0.61 GB
[03:31:02 gpu=2] Memory pool end. avail mem=1.53 GB
Loading safetensors checkpoint shards:  48% Completed | 40/83 [00:21<00:23,  1.85it/s]
Capturing batches (bs=1 avail_mem=11.18 GB): 100%|██████████| 36/36 [00:10<00:00,  3.37it/s]
[2025-11-05 10:18:47] INFO:     127.0.0.1:43844 - "GET /v1/models HTTP/1.1" 200 OK
[2025-11-05 10:18:48] INFO:     Application startup complete.
[2025-12-31 05:52:20] WARNING server_args.py:1191: Attention backend not explicitly specified.
[rank0]:[W318 13:41:30.265537082 ProcessGroupNCCL.cpp:1565] Warning: WARNING: not destroyed
[rank2]: Traceback (most recent call last):
W0814 14:27:31.050000 1 torch/utils/cpp_extension.py:2425] TORCH_CUDA_ARCH_LIST is not set
2025-03-10 10:45:15,370 - INFO - flashinfer.jit: Loading JIT ops: cascade
2026-09-10 10:45:15,370 [Daemon gpu=1 tp_rank=1] INFO cached
node1:1234:1290 [3] NCCL WARN Cuda failure 'out of memory'
[Gloo] Rank 0 is connected to 7 peer ranks. Expected number of connected peer ranks is : 7
Traceback (most recent call last):
  File "/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py", line 1, in run
    raise RuntimeError("Not enough memory")
RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.

+ python3 -m sglang.launch_server --model-path /models/x --tp 16
2025-08-28 21:02:10 INFO 125700 [ server_args.py:88] Attention backend not set.
(model_path='/mnt/x', tp_size=8, nnodes=1)
./run.sh: line 28:  8891 Killed   python3 -m sglang.launch_server --model x
[2025-09-20 09:01:15 TP4] Decode batch, #running-req: 8, #token: 9120, token usage: 0.03, \
cuda graph: True, gen throughput (token/s): 310.55, #queue-req: 0, 
"""
LOG = LOG_TEXT.split("\n")[:-1]

ZONED = "2026-02-26T15:56:59.123456789Z"
LATER = datetime(2026, 2, 26, 15, 56, 59)


def as_json(text: str) -> str:
    return json.dumps({"log": text + "\n", "stream": "stderr", "time": ZONED})


WRAPPERS: dict[str, Callable[[str], str]] = {
    "docker compose v2": lambda text: f"worker-1    | {text}",
    "docker compose v1": lambda text: f"sglang_worker_1  | {text}",
    "docker compose, coloured": lambda text: f"\x1b[36mworker-1  | \x1b[0m{text}",
    "docker compose, container name": lambda text: f"sglang  | {text}",
    "docker timestamps": lambda text: f"{ZONED} {text}",
    "kubernetes timestamps": lambda text: f"2026-02-26T15:56:59.123456789+08:00 {text}",
    "cloud console timestamps": lambda text: f"2025-02-06 19:11:20 {text}",
    "CRI": lambda text: f"{ZONED} stdout F {text}",
    "json-file": as_json,
    "kubectl --prefix": lambda text: f"[pod/sglang-0/server] {text}",
    "stern": lambda text: f"sglang-7c9d-x2x server {text}",
    "journald": lambda text: f"Feb 26 15:56:59 host7 docker-sglang[812]: {text}",
    "journald, ISO": lambda text: f"2026-02-26T15:56:59+0000 host7 sglang[812]: {text}",
    "Ray": lambda text: f"\x1b[36m(SGLangEngine pid=12589, ip=10.0.0.2)\x1b[0m {text}",
    "Ray, escapes lost": lambda text: f"[36m(SGLangEngine pid=12589)[0m {text}",
    "srun -l": lambda text: f" 3: {text}",
    "torchrun": lambda text: f"[default0]:{text}",
    "logger": lambda text: f"2025-03-07 23:50:27,531 - __main__ - INFO - {text}",
    "logger in brackets": lambda text: f"[2026-02-26 15:56:59] ERROR: {text}",
    "quote": lambda text: f"> {text}",
    "indented": lambda text: f"    {text}",
    "cat -n": lambda text: f"    12\t{text}",
    "grep -n": lambda text: f"1207:{text}",
    "grep -nH": lambda text: f"logs/server-1.log:1207:{text}",
    "less -N": lambda text: f"   1207 {text}",
    "nl": lambda text: f"  1207  {text}",
    "bat": lambda text: f"1207 | {text}",
}


NUMBERS = {"cat -n", "grep -n", "grep -nH", "less -N", "nl", "bat"}


def texts(unwrapper: Unwrapper, lines: list[str]) -> list[str]:
    pieces = [piece for n, line in enumerate(lines, 1) for piece in unwrapper.pieces(n, line)]
    return [piece.text for piece in pieces + unwrapper.flush()]


def unwrap(lines: list[str]) -> list[str]:
    return texts(detect(lines), lines)


def one(raw: str) -> Piece:
    (piece,) = Unwrapper().pieces(1, raw)
    return piece


# Plain logs


def test_a_plain_log_is_left_as_it_is() -> None:
    assert unwrap(LOG) == LOG
    assert detect(LOG).name is None
    assert detect(LOG).hot_prefix is None
    assert detect(LOG).bulk_ok


@pytest.mark.parametrize("line", LOG)
def test_each_plain_line_is_left_as_it_is(line: str) -> None:
    assert unwrap([line] * 5) == [line] * 5


# Wrappers


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_wrapped_log_says_what_the_plain_log_says(wrapper: str) -> None:
    wrapped = [WRAPPERS[wrapper](line) for line in LOG]
    assert unwrap(wrapped) == LOG
    assert detect(wrapped).name


@given(
    st.lists(st.sampled_from(sorted(WRAPPERS)), min_size=1, max_size=3, unique=True),
    st.lists(st.sampled_from(LOG), max_size=20),
)
def test_stacked_wrappers_come_off_one_by_one(stack: list[str], body: list[str]) -> None:
    assume(len(NUMBERS & set(stack)) < 2)  # nobody numbers numbered lines
    lines = LOG[:2] + body
    wrapped = lines
    for wrapper in stack:
        wrapped = [WRAPPERS[wrapper](line) for line in wrapped]
    assert unwrap(wrapped) == lines


@pytest.mark.parametrize("wrapper", sorted(set(WRAPPERS) - {"indented"}))
def test_lines_without_the_wrapper_pass_in_a_wrapped_source(wrapper: str) -> None:
    lines = [WRAPPERS[wrapper](LOG[1]), WRAPPERS[wrapper](LOG[2]), *LOG]
    assert unwrap(lines) == [LOG[1], LOG[2], *LOG]


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_wrapper_that_begins_late_is_learned(wrapper: str) -> None:
    unwrapper = detect(LOG)
    late = [WRAPPERS[wrapper](line) for line in [LOG[1], LOG[2], LOG[17], LOG[19]]]
    assert texts(unwrapper, LOG + late) == [*LOG, LOG[1], LOG[2], LOG[17], LOG[19]]


def test_the_usual_wrapper_follows_a_source_that_changes_for_good() -> None:
    unwrapper = detect(LOG)
    texts(unwrapper, [f"worker-1  | {LOG[1]}"] * 100)
    assert unwrapper.name == "docker compose"


def test_bare_colour_codes_and_escapes_vanish() -> None:
    assert one("\x1b]0;title\x07\x1b[1;31mred\x1b[0m\x1b[K text\x08\x00").text == "red text"


def test_tabs_stay_and_crlf_goes() -> None:
    assert one("a\tb\r").text == "a\tb"


def test_a_blank_line_is_one_empty_piece() -> None:
    for raw in ("", "\r", "worker-1  | ", "worker-1  |", f"{ZONED} stdout F ", "\x1b[0m"):
        assert one(raw).text == ""


def test_markdown_fences_are_blank() -> None:
    assert unwrap(["```shell", LOG[1], "```"]) == ["", LOG[1], ""]


# What wrappers tell


def test_cri_tells_time_and_stream() -> None:
    piece = one(f"{ZONED} stderr F hello")
    assert piece.time == LATER.replace(microsecond=123456, tzinfo=UTC)
    assert (piece.stream, piece.text) == ("stderr", "hello")


def test_a_printed_zone_is_kept_and_none_is_invented() -> None:
    zoned = one("2026-02-26T15:56:59.123456789+08:00 x").time
    assert zoned is not None
    assert zoned.utcoffset() == timedelta(hours=8)
    assert one(f"2026-02-26 15:56:59 {LOG[1]}").time == LATER
    assert one("[Thu Feb 26 15:56:59 2026] Out of memory: Killed process 1").time == LATER


@pytest.mark.parametrize(
    ("raw", "node"),
    [
        ("worker-longctx-1  | x", "worker-longctx-1"),
        ("[pod/sglang-0/server] x", "sglang-0/server"),
        ("(SGLangEngine pid=12589, ip=10.0.0.2) x", "SGLangEngine pid=12589, ip=10.0.0.2"),
        ("(pid=7) x", "pid=7"),
        ("Feb 26 15:56:59 host7 sglang[812]: x", "host7"),
        ("Feb 26 15:56:59 host7 kernel: x", "host7"),
        ("[default3]:x", "default3"),
        ("[pod/sglang-0/server] (Engine pid=7) x", "Engine pid=7"),
    ],
)
def test_who_wrote_it_is_kept(raw: str, node: str) -> None:
    assert (one(raw).node, one(raw).text) == (node, "x")


def test_ray_says_how_many_lines_it_folded() -> None:
    piece = one("\x1b[36m(E pid=1)\x1b[0m Load begin.\x1b[32m [repeated 7x across cluster]\x1b[0m")
    assert (piece.text, piece.repeated) == ("Load begin.", 7)
    long = one("(E pid=1) x [repeated 3x across cluster] (Ray deduplicates logs by default. Set)")
    assert (long.text, long.repeated) == ("x", 3)


# A logger that wraps lines, and the lines that only look like it


def test_every_line_of_a_wrapping_logger_is_unwrapped() -> None:
    lines = [
        "+ python3 -m sglang.launch_server",
        "[2026-02-26 15:56:59] ERROR: Traceback (most recent call last):",
        '[2026-02-26 15:56:59] ERROR:   File "/x/auto.py", line 1360, in from_pretrained',
        "[2026-02-26 15:56:59] ERROR:     raise KeyError(key)",
        "[2026-02-26 15:56:59] ERROR: KeyError: 'glm_moe_dsa'",
        "[2026-02-26 15:56:59] ERROR: ",
    ]
    assert unwrap(lines)[1:] == [
        "Traceback (most recent call last):",
        '  File "/x/auto.py", line 1360, in from_pretrained',
        "    raise KeyError(key)",
        "KeyError: 'glm_moe_dsa'",
        "",
    ]
    assert not detect(lines).bulk_ok
    assert detect(lines).hot_prefix is None


def test_uvicorn_lines_keep_their_level_beside_a_wrapping_logger() -> None:
    outer = "[2026-02-26 15:56:59] INFO: "
    lines = [outer + LOG[1], outer + LOG[2], LOG[6], LOG[7]]
    assert unwrap(lines) == [LOG[1], LOG[2], LOG[6], LOG[7]]


def test_another_logger_is_not_unwrapped_for_the_first() -> None:
    lines = [WRAPPERS["logger"](LOG[1]), WRAPPERS["logger"](LOG[2])]
    other = "2025-03-07 23:50:27,531 - other.module - INFO - hello"
    assert unwrap([*lines, other])[-1] == other


# Parts


def test_cri_parts_are_joined_within_their_stream() -> None:
    unwrapper = Unwrapper()
    assert unwrapper.pieces(1, f"{ZONED} stdout P [2025-07-29 18:14:43 TP0] Load ") == []
    assert [piece.text for piece in unwrapper.pieces(2, f"{ZONED} stderr F other")] == ["other"]
    assert unwrapper.pieces(3, f"{ZONED} stdout P weight ") == []
    (piece,) = unwrapper.pieces(4, f"{ZONED} stdout F begin.")
    assert (piece.line, piece.text) == (1, "[2025-07-29 18:14:43 TP0] Load weight begin.")


def test_json_parts_are_joined_until_the_newline() -> None:
    part = json.dumps({"log": "first half, ", "stream": "stderr", "time": ZONED})
    lines = [as_json("before"), part, as_json("second half")]
    assert unwrap(lines) == ["before", "first half, second half"]


def test_json_without_any_newline_is_not_joined() -> None:
    lines = [json.dumps({"log": f"line {n}", "stream": "stderr"}) for n in range(3)]
    assert unwrap(lines) == ["line 0", "line 1", "line 2"]


def test_a_part_that_never_ends_is_given_at_the_end() -> None:
    unwrapper = Unwrapper()
    assert unwrapper.pieces(7, f"{ZONED} stdout P half a line") == []
    assert [(piece.line, piece.text) for piece in unwrapper.flush()] == [(7, "half a line")]
    assert unwrapper.flush() == []


def test_a_part_is_not_joined_with_the_record_of_a_new_start() -> None:
    unwrapper = Unwrapper()
    unwrapper.pieces(1, f"{ZONED} stderr P Loading: 3%")
    pieces = unwrapper.pieces(2, f"{ZONED} stderr F {LOG[1]}")
    assert [(piece.line, piece.text) for piece in pieces] == [(1, "Loading: 3%"), (2, LOG[1])]


def test_carriage_returns_are_split_after_parts_are_joined() -> None:
    unwrapper = Unwrapper()
    assert unwrapper.pieces(1, f"{ZONED} stderr P \rbar 1%\rba") == []
    assert [piece.text for piece in unwrapper.pieces(2, f"{ZONED} stderr F r 2%\r")] == [
        "bar 1%",
        "bar 2%",
    ]


def test_a_json_record_of_several_lines_gives_each_line() -> None:
    raw = json.dumps({"message": 'Traceback:\n\n  File "x"', "timestamp": "2026-02-26T15:56:59"})
    assert [piece.text for piece in Unwrapper().pieces(1, raw)] == ["Traceback:", "", '  File "x"']


def test_json_that_a_program_printed_is_left_alone() -> None:
    for raw in ('{"text": "a"}', '{"message": "CUDA out of memory"}', "{not json}", '{"log": 1}'):
        assert one(raw).text == raw


# Several pieces in a line


def test_carriage_returns_separate_pieces_of_one_line() -> None:
    raw = "worker-1  | \rbar 1%\rbar 2%\r   \rdone\r"
    pieces = Unwrapper().pieces(9, raw)
    assert [(p.line, p.text, p.node, p.glued) for p in pieces] == [
        (9, "bar 1%", "worker-1", False),
        (9, "bar 2%", "worker-1", False),
        (9, "done", "worker-1", False),
    ]


@pytest.mark.parametrize(
    "parts",
    [
        [LOG[5], "[2025-11-10 19:59:08 TP0] Registering 3492 cuda graph addresses"],
        [
            "  0%|          | 0/4 [00:00<?, ?it/s]",
            LOG[5],
            "[2026-02-18 23:53:28 TP4] Scheduler hit",
        ],
        [
            LOG[4],
            "Loading safetensors checkpoint shards:  49% Completed | 41/83 [00:22<00:21, 1.9s/it]",
        ],
        [
            "  2%|▏         | 1/52 [00:14<12:34, 14.80s/it]",
            "/opt/site/lowering.py:7836: UserWarning: x",
        ],
        ["Decode batch, #running-", "[2026-02-18 23:53:28] Decode batch, #running-req: 1"],
        ["Memory pool ", "[03:31:02 gpu=2] Memory pool end. avail mem=1.53 GB"],
        [
            '  File "/sgl-work',
            '[2026-02-18 23:53:28] INFO:     1.2.3.4:5 - "GET /x HTTP/1.1" 200 OK',
        ],
    ],
)
def test_records_and_bars_glued_to_other_text_are_cut(parts: list[str]) -> None:
    pieces = Unwrapper().pieces(3, "".join(parts))
    assert [piece.text for piece in pieces] == parts
    assert [piece.glued for piece in pieces] == [False] + [True] * (len(parts) - 1)


@pytest.mark.parametrize(
    "raw",
    [
        "[2026-01-08 09:30:03] Receive: obj=GenerateReqInput(text='[2025-01-01 00:00:00 TP0] x')",
        "[2026-01-08 09:30:03] Finish: obj=GenerateReqInput(), out={[2025-01-01 00:00:00] x}",
        "[2026-01-08 09:30:03] server_args={'chat_template': [2025-01-01 00:00:00] x}",
        '[2026-01-08 09:30:03] got {"text": "see [2025-01-01 00:00:00 TP0] Load \\"x\\""}',
        "[2026-01-08 09:30:03] prompt='bar [00:10<00:00, 3.37it/s]Loading [2025-01-01 00:00:00] x'",
        "[2026-01-08 09:30:03] Capture begin. bs=[1, 2, 4, 8], avail mem=7.54 GB",
    ],
)
def test_what_users_sent_is_not_cut(raw: str) -> None:
    assert one(raw).text == raw


# Bulk


@pytest.mark.parametrize("wrapper", sorted(set(WRAPPERS) - {"json-file", "logger in brackets"}))
def test_the_hot_prefix_unwraps_typical_lines_in_polars(wrapper: str) -> None:
    wrapped = [WRAPPERS[wrapper](line) for line in [*LOG, *LOG[:3]]]
    unwrapper = detect(wrapped)
    assert unwrapper.hot_prefix is not None
    if wrapper == "Ray, escapes lost":
        return
    bulk = pl.Series(wrapped[:3]).str.replace(unwrapper.hot_prefix, "").to_list()
    assert bulk == LOG[:3]


def test_the_hot_prefix_names_who_wrote_a_line() -> None:
    wrapped = [f"[pod/s-0/c] (Engine pid={n}) {LOG[1]}" for n in range(5)]
    prefix = detect(wrapped).hot_prefix
    assert prefix is not None
    assert pl.Series(wrapped).str.extract(prefix, 1)[3] == "Engine pid=3"


def test_the_hot_prefix_leaves_parts_alone() -> None:
    prefix = detect([f"{ZONED} stdout F {line}" for line in LOG]).hot_prefix
    raw = f"{ZONED} stdout P part"
    assert prefix is not None
    assert pl.Series([raw]).str.replace(prefix, "")[0] == raw


def test_json_lines_cannot_be_unwrapped_in_bulk() -> None:
    unwrapper = detect([as_json(line) for line in LOG])
    assert unwrapper.hot_prefix is None
    assert not unwrapper.bulk_ok
    assert unwrapper.name == "JSON lines"


@given(st.text(max_size=200))
def test_no_text_breaks_it(raw: str) -> None:
    for piece in [*Unwrapper().pieces(1, raw), *detect([raw]).pieces(1, raw)]:
        assert not set(piece.text) & set("\x00\x1b\r\n")


@pytest.mark.parametrize(
    "raw",
    [
        "(" + "a" * 300_000 + "(" + "b" * 300_000,
        "a-1" + " " * 500_000 + "a-" * 100_000,
        "'[2025-07-29 18:14:43] " * 20_000,
        "[0:0<0:0, " * 50_000 + "s]",
        "\x1b[" * 100_000 + "\x1b]" * 100_000,
        "  " * 200_000 + ":",
        '{"a":' * 100_000 + "}",
    ],
)
def test_a_hostile_line_takes_linear_time(raw: str) -> None:
    begun = time.process_time()
    Unwrapper().pieces(1, raw)
    assert time.process_time() - begun < 5


def test_lines_that_grep_shows_around_a_hit_are_numbered_too() -> None:
    wrapped = [
        f"{number}{':' if 'x' in line else '-'}{line}" for number, line in enumerate(LOG, 1207)
    ]
    assert unwrap(wrapped) == LOG
