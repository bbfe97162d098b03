"""Launches elsewhere: every argument arrives as it is, and nothing is left there."""

from __future__ import annotations

import csv
import getpass
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forensics.reproduce.transport import Transport, TransportError

NASTY = [
    *("", " ", "a b", "it's", 'say "x"', "$(touch mark)", "`touch mark`", "; touch mark", "a\nb"),
    *(
        "--",
        "-x",
        "--tp=2",
        "\\",
        "\\n",
        "*",
        "~",
        "{1,2}",
        "!",
        "#",
        "$HOME",
        "ü 🙂",
        "&",
        "|",
        ">x",
    ),
    *('{"a": [1, "b c"]}', "a=b", "\t", "%s", "'", '"', "<", "(", "end\n", "\r"),
]
PRINTER = (
    "import os, sys, json;"
    "print(json.dumps([sys.argv[1:], os.environ.get('A'), os.environ.get('B')]))"
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ssh:host", Transport("ssh", "host")),
        ("ssh:me@host.example:2222", Transport("ssh", "me@host.example", port=2222)),
        ("ssh:[fe80::1%eth0]:22", Transport("ssh", "fe80::1%eth0", port=22)),
        ("docker:lmsysorg/sglang:v0.5.9", Transport("docker", "lmsysorg/sglang:v0.5.9")),
        ("docker:r:5000/i@sha256:ab", Transport("docker", "r:5000/i@sha256:ab")),
        ("docker-exec:my_sglang", Transport("docker-exec", "my_sglang")),
        ("kube:pod-0", Transport("kube", "pod-0")),
        ("kube:ns/pod-0", Transport("kube", "pod-0", namespace="ns")),
        ("kube:ns/pod-0/main", Transport("kube", "pod-0", namespace="ns", container="main")),
        ("kube:/pod-0/main", Transport("kube", "pod-0", container="main")),
    ],
)
def test_places(text: str, expected: Transport) -> None:
    found = Transport.parse(text)
    assert found == expected
    assert found.target in found.describe()
    assert found.prefix()[0] in ("ssh", "docker", "kubectl")


