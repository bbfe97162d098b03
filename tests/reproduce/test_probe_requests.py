"""Requests to a server under trial: where they go, how long their prompts are."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer

import pytest

from forensics.reproduce import probe_requests
from forensics.reproduce.probe_requests import Probe, Target, burst, generate, prompt_lengths
from forensics.reproduce.probe_requests import target_of as target
from tests.reproduce.conftest import free_port
from tests.reproduce.stand_in import Server


@pytest.mark.parametrize(
    ("command", "flags", "host", "port"),
    [
        ("", {}, "127.0.0.1", 30000),
        ("--port 8000", {}, "127.0.0.1", 8000),
        ("--port=8000 --host=0.0.0.0", {}, "127.0.0.1", 8000),
        ("--host :: --port 1", {}, "::1", 1),
        ("--host ::", {"port": 31000}, "::1", 31000),
        ("--host 10.0.0.7", {"host": "127.0.0.1", "port": 5}, "10.0.0.7", 5),
        ("", {"host": "0.0.0.0", "port": 31000}, "127.0.0.1", 31000),
    ],
)
def test_where_a_server_listens(
    command: str, flags: dict[str, object], host: str, port: int
) -> None:
    found = target(["python3", "-m", "sglang.launch_server", *command.split()], flags)
    assert (found.host, found.port) == (host, port)


@pytest.mark.parametrize("words", [["--api-key", "k-1"], ["--api-key=k-0", "--api-key=k-1"]])
def test_the_key_is_that_of_the_command_and_is_not_shown(words: list[str]) -> None:
    found = target(["serve", *words], {"api_key": "[redacted]"})
    assert found.api_key == "k-1"
    assert "k-1" not in repr(found)


def test_half_of_a_pair_generates_nothing_by_itself() -> None:
    assert not target(["serve"], {"disaggregation_mode": "prefill"}).alone
    assert target(["serve"], {"disaggregation_mode": "null"}).alone


@pytest.mark.parametrize(
    ("context", "chunk", "longest"),
    [
        (131072, 8192, 16384),
        (131072, None, 4096),
        (131072, -1, 65536),
        (8192, -1, 8048),
        (2048, 8192, 1904),
        (None, None, 1904),
    ],
)
def test_a_burst_reaches_two_chunks_or_all_that_fits(
    context: int | None, chunk: int | None, longest: int
) -> None:
    lengths = prompt_lengths(Target(context_len=context, chunk=chunk))
    assert lengths[0] == longest
    assert lengths == sorted(lengths, reverse=True)


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr(ThreadingHTTPServer, "request_queue_size", 128)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def test_all_requests_of_a_burst_are_sent(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def say(self: Server, status: int, body: dict[str, object]) -> None:
        seen.append(status)
        say_all(self, status, body)

    say_all = Server._say
    monkeypatch.setattr(Server, "_say", say)
    answer = burst(Target(port=port), 40)
    assert answer.ok
    assert len(seen) == 40


def test_nobody_there() -> None:
    answer = generate(Target(port=free_port()))
    assert not answer.ok
    assert "refused" in answer.said


def test_an_answer_that_is_no_http() -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()

        def talk() -> None:
            peer, _ = one.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(b"\x1b]0;hello\x07 this is no HTTP\r\n\r\n")

        threading.Thread(target=talk, daemon=True).start()
        assert not generate(Target(port=one.getsockname()[1])).ok


def test_an_error_of_the_probe_itself_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(target: Target) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr(probe_requests, "generate", broken)
    probe = Probe("generate", Target())
    probe._thread.join(10)
    assert probe.answer is not None
    assert not probe.answer.ok
    assert "ZeroDivisionError" in probe.answer.said
