"""Requests to a server that a trial brought up: is it healthy, does it answer, does it bear load.

Load goes to the server's own `/generate` with token numbers instead of text, so that the lengths
are exact whatever the tokenizer.
"""

from __future__ import annotations

import http.client
import json
import random
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from forensics.launch.command import read_flags
from forensics.reproduce.model import Goal

HEALTH_S, GENERATE_S, LOAD_S = 60.0, 180.0, 900.0
"""How long a server may take for its health, one answer, and a burst."""

_RETRY_S = 0.5
_MOST_THREADS = 256
_NEW_TOKENS = 128
_UNCUT_TOKENS = 65536
_DEFAULT_PORT = 30000
_WILDCARDS = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1", "[::]": "::1"}


@dataclass(frozen=True, slots=True)
class Target:
    """Where a server listens, and what its requests need."""

    host: str = "127.0.0.1"
    port: int = _DEFAULT_PORT
    api_key: str | None = field(default=None, repr=False)
    tls: bool = False
    context_len: int | None = None
    """The longest prompt with its answer, tokens."""
    chunk: int | None = None
    """Tokens of one prefill chunk; not above 0: prompts are not cut."""
    embedding: bool = False
    alone: bool = True
    """False for one half of a disaggregated pair, which generates nothing by itself."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a probe."""

    ok: bool
    said: str
    """One sentence."""


def target_of(
    command: Sequence[str], flags: Mapping[str, Any], context_len: int | None = None
) -> Target:
    """Where the server of a command listens; `flags` are those that its log shows, resolved."""
    typed = dict(read_flags(list(command), None))
    seen: dict[str, Any] = {
        **flags,
        **{name: typed[name] for name in ("host", "port") if name in typed},
    }
    key = _raw(command, "--api-key")
    port, chunk = seen.get("port"), seen.get("chunked_prefill_size")
    host = str(seen.get("host") or "127.0.0.1")
    return Target(
        host=_WILDCARDS.get(host, host).strip("[]"),
        port=port if isinstance(port, int) else _DEFAULT_PORT,
        api_key=key,
        tls=bool(seen.get("ssl_certfile") or typed.get("ssl_certfile")),
        context_len=context_len,
        chunk=chunk if isinstance(chunk, int) else None,
        embedding=bool(seen.get("is_embedding")),
        alone=str(seen.get("disaggregation_mode") or "null") in ("null", "None"),
    )


def _raw(command: Sequence[str], flag: str) -> str | None:
    """The last value of a flag as it stands in the command: the log's is redacted."""
    found = None
    for word, following in zip(command, [*command[1:], ""], strict=True):
        if word == flag:
            found = following
        elif word.startswith(f"{flag}="):
            found = word.partition("=")[2]
    return found or None


class Probe:
    """Asks in a thread, while the log is still followed; `answer` is None until it is done."""

    def __init__(self, goal: Goal, target: Target, load: int | None = None) -> None:
        self.answer: Answer | None = None
        self._work = _work(goal, target, load)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.answer = self._work()
        except Exception as error:
            self.answer = Answer(False, f"the probe failed: {type(error).__name__}: {error}")


def _work(goal: Goal, target: Target, load: int | None) -> Callable[[], Answer]:
    if goal == "health" or not target.alone:
        return lambda: health(target)
    if goal == "load":
        return lambda: burst(target, load or 1)
    return lambda: generate(target)


def health(target: Target) -> Answer:
    """`GET /health` until it says 200."""
    deadline = time.monotonic() + HEALTH_S
    while True:
        status, text = _ask(target, "GET", "/health", None, 20.0)
        if status == 200:
            return Answer(True, "/health says 200")
        if time.monotonic() > deadline:
            return Answer(False, f"/health says {status or text} after {HEALTH_S:g} s")
        time.sleep(_RETRY_S)


def generate(target: Target) -> Answer:
    """One real request, answered with something."""
    path = "/encode" if target.embedding else "/generate"
    body: dict[str, Any] = {"text": "The capital of France is"}
    if not target.embedding:
        body["sampling_params"] = {"max_new_tokens": 8, "temperature": 0}
    status, text = _ask(target, "POST", path, body, GENERATE_S)
    if status != 200:
        return Answer(False, f"{path} says {status or 'nothing'}: {text[:200]}")
    return Answer(True, f"{path} answered a real request")


def burst(target: Target, requests: int) -> Answer:
    """So many requests at once, of short and long prompts."""
    deadline = time.monotonic() + LOAD_S
    bodies = [_body(target, number) for number in range(requests)]
    path = "/encode" if target.embedding else "/generate"

    def one(body: dict[str, Any]) -> tuple[int | None, str]:
        left = deadline - time.monotonic()
        return _ask(target, "POST", path, body, left) if left > 0 else (None, "no time was left")

    with ThreadPoolExecutor(min(requests, _MOST_THREADS)) as pool:
        answers = list(pool.map(one, bodies))
    bad = [(status, text) for status, text in answers if status != 200]
    if not bad:
        return Answer(True, f"all {requests} requests of the burst were answered")
    status, text = bad[0]
    return Answer(
        False,
        f"{len(bad)} of {requests} requests of the burst failed, "
        f"the first with {status or 'no answer'}: {text[:200]}",
    )


def prompt_lengths(target: Target) -> list[int]:
    """Lengths that a burst goes through: long, middle and short.

    Two chunks show all that a prefill takes. Where prompts are not cut, it takes the more the
    longer they are.
    """
    most = max((target.context_len or 2048) - _NEW_TOKENS - 16, 8)
    chunk = target.chunk
    wanted = _UNCUT_TOKENS if chunk is not None and chunk <= 0 else max(2 * (chunk or 0), 4096)
    longest = min(most, wanted)
    return [longest, max(longest // 8, 8), min(64, most)]


def _body(target: Target, number: int) -> dict[str, Any]:
    lengths = prompt_lengths(target)
    dice = random.Random(number)  # other prompts each time, or the prefix cache answers
    tokens = [dice.randrange(10, 250) for _ in range(lengths[number % len(lengths)])]
    sampling = {"max_new_tokens": _NEW_TOKENS, "temperature": 0, "ignore_eos": True}
    if target.embedding:
        return {"input_ids": tokens}
    return {"input_ids": tokens, "sampling_params": sampling}


def _ask(
    target: Target, method: str, path: str, body: dict[str, Any] | None, limit_s: float
) -> tuple[int | None, str]:
    """Status and text of an answer; without an answer, None and the reason."""
    headers = {"Content-Type": "application/json"}
    if target.api_key:
        headers["Authorization"] = f"Bearer {target.api_key}"
    connection = _connection(target, limit_s)
    try:
        connection.request(method, path, json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        return answer.status, answer.read(65536).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        return None, f"{type(error).__name__}: {error}"
    finally:
        connection.close()


def _connection(target: Target, limit_s: float) -> http.client.HTTPConnection:
    if not target.tls:
        return http.client.HTTPConnection(target.host, target.port, timeout=limit_s)
    # The server is the one just started here; its certificate is often its own.
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return http.client.HTTPSConnection(target.host, target.port, timeout=limit_s, context=context)