@pytest.mark.parametrize(
    "text",
    [
        *("", "host", "ssh", "ssh:", "ssh:-oProxyCommand=id", "ssh:a b", "ssh:-x@host", "ssh:a;id"),
        *("ssh:me@-host", "ssh:host:0", "ssh:host:99999", "ssh:host\n", "docker:", "docker:-v"),
        *("docker:a b", "docker:$(id)", "docker-exec:-it", "docker-exec:a/b", "kube:", "kube:-n"),
        *("kube:a/b/c/d", "kube:A", "kube:a//c", "ftp:host", "docker-exec:"),
    ],
)
def test_places_that_are_refused(text: str) -> None:
    with pytest.raises(TransportError) as caught:
        Transport.parse(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("place", ["ssh:h", "docker:i", "docker-exec:c", "kube:p"])
def test_what_cannot_be_passed_is_refused(place: str) -> None:
    transport = Transport.parse(place)
    for argv, env in (
        (["a\0b"], {}),
        (["a"], {"A B": "1"}),
        (["a"], {"A": "\0"}),
        (["a"], {"-u": ""}),
    ):
        with pytest.raises(TransportError):
            transport.wrap(argv, env)
    with pytest.raises(TransportError):
        transport.ask(["a"], {}, ["x=y"])


STAND_IN = """#!{python}
# Reads its arguments as {name} does, and runs the command itself.
import os, sys
words = sys.argv[1:]
name = {name!r}
switches = {{"-i", "--rm", "--init", "-T"}}
valued = {{"--network", "--ipc", "--shm-size", "--env", "--gpus", "--mount", "-o", "-p",
          "--namespace", "--container"}}
def options():
    while words and words[0].startswith("-") and words[0] != "--":
        word = words.pop(0)
        if word in valued:
            words.pop(0)
        elif word not in switches:
            sys.exit(f"unknown flag {{word}}")
if name == "ssh":
    options()
    assert words.pop(0) == "--"
    host, command = words
    os.execv("/bin/sh", ["sh", "-c", command])
assert words.pop(0) in ("run", "exec")
options()
target = words.pop(0)
if name == "kubectl":
    options()
    assert words.pop(0) == "--"
os.execvp(words[0], words)
"""


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """ssh, docker and kubectl that run the command here."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("ssh", "docker", "kubectl"):
        tool = folder / name
        tool.write_text(STAND_IN.format(python=sys.executable, name=name))
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.chdir(tmp_path)
    return folder


PLACES = ["ssh:host", "docker:image", "docker-exec:c", "kube:ns/pod/main"]


@pytest.mark.parametrize("place", PLACES)
def test_arguments_arrive(place: str, tools: Path, tmp_path: Path) -> None:
    argv = [sys.executable, "-c", PRINTER, *NASTY]
    env = {"A": 'x\'y "z" $(touch mark)\n;'}
    words = Transport.parse(place).wrap(argv, env, ["B"])
    here = {**os.environ, "B": "from here"}
    done = subprocess.run(words, capture_output=True, text=True, env=here, timeout=60, check=True)
    assert done.stdout.strip() == _printed(NASTY, env["A"])
    assert not (tmp_path / "mark").exists()


def _printed(words: list[str], a: str | None) -> str:
    return json.dumps([words, a, None])


@pytest.mark.parametrize("place", PLACES)
def test_a_question_arrives(place: str, tools: Path) -> None:
    words = Transport.parse(place).ask([sys.executable, "-c", PRINTER, *NASTY], {"A": "1"}, ["B"])
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == _printed(NASTY, "1")


@pytest.mark.parametrize(("status", "code"), [("sys.exit(3)", 3), ("os.kill(os.getpid(), 9)", 137)])
def test_the_exit_status_comes_back(status: str, code: int, tools: Path) -> None:
    argv = [sys.executable, "-c", f"import os, sys; {status}"]
    words = Transport.parse("docker-exec:c").wrap(argv, {})
    assert subprocess.run(words, timeout=60, check=False).returncode == code


SERVER = """
import os, signal, subprocess, sys, time
worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
if len(sys.argv) > 2:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[1], "w").write(f"{os.getpid()} {worker.pid}")
time.sleep(300)
"""


def started(words: list[str], file: Path) -> tuple[subprocess.Popen[bytes], list[int]]:
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=True)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if file.exists() and len(pids := file.read_text().split()) == 2:
            return process, [int(pid) for pid in pids]
        time.sleep(0.05)
    raise AssertionError("the server did not start")


def are_gone(pids: list[int], within_s: float = 40) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if not any(_lives(pid) for pid in pids):
            return True
        time.sleep(0.05)
    return False


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except (OSError, IndexError):
        return False
    return state not in "ZX"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("place", ["ssh:host", "docker-exec:c"])
def test_what_runs_there_ends_with_us(
    place: str, number: signal.Signals, tools: Path, tmp_path: Path
) -> None:
    """Its worker too: it is known by the mark that a trial has."""
    argv = [sys.executable, "-c", SERVER, str(tmp_path / "pids")]
    words = Transport.parse(place).wrap(argv, {"FORENSICS_TRIAL": "c0ffee" * 5 + "aa"})
    process, pids = started(words, tmp_path / "pids")
    os.kill(process.pid, number)
    process.wait(timeout=60)
    assert are_gone(pids)


@pytest.mark.parametrize("place", ["docker:some/image:tag"])
def test_a_new_container_sees_what_it_needs(place: str, tmp_path: Path) -> None:
    model = tmp_path / 'mo,del "x"'
    snapshot = tmp_path / "hub" / "models--org--m" / "snapshots" / "abc"
    model.mkdir()
    snapshot.mkdir(parents=True)
    argv = ["python3", "-m", "sglang.launch_server", "--model-path", str(model)]
    argv += ["--tokenizer-path", str(snapshot), "--download-dir", str(tmp_path), "--tp", "8"]
    words = Transport.parse(place).wrap(argv, {"HF_HOME": str(tmp_path)})
    at = words.index("some/image:tag")
    options = words[:at]
    assert {"--rm", "-i", "--init", "--gpus", "--ipc", "--network", "--shm-size"} <= set(options)
    mounts = [next(csv.reader([options[i + 1]])) for i, w in enumerate(options) if w == "--mount"]
    shown = {tuple(mount[1:]) for mount in mounts}
    assert (f"source={model}", f"target={model}", "readonly") in shown
    whole = snapshot.parents[1]
    assert (f"source={whole}", f"target={whole}", "readonly") in shown
    assert (f"source={tmp_path}", f"target={tmp_path}") in shown


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=10)))
def test_the_remote_shell_reads_the_words_back(words: list[str]) -> None:
    command = Transport.parse("ssh:h").ask(["printf", "%s\\0", *words, "end"], {})[-1]
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=True)
    assert done.stdout.decode() == "\0".join([*words, "end", ""])


# Real sshd on loopback


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _sshd() -> str | None:
    return shutil.which("sshd") or next(
        (path for path in ("/usr/sbin/sshd", "/usr/local/sbin/sshd") if Path(path).exists()), None
    )


@pytest.fixture
def ssh_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    sshd, client, keygen = _sshd(), shutil.which("ssh"), shutil.which("ssh-keygen")
    if sshd is None or client is None or keygen is None:
        pytest.skip("needs ssh, ssh-keygen and sshd")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    for name in ("host", "me"):
        subprocess.run([keygen, "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / name], check=True)
    shutil.copy(tmp_path / "me.pub", tmp_path / "authorized")
    port = _free_port()
    (tmp_path / "sshd_config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {tmp_path}/host\nPidFile none\n"
        f"AuthorizedKeysFile {tmp_path}/authorized\nStrictModes no\nUsePAM no\n"
        "PasswordAuthentication no\nPermitRootLogin yes\n"
    )
    (tmp_path / "ssh_config").write_text(
        f"Host *\n  User {getpass.getuser()}\n  IdentityFile {tmp_path}/me\n  LogLevel ERROR\n"
        f"  UserKnownHostsFile {tmp_path}/known\n  StrictHostKeyChecking no\n  IdentitiesOnly yes\n"
    )
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ssh").write_text(f'#!/bin/sh\nexec {client} -F {tmp_path}/ssh_config "$@"\n')
    (folder / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    with (tmp_path / "sshd.log").open("w") as log:
        command = [sshd, "-D", "-e", "-f", tmp_path / "sshd_config"]
        server = subprocess.Popen(command, stderr=log, stdin=subprocess.DEVNULL)
    try:
        place = f"ssh:127.0.0.1:{port}"
        if not _answers(place):
            pytest.skip(f"sshd does not let us in: {(tmp_path / 'sshd.log').read_text()[-300:]}")
        yield place
    finally:
        server.terminate()
        server.wait(timeout=20)


def _answers(place: str) -> bool:
    words = Transport.parse(place).ask(["true"], {})
    for _ in range(50):
        if subprocess.run(words, capture_output=True, check=False, timeout=20).returncode == 0:
            return True
        time.sleep(0.1)
    return False


def test_arguments_arrive_through_real_ssh(ssh_place: str, tmp_path: Path) -> None:
    env = {"A": 'x\'y "z" $(touch mark)\n;', "LANG": "C.UTF-8"}
    argv = [sys.executable, "-c", PRINTER, *NASTY]
    words = Transport.parse(ssh_place).wrap(argv, env, ["B"])
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == _printed(NASTY, env["A"])
    assert not (Path.home() / "mark").exists()


@pytest.mark.parametrize(
    ("number", "stubborn"),
    [(signal.SIGTERM, False), (signal.SIGKILL, False), (signal.SIGKILL, True)],
)
def test_a_server_behind_real_ssh_ends_with_us(
    ssh_place: str, number: signal.Signals, stubborn: bool, tmp_path: Path
) -> None:
    """With its worker, which carries no mark: all of its session ends."""
    argv = [sys.executable, "-c", SERVER, str(tmp_path / "pids"), *["x"][: int(stubborn)]]
    process, pids = started(Transport.parse(ssh_place).wrap(argv, {}), tmp_path / "pids")
    os.kill(process.pid, number)
    process.wait(timeout=60)
    assert are_gone(pids, within_s=60)
