"""What is shown of a live launch: sentences, events, the screen. Nothing of a log is obeyed."""

from __future__ import annotations

import io
import json

from rich.console import Console

from forensics.findings import Finding
from forensics.live.notices import FindingNotice, Remark, Verdict
from forensics.live.progress import RunState, state_of
from forensics.live.session import Session
from forensics.views.live.lines import LineView
from forensics.views.live.ndjson import NdjsonView
from forensics.views.live.screen import drawing
from forensics.views.live.words import foresee, late_words, silence_words, verdict_sentence
from tests.live.conftest import FIXTURES

GLM5 = (FIXTURES / "sglang-glm5.log").read_bytes()


def at_capture() -> RunState:
    session = Session(["log"])
    session.feed(0, GLM5[: GLM5.index(b"Capture cuda graph bs")].rpartition(b"\n")[0] + b"\n")
    return state_of(session.snapshot().reports[0], [], 2.0)


def drawn(state: RunState) -> str:
    out = io.StringIO()
    Console(file=out, width=110, color_system=None).print(drawing(state))
    return out.getvalue()


def test_what_will_happen_is_said_in_one_sentence() -> None:
    alarm = at_capture().alarm
    assert alarm
    said = foresee(alarm)
    assert said.startswith("capture needs about ")
    assert said.endswith("0.96 is free on all 8 ranks: this launch will fail in seconds")


def test_the_screen_shows_ranks_memory_and_the_alarm() -> None:
    text = drawn(at_capture())
    assert "this launch will fail in seconds" in text
    assert "TP0-TP7  CUDA graphs  0.96 GiB" in text


def test_the_screen_shows_the_bar_and_the_silence() -> None:
    session = Session(["log"])
    session.feed(0, GLM5[: GLM5.index(b"64/83")].rpartition(b"\n")[0] + b"\n")
    state = state_of(session.snapshot().reports[0], [], 700.0)
    text = drawn(state)
    assert "63 of 83 shards, about 1 min 20 s left" in text
    assert "longer than the 4 min that are usual here" in text
    assert silence_words(state) in " ".join(text.split())
    assert late_words(state) is None


def finding(title: str) -> Finding:
    place = {"source": "log", "line": 1}
    return Finding.model_validate(
        {
            "id": "r1-1-x",
            "rule": "x",
            "class": "not_memory",
            "severity": "critical",
            "role": "root_cause",
            "title": title,
            "explanation": title,
            "first": place,
            "known_at": place,
            "evidence": [],
        }
    )


def test_lines_are_clean_and_without_secrets() -> None:
    out = io.StringIO()
    view = LineView(Console(file=out, width=200, color_system=None, markup=False))
    view.tell(FindingNotice(1, finding("\x1b[2Jboom\x07 [bold]x[/] hf_abcdefghijklmnop")))
    text = out.getvalue()
    assert "boom [bold]x[/] [redacted]" in text
    assert "\x1b" not in text


def test_events_are_json_lines_of_the_contract() -> None:
    out = io.StringIO()
    view = NdjsonView(out)
    view.tell(FindingNotice(1, finding("a"), ("class_",)))
    view.tell(Remark("only for people"))
    view.tell(Verdict("failed", "load", 1, "the launch failed", 1, finding("a")))
    first, last = [json.loads(line) for line in out.getvalue().splitlines()]
    assert (first["event"], first["updated"], first["changed"]) == ("finding", True, ["class"])
    assert first["finding"]["class"] == "not_memory"
    assert {"time", "outcome", "phase", "root_cause", "exit_code"} <= last.keys()
    assert last["verdict"]["root_cause"]["rule"] == "x"


def test_quiet_says_the_verdict_alone() -> None:
    out = io.StringIO()
    view = NdjsonView(out, quiet=True)
    view.tell(FindingNotice(1, finding("a")))
    view.tell(Verdict("ready", "serving", 0, "the server is ready"))
    assert out.getvalue().count("\n") == 1


def test_a_verdict_is_one_line() -> None:
    verdict = Verdict("failed", "load", 1, "", 1, finding("broken\nin two"), command_status=3)
    said = verdict_sentence(verdict)
    assert said == "while loading the weights: broken in two (exit status of the command: 3)"


def test_a_terminal_is_not_left_to_break_words() -> None:
    out = io.StringIO()
    console = Console(file=out, width=60, force_terminal=True, color_system=None)
    words = " ".join(f"mem_fraction_static_{number}" for number in range(9))
    LineView(console, lead="forensics: ").tell(Remark(words))
    lines = out.getvalue().splitlines()
    assert len(lines) > 2
    assert all(len(line) <= 60 for line in lines)
    assert [line[:11] for line in lines[1:]] == [" " * 11] * (len(lines) - 1)
    assert " ".join(line[11:] for line in lines) == words


def test_a_pipe_gets_one_line_for_each_remark() -> None:
    out = io.StringIO()
    console = Console(file=out, width=60, color_system=None)
    LineView(console, lead="forensics: ").tell(Remark("word " * 40))
    assert len(out.getvalue().splitlines()) == 1
