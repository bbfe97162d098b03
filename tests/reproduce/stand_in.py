"""Stands in for a server: says what a genuine one said, and behaves as its flags tell.

    stand_in.py LOG [--until WORD] [--pause WORD] [--then WAY] [--port N] [flags of SGLang]

LOG is replayed up to the first line that holds WORD (to its end without one); `--tight LOG`
names another one for when `--mem-fraction-static` is above 0.95. Then it serves, hangs or ends.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Server(BaseHTTPRequestHandler):
    """`/health`, and `/generate` in the way that was asked for."""

    way = "serve"
    key: str | None = None

    def do_GET(self) -> None:
        self._say(200, {})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.key and self.headers.get("Authorization") != f"Bearer {self.key}":
            self._say(401, {"error": "Unauthorized"})
        elif self.way == "refuse" or (
            self.way == "refuse-long" and len(body.get("input_ids", [])) > 999
        ):
            self._say(500, {"error": "out of luck"})
        elif self.way == "die-serving":
            sys.stdout.write(Path(os.environ["DYING"]).read_text())
            sys.stdout.flush()
            os._exit(1)
        elif self.way == "answer-nothing":
            time.sleep(600)
        else:
            self._say(200, {"text": "Paris", "output_ids": [7]})

    def _say(self, status: int, body: dict[str, object]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words: object) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("log", type=Path)
    parser.add_argument("--tight", type=Path)
    parser.add_argument("--until")
    parser.add_argument("--pause")
    parser.add_argument("--then", default="serve")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--api-key")
    parser.add_argument("--pids", type=Path)
    parser.add_argument("--mem-fraction-static", type=float, default=0.5)
    asked, _ = parser.parse_known_args()
    if "ignore-term" in asked.then:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
    if asked.pids:
        if "escape" in asked.then:
            escape(asked.pids)
        with asked.pids.open("a") as file:
            file.write(f"{os.getpid()}\n")
    if asked.tight and asked.mem_fraction_static > 0.95:
        say(asked.tight.read_text(), None)
        sys.exit(1)
    text = asked.log.read_text()
    if "last-words" in asked.then:
        rest = text[text.index(asked.until) :].split("\n", 1)[1]
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: (say(rest, None), os._exit(0)))
    if asked.pause:
        said, _, text = text.partition(asked.pause)
        say(said + asked.pause + "\n", None)
        time.sleep(6)
    say(text, asked.until)
    behave(asked)


def say(text: str, until: str | None) -> None:
    if until is not None:
        end = text.index(until)
        text = text[: text.index("\n", end) + 1]
    sys.stderr.write(text)
    sys.stderr.flush()


def escape(pids: Path) -> None:
    """A grandchild of its own session, whose parent is gone and whose environment is wiped."""
    code = (
        f"import os,sys,time; open({str(pids)!r},'a').write(f'{{os.getpid()}}\\n'); time.sleep(300)"
    )
    middle = "import subprocess,sys,time\n"
    middle += f"subprocess.Popen([sys.executable,'-c',{code!r}],env={{}},start_new_session=True)\n"
    middle += "time.sleep(3)"
    subprocess.Popen([sys.executable, "-c", middle], env={}, start_new_session=True)
    deadline = time.monotonic() + 20
    while not pids.exists() and time.monotonic() < deadline:
        time.sleep(0.02)


def behave(asked: argparse.Namespace) -> None:
    way = asked.then.split("+")[0]
    if way.startswith("exit-"):
        sys.exit(int(way.removeprefix("exit-")))
    while way == "chatter":
        say("still there\n", None)
        time.sleep(0.5)
    if way == "hang":
        time.sleep(300)
    Server.way, Server.key = way, asked.api_key
    server = ThreadingHTTPServer(("127.0.0.1", asked.port), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    time.sleep(300)


if __name__ == "__main__":
    main()
