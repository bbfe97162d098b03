"""The page in a real browser: what it shows, that nothing of a log runs, that nothing is fetched.

Skipped where no Chromium is found; CHROMIUM names another one.
"""

from __future__ import annotations

import http.server
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Render = Callable[..., str]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
]


def browse(page: Path, *options: str, cwd: Path | None = None) -> str:
    """The page's document after it was shown, and its scripts, if any, were run."""
    done = subprocess.run(
        [
            str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--disable-extensions",
            f"--user-data-dir={page.parent / 'profile'}", "--virtual-time-budget=3000",
            "--window-size=1100,1600", *options, page.as_uri(),
        ],
        capture_output=True, text=True, check=True, timeout=90, stdin=subprocess.DEVNULL, cwd=cwd,
    )  # fmt: skip
    return done.stdout


@pytest.fixture
def page(report: Render, tmp_path: Path) -> Callable[[Path], Path]:
    def write(log: Path) -> Path:
        path = tmp_path / "report.html"
        path.write_text(report(log, "--format", "html"))
        return path

    return write


def title(document: str) -> str:
    found = re.search(r"<title>(.*?)</title>", document)
    return found[1] if found else ""


def test_the_incident_is_told(page: Callable[[Path], Path], root: Path) -> None:
    document = browse(page(root / "fixtures" / "sglang-glm5.log"), "--dump-dom")
    assert title(document) == "SGLang launch failed while capturing CUDA graphs"
    assert "<h2>Root cause</h2>" in document
    assert "at least 1.40 GiB needed, 0.96 GiB free" in document
    assert 'class="p-graph_capture"' in document
    assert '<text class="on"' in document


def test_the_browser_would_run_a_script_at_all(tmp_path: Path) -> None:
    path = tmp_path / "control.html"
    path.write_text("<title>x</title><script>document.title='pwned'</script>")
    assert title(browse(path, "--dump-dom")) == "pwned"


def test_nothing_of_a_log_runs(page: Callable[[Path], Path], hostile: Path) -> None:
    document = browse(page(hostile), "--dump-dom")
    assert title(document) == "SGLang launch failed while warming up"
    assert "&lt;script&gt;document.title='pwned'" in document
    assert "<script" not in document
    assert "<img" not in document


@pytest.mark.parametrize(
    "tag", ["<script>document.title='pwned'</script>", "<img src=x onerror=document.title='pwned'>"]
)
def test_what_got_in_would_be_refused(
    page: Callable[[Path], Path], harmless: Path, tag: str
) -> None:
    path = page(harmless)
    path.write_text(path.read_text().replace("<main>", f"<main>{tag}"))
    document = browse(path, "--dump-dom")
    assert tag[:4] in document.partition("<main>")[2]
    assert title(document) != "pwned"


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """A server on the loopback that notes what it is asked for."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=found.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{found.server_port}", asked
    found.shutdown()


def test_what_got_in_could_fetch_nothing(
    page: Callable[[Path], Path], harmless: Path, server: tuple[str, list[str]], tmp_path: Path
) -> None:
    url, asked = server
    control = tmp_path / "control.html"
    control.write_text(f"<img src='{url}/control.png'>")
    browse(control, "--dump-dom")
    assert asked == ["/control.png"]
    path = page(harmless)
    tags = f"<img src='{url}/a'><iframe src='{url}/b'></iframe><link rel=stylesheet href='{url}/c'>"
    path.write_text(path.read_text().replace("<main>", f"<main>{tags}"))
    browse(path, "--dump-dom")
    assert asked == ["/control.png"]


@pytest.mark.parametrize("dark", [False, True])
def test_it_has_a_light_and_a_dark_face(
    page: Callable[[Path], Path], root: Path, tmp_path: Path, dark: bool
) -> None:
    path = page(root / "fixtures" / "sglang-glm5.log")
    face = "--blink-settings=preferredColorScheme=" + ("0" if dark else "1")
    browse(path, face, f"--screenshot={tmp_path / 'shot.png'}", cwd=tmp_path)
    assert corner(tmp_path / "shot.png") == ((20, 24, 28) if dark else (255, 255, 255))


def corner(png: Path) -> tuple[int, ...]:
    """The colour of the first pixel of a PNG: the first row's filter leaves it as it is."""
    import struct
    import zlib

    data, at, packed = png.read_bytes(), 8, b""
    while at < len(data):
        (length,), kind = struct.unpack(">I", data[at : at + 4]), data[at + 4 : at + 8]
        packed += data[at + 8 : at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    return tuple(zlib.decompress(packed)[1:4])


def test_it_prints(page: Callable[[Path], Path], root: Path, tmp_path: Path) -> None:
    path = page(root / "fixtures" / "sglang-glm5.log")
    browse(path, f"--print-to-pdf={tmp_path / 'out.pdf'}", cwd=tmp_path)
    pdf = (tmp_path / "out.pdf").read_bytes()
    assert pdf.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 12
