"""Whatever is given as a log: one clear line or an honest answer, never a traceback.

Exit codes are the contract's: 2 for what cannot be read, 3 for what is no log.
"""

from __future__ import annotations

import gzip
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

Program = Callable[..., "subprocess.CompletedProcess[str]"]

FOUND = (1, "lower --mem-fraction-static from 0.95 to 0.88")


@pytest.fixture(scope="module")
def incident(fixtures: Path) -> bytes:
    return (fixtures / "sglang-glm5.log").read_bytes()


def noise(size: int) -> bytes:
    return random.Random(0).randbytes(size)


def refused(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """Nothing on standard output, one line on standard error, the code."""
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert done.stderr.startswith("forensics: ")
    assert (done.stderr.count("\n"), "Traceback" in done.stderr) == (1, False)
    for word in words:
        assert word in done.stderr


def test_a_missing_file(program: Program, tmp_path: Path) -> None:
    refused(program("analyze", "gone.log", cwd=tmp_path), 2, "gone.log", "no such file")


def test_one_missing_file_among_others(program: Program, tmp_path: Path, fixtures: Path) -> None:
    refused(program("analyze", str(fixtures / "sglang-glm5.log"), "gone.log"), 2, "gone.log")


def test_a_folder_without_logs(program: Program, tmp_path: Path) -> None:
    refused(program("analyze", str(tmp_path)), 2, str(tmp_path))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(program: Program, tmp_path: Path) -> None:
    log = tmp_path / "closed.log"
    log.write_text("[2026-01-01 00:00:00] x\n")
    log.chmod(0)
    refused(program("analyze", str(log)), 2, "closed.log", "ermission")


def test_a_device(program: Program) -> None:
    refused(program("analyze", "/dev/null"), 2, "/dev/null")


NO_LOGS = {
    "empty.log": b"",
    "blank.log": b"\n \t\n\n" * 1000,
    "program.log": b"\x7fELF\x02\x01\x01" + noise(200_000),
    "picture.png": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + noise(50_000),
    "table.csv": b"id,name,value\n" + b"".join(b"%d,n,0.%d\n" % (n, n) for n in range(1000)),
    "guide.md": b"# A guide\n\nTo install it, run `pip install thing`.\n\n- one\n- two\n" * 50,
    "nul.log": b"\0" * 100_000,
}


@pytest.mark.parametrize("name", NO_LOGS)
@pytest.mark.parametrize("command", ["analyze", "coverage"])
def test_what_is_no_log(program: Program, tmp_path: Path, name: str, command: str) -> None:
    (tmp_path / name).write_bytes(NO_LOGS[name])
    refused(program(command, name, cwd=tmp_path), 3)


def test_no_log_on_standard_input(program: Program) -> None:
    refused(program("analyze", "-"), 3)


@pytest.mark.parametrize("kept", [5, 9])
def test_an_archive_that_gives_nothing(
    program: Program, tmp_path: Path, incident: bytes, kept: int
) -> None:
    (tmp_path / "cut.log.gz").write_bytes(gzip.compress(incident)[:kept])
    refused(program("analyze", "cut.log.gz", cwd=tmp_path), 2, "cut.log.gz")


def test_an_archive_cut_short_is_read_as_far_as_it_goes(
    program: Program, tmp_path: Path, incident: bytes
) -> None:
    packed = gzip.compress(incident)
    (tmp_path / "cut.log.gz").write_bytes(packed[: len(packed) * 3 // 4])
    done = program("analyze", "cut.log.gz", cwd=tmp_path)
    assert "Traceback" not in done.stderr
    assert "0.96 GiB" in done.stdout or "UNFINISHED" in done.stdout
    assert "cut.log.gz" in done.stdout.splitlines()[-1] or "cut" in done.stdout


def crlf(log: bytes) -> bytes:
    return log.replace(b"\r", b"").replace(b"\n", b"\r\n")


STRANGE: dict[str, Callable[[bytes], bytes]] = {
    "crlf.log": crlf,
    "mark.log": lambda log: b"\xef\xbb\xbf" + log,
    "utf16.log": lambda log: log.decode().encode("utf-16"),
    "nul-in-lines.log": lambda log: log.replace(b"\n", b"\0\n"),
    "nul-block.log": lambda log: log + b"\0" * 50_000,
    "not-utf8.log": lambda log: log.replace(b"Killed", b"\xc3\x28\xff Killed"),
    "no-newline.log": lambda log: log.rstrip(b"\n"),
    "blank-lines.log": lambda log: log.replace(b"\n[", b"\n\n\n["),
    "binary-tail.log": lambda log: log + noise(50_000),
    "packed.log.gz": gzip.compress,
    "packed.log.zst": zstandard.compress,
    "packed-without-saying.log": gzip.compress,
}


@pytest.mark.parametrize("name", STRANGE)
def test_a_log_in_a_strange_form(
    program: Program, tmp_path: Path, incident: bytes, name: str
) -> None:
    (tmp_path / name).write_bytes(STRANGE[name](incident))
    done = program("analyze", name, cwd=tmp_path)
    assert (done.returncode, FOUND[1] in done.stdout) == (FOUND[0], True), done.stdout[:300]
    assert done.stderr == ""


def test_a_log_through_a_fifo(program: Program, tmp_path: Path, incident: bytes) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=(incident,), daemon=True)
    writer.start()
    done = program("analyze", str(fifo))
    writer.join(10)
    assert (done.returncode, FOUND[1] in done.stdout) == (FOUND[0], True)


def test_a_fifo_in_a_folder_is_left_alone(
    program: Program, tmp_path: Path, incident: bytes
) -> None:
    (tmp_path / "a.log").write_bytes(incident)
    os.mkfifo(tmp_path / "b.log")
    assert program("analyze", str(tmp_path), timeout=30).returncode == 1


def spent(argv: list[str], cwd: Path) -> tuple[int, int, float]:
    """Exit code, peak memory in MiB and processor seconds of a run of the program."""
    command = [sys.executable, "-m", "forensics", *argv]
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, used.ru_maxrss // 1024, used.ru_utime + used.ru_stime


def test_a_line_of_100_megabytes(tmp_path: Path, incident: bytes) -> None:
    with (tmp_path / "long.log").open("wb") as file:
        file.write(incident + b"[2026-02-18 23:59:59 TP0] ")
        for _ in range(100):
            file.write(b"endless " * 125_000)
    code, peak_mib, seconds = spent(["analyze", "-q", "long.log"], tmp_path)
    assert code == FOUND[0]
    assert peak_mib < 600
    assert seconds < 30


@pytest.mark.parametrize("command", ["analyze", "events"])
def test_a_reader_that_leaves_early(root: Path, command: str) -> None:
    line = f"{sys.executable} -m forensics {command} fixtures/sglang-glm5.log | head -1"
    done = subprocess.run(
        ["bash", "-c", f"{line}; exit ${{PIPESTATUS[0]}}"],
        capture_output=True, text=True, check=False, cwd=root, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert (done.stdout.count("\n"), done.stderr) == (1, "")
    assert done.returncode in (0, 1)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&-"])
def test_closed_standard_streams(root: Path, closed: str) -> None:
    command = f"{sys.executable} -m forensics analyze --quiet fixtures/sglang-glm5.log {closed}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, cwd=root
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("FAILED") == (">&-" not in closed.replace("2>&-", ""))


def test_a_full_disk(root: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    command = f"{sys.executable} -m forensics analyze fixtures/sglang-glm5.log > /dev/full"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, cwd=root
    )
    told = "forensics: cannot write the output: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, told)


def test_a_binary_is_named_as_one(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "program"
    path.write_bytes(b"\x7fELF\x02\x01\x01" + bytes(64))
    command = [sys.executable, "-m", "forensics", "analyze", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    told = f"forensics: {path}: binary data; not read as a log\n"
    assert (done.returncode, done.stderr) == (3, told)
