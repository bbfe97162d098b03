"""Merging of streams, hooks, package versions, progress bars."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

from forensics.live.bars import bar_at_work
from forensics.live.hook import FindingHook
from forensics.live.merging import LineMerger
from forensics.live.progress import state_of
from forensics.live.session import Session
from forensics.live.surroundings import surroundings_of, versions_of
from tests.live.conftest import FIXTURES


def test_lines_of_two_streams_are_not_torn_apart() -> None:
    file = io.BytesIO()
    merger = LineMerger(file)
    merger.write("stdout", b"one ")
    merger.write("stderr", b"bar 10%\r")
    merger.write("stdout", b"line\nnext")
    merger.write("stderr", b"bar 20%\n")
    merger.release(everything=True)
    assert file.getvalue() == b"one line\nbar 10%\rbar 20%\nnext"


def test_an_unfinished_line_that_had_to_be_written_is_ended_first() -> None:
    file = io.BytesIO()
    merger = LineMerger(file)
    merger.write("stderr", b"x" * 70_000)
    merger.write("stdout", b"line\n")
    merger.write("stderr", b"rest\n")
    assert file.getvalue() == b"x" * 70_000 + b"\nline\nrest\n"


def test_a_hook_gets_the_finding_and_its_failures_are_reported(tmp_path: Path) -> None:
    got, said = tmp_path / "got", list[str]()
    code = f"import sys; open({str(got)!r}, 'w').write(sys.stdin.read())"
    hook = FindingHook([sys.executable, "-c", code], said.append)
    hook.call('{"rule": "x; rm -rf ~"}')
    hook.close()
    assert json.loads(got.read_text()) == {"rule": "x; rm -rf ~"}
    for command in (["/no/such/hook"], [sys.executable, "-c", "raise SystemExit(3)"]):
        hook = FindingHook(command, said.append)
        hook.call("{}")
        hook.close()
    assert "No such file" in said[0]
    assert "exit status 3" in said[1]


def test_a_hook_that_hangs_is_ended() -> None:
    said: list[str] = []
    hook = FindingHook([sys.executable, "-c", "import time; time.sleep(60)"], said.append, 0.2)
    hook.call("{}")
    hook.close()
    assert "ended after 0.2 s" in said[0]


def test_versions_are_read_from_the_folders_of_the_launch(tmp_path: Path) -> None:
    packages = tmp_path / "lib/python3.12/site-packages"
    for name in ("sglang-0.5.8.post1", "torch-2.9.1+cu129", "transformers-5.2.0", "rich-14.0.0"):
        (packages / f"{name}.dist-info").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin/python3"
    python.write_text("")
    python.chmod(0o755)
    server = tmp_path / "bin/sglang"
    server.write_text(f"#!{python}\n")
    server.chmod(0o755)
    wanted = {"sglang": "0.5.8.post1", "torch": "2.9.1+cu129", "transformers": "5.2.0"}
    assert versions_of(str(python)) == wanted
    assert versions_of(str(server)) == wanted
    assert versions_of("/no/such/python") == {}


def test_folders_of_the_python_path_come_before_the_interpreters_own(tmp_path: Path) -> None:
    own = tmp_path / "venv/lib/python3.12/site-packages/transformers-5.17.0.dist-info"
    added = tmp_path / "site/transformers-5.12.1.dist-info"
    for folder in (own, added, tmp_path / "site/sglang-0.5.16.dist-info"):
        folder.mkdir(parents=True)
    python = tmp_path / "venv/bin/python3"
    python.parent.mkdir()
    python.touch(mode=0o755)
    found = versions_of(str(python), None, f"{tmp_path / 'missing'}:{tmp_path / 'site'}")
    assert found == {"transformers": "5.12.1", "sglang": "0.5.16"}


def test_the_environment_without_secrets_and_strangers() -> None:
    env = {"NCCL_DEBUG": "INFO", "HF_TOKEN": "hf_x", "PATH": "/bin", "SGLANG_API_KEY": "k"}
    assert surroundings_of(["/no/such"], env).env == {"NCCL_DEBUG": "INFO"}


def load_until(word: bytes) -> Session:
    data = (FIXTURES / "sglang-glm5.log").read_bytes()
    session = Session(["log"])
    session.feed(0, data[: data.index(b"\n", data.index(word)) + 1])
    return session


def test_progress_comes_from_the_bars_own_numbers() -> None:
    report = load_until(b"64/83").snapshot().reports[0]
    bar = state_of(report, [], 1.0).bar
    assert bar
    assert (bar.what, bar.done, bar.total, bar.left_s) == ("shards", 64, 83, 73.0)


def test_a_bar_that_is_still_being_written() -> None:
    report = load_until(b"Load weight begin").snapshot().reports[0]
    line = (
        b"\rCapturing batches (bs=4 avail_mem=5.20 GB):  50%|##   | 26/52 [00:10<00:12,  2.1it/s]"
    )
    bar = bar_at_work(report.run, [line], "graph_capture")
    assert bar
    assert (bar.done, bar.total, bar.left_s) == (26, 52, 12.0)


def test_a_rank_that_is_late_is_named_with_its_delay() -> None:
    data = (FIXTURES / "sglang-glm5.log").read_bytes().split(b"\n")
    session = Session(["log"])
    for line in data[: next(n for n, text in enumerate(data) if b"Memory pool end" in text)]:
        if not (b" TP7]" in line and b"Load weight end" in line):
            session.feed(0, line + b"\n")
    state = state_of(session.snapshot().reports[0], [], 40.0)
    assert [(rank.tag, rank.behind_at) for rank in state.late] == [("TP7", "load_weight_end")]
    assert state.late[0].behind_s
    assert 40 <= state.late[0].behind_s <= 50
