"""The store behind the panes: the lines of the file, the kinds of every other view, any size."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics import pipeline
from forensics.reading import find_sources
from forensics.tui.store import Criteria, EventStore, LinePlace, parse_criteria

HEAD = "[2026-03-01 10:00:{:02} TP{}] "
DECODE = "Decode batch, #running-req: {}, #token: 2240, token usage: 0.37, cuda graph: True, "
DECODE += "gen throughput (token/s): 1937.32, #queue-req: 2"


def log_bytes(lines: int = 3000, seed: int = 1) -> bytes:
    """A served log with a traceback here and there."""
    dice = random.Random(seed)
    found = []
    for number in range(lines):
        rank = dice.randrange(4)
        head = HEAD.format(number % 60, rank)
        roll = dice.random()
        if roll < 0.9:
            found.append(head + DECODE.format(number))
        elif roll < 0.95:
            found.append('[2026-03-01 10:00:05] INFO:     10.0.0.1:5 - "POST /v1 HTTP/1.1" 200 OK')
        elif roll < 0.98:
            found.append(head + "Load weight begin. avail mem=78.50 GB")
        else:
            found += [
                head + "Scheduler hit an exception: Traceback (most recent call last):",
                '  File "/srv/scheduler.py", line 12, in run',
                "    self.step()",
                "ValueError: nothing to do",
                "",
            ]
    return "\n".join(found).encode() + b"\n"


@pytest.fixture
def opened() -> Iterator[Callable[..., EventStore]]:
    stores: list[EventStore] = []

    def open_(*paths: Path) -> EventStore:
        sources, _ = find_sources([str(path) for path in paths])
        store = EventStore(sources)
        stores.append(store)
        store.start()
        assert store.wait(60)
        return store

    yield open_
    for store in stores:
        store.close()


def sed(path: Path, number: int) -> bytes:
    """The line as `sed -n` prints it, without its newline."""
    done = subprocess.run(
        ["sed", "-n", f"{number}p", str(path)],
        capture_output=True,
        check=True,
        env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
    )
    return done.stdout.removesuffix(b"\n")


def as_is(data: bytes) -> bytes:
    return data


def crlf(data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


def invalid(data: bytes) -> bytes:
    return data.replace(b"token usage", b"tok\xff\xc3 usage \xe2\x82")


def wrapped(data: bytes) -> bytes:
    stamp = b"2026-03-01T10:00:00.000000001Z stdout F "
    return b"".join(stamp + line for line in data.splitlines(keepends=True))


def docker(data: bytes) -> bytes:
    lines = data.decode().splitlines(keepends=True)
    entries = [
        {"log": line, "stream": "stderr", "time": "2026-03-01T10:00:00.000000001Z"}
        for line in lines
    ]
    return "".join(json.dumps(entry, separators=(",", ":")) + "\n" for entry in entries).encode()


def blank_and_open(data: bytes) -> bytes:
    return b"\n\n" + data.replace(b"\n", b"\n\n", 5) + b"the end without a newline"


def with_mark(data: bytes) -> bytes:
    return data.replace(b"GB", "GB \N{SNOWMAN}".encode())


CHANGES = [as_is, crlf, invalid, wrapped, blank_and_open, with_mark]
PACKED = {
    "gz": gzip.compress,
    "xz": lzma.compress,
    "bz2": bz2.compress,
    "zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_lines_are_those_that_sed_prints(
    change: Callable[[bytes], bytes], tmp_path: Path, opened: Callable[..., EventStore]
) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(change(log_bytes(6000)))
    store = opened(path)
    count = store.lines(0)
    assert count == len(path.read_bytes().removesuffix(b"\n").split(b"\n"))
    for number in [1, count, *random.Random(7).sample(range(1, count), 20)]:
        (line,) = store.read(0, number, 1)
        assert line.number == number
        assert line.text == sed(path, number).decode("utf-8", "replace")


@pytest.mark.parametrize("ending", PACKED)
@pytest.mark.parametrize("change", [as_is, invalid, blank_and_open], ids=lambda c: c.__name__)
def test_archives_have_the_lines_of_what_was_packed(
    ending: str,
    change: Callable[[bytes], bytes],
    tmp_path: Path,
    opened: Callable[..., EventStore],
) -> None:
    plain, packed = tmp_path / "server.log", tmp_path / f"server.log.{ending}"
    plain.write_bytes(change(log_bytes(9000)))
    packed.write_bytes(PACKED[ending](plain.read_bytes()))
    store = opened(packed)
    for number in random.Random(3).sample(range(1, store.lines(0)), 12):
        assert store.read(0, number, 1)[0].text == sed(plain, number).decode("utf-8", "replace")


def test_another_encoding_has_its_lines_as_text(
    tmp_path: Path, opened: Callable[..., EventStore]
) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(log_bytes(50).decode().encode("utf-16"))
    texts = [line.text for line in opened(path).read(0, 1, 1000)]
    assert texts == log_bytes(50).decode().splitlines()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=40).map(lambda raw: raw.replace(b"\n", b"")),
            st.sampled_from([b"\r", b"", b"\xff\xfe", b"\x00", DECODE.encode()]),
        ),
        min_size=1,
        max_size=400,
    ),
    st.booleans(),
    st.integers(1, 400),
)
def test_any_bytes_come_back_line_by_line(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], closed: bool, first: int
) -> None:
    path = tmp_path_factory.mktemp("any") / "server.log"
    # The head keeps it from being taken for another encoding or for a binary file.
    head = [HEAD.format(1, 0).encode() + DECODE.encode()] * 300
    path.write_bytes(b"\n".join([*head, *lines]) + (b"\n" if closed else b""))
    store = EventStore(find_sources([str(path)])[0])
    store.start()
    assert store.wait(30)
    expected = path.read_bytes().removesuffix(b"\n").split(b"\n")[first - 1 : first + 250]
    texts = [line.text for line in store.read(0, first, 251)]
    store.close()
    assert texts == [raw.decode("utf-8", "replace") for raw in expected]


def kinds_by_line(path: Path) -> dict[int, set[tuple[str | None, str]]]:
    found: dict[int, set[tuple[str | None, str]]] = {}
    for _, event in pipeline.events([str(path)]):
        found.setdefault(event.line, set()).add((event.rank, event.kind))
    return found


def shown_by_line(store: EventStore, kinds: dict[int, set[tuple[str | None, str]]]) -> None:
    """Every record is shown on its line, with its kind and rank; no other line begins one."""
    rows = store.rows(Criteria())
    assert rows.wait(30)
    places = rows.slice(0, len(rows))
    assert [place.line for place in places] == sorted(kinds)
    for line in store.pick(places):
        assert (line.rank, line.kind) in kinds[line.number]


LOGS = ["sglang-glm5.log", "sglang-glm5-abc.log"]


@pytest.mark.parametrize("name", LOGS)
def test_records_are_those_of_the_events_command(
    name: str, fixtures: Path, opened: Callable[..., EventStore]
) -> None:
    shown_by_line(opened(fixtures / name), kinds_by_line(fixtures / name))


@pytest.mark.parametrize(
    "change", [as_is, crlf, wrapped, docker, blank_and_open], ids=lambda c: c.__name__
)
def test_routine_lines_read_in_bulk_have_the_kinds_of_the_events_command(
    change: Callable[[bytes], bytes], tmp_path: Path, opened: Callable[..., EventStore]
) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(change(log_bytes(8000)))
    shown_by_line(opened(path), kinds_by_line(path))


def test_what_only_looks_like_routine_is_read_in_full(
    tmp_path: Path, opened: Callable[..., EventStore]
) -> None:
    torn = HEAD.format(3, 1) + "Decode batch, #running-req: 1, #tok" + HEAD.format(3, 2)
    torn += "Load weight begin. avail mem=78.50 GB"
    path = tmp_path / "server.log"
    text = log_bytes(3000) + torn.encode() + b"\n"
    text += (HEAD.format(4, 1) + "Decode batch of something else").encode() + b"\n"
    path.write_bytes(text + log_bytes(2000, seed=2))
    store = opened(path)
    shown_by_line(store, kinds_by_line(path))
    rows = store.rows(parse_criteria("kind:load_weight_begin rank:TP2"))
    assert rows.wait(30)
    number = text.count(b"\n") - 1
    assert rows.holds(0, number)


def test_a_traceback_belongs_to_the_record_that_announces_it(
    tmp_path: Path, opened: Callable[..., EventStore]
) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(log_bytes(400))
    store = opened(path)
    rows = store.rows(parse_criteria("sev:critical"))
    assert rows.wait(30)
    first = rows.place(0)
    announced, *body = store.read(0, first.line, 5)
    assert announced.kind == "scheduler_exception"
    assert [line.begins for line in body] == [False] * 4


def test_filters_by_rank_kind_severity_and_text_hold_together(
    tmp_path: Path, opened: Callable[..., EventStore]
) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(log_bytes(5000))
    store = opened(path)
    events = [event for _, event in pipeline.events([str(path)])]
    for typed, wanted in {
        "rank:TP1": [e.line for e in events if e.rank == "TP1"],
        "rank:none": [e.line for e in events if e.rank is None],
        "-rank:TP* ": [e.line for e in events if e.rank is None],
        "kind:load*": [e.line for e in events if e.kind == "load_weight_begin"],
        "-kind:decode_batch -kind:http_access": [
            e.line for e in events if e.kind not in ("decode_batch", "http_access")
        ],
        "rank:TP2 weight BEGIN": [],
        "rank:TP2 weight begin": [
            e.line for e in events if e.rank == "TP2" and e.kind == "load_weight_begin"
        ],
        "re:running-req: 1[0-9]{3},": [
            e.line for e in events if 1000 <= (e.number("running_reqs") or 0) < 2000
        ],
    }.items():
        rows = store.rows(parse_criteria(typed))
        assert rows.wait(30)
        assert [place.line for place in rows.slice(0, len(rows))] == wanted, typed


def test_rows_and_lines_lead_to_each_other(
    tmp_path: Path, opened: Callable[..., EventStore]
) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(log_bytes(5000))
    rows = opened(path).rows(parse_criteria("rank:TP3"))
    assert rows.wait(30)
    for row in range(0, len(rows), 37):
        place = rows.place(row)
        assert rows.row_of(*place) == row
        after = rows.place(row + 1).line if row + 1 < len(rows) else place.line + 1
        assert rows.row_of(0, after - 1) == row
        assert rows.after(0, place.line - 1) == place
        assert rows.before(0, place.line + 1) == place
    assert rows.before(0, rows.place(0).line) is None
    assert rows.after(0, rows.place(len(rows) - 1).line) is None


def test_several_sources_stand_one_behind_the_other(
    tmp_path: Path, opened: Callable[..., EventStore]
) -> None:
    one, two = tmp_path / "node0.log", tmp_path / "node1.log"
    one.write_bytes(log_bytes(700))
    two.write_bytes(log_bytes(500, seed=5))
    store = opened(one, two)
    rows = store.rows(Criteria(parts=True))
    assert rows.wait(30)
    assert len(rows) == store.lines(0) + store.lines(1)
    assert rows.place(store.lines(0)) == LinePlace(1, 1)
    second = store.rows(parse_criteria("source:2", parts=True))
    assert second.wait(30)
    assert second.place(0) == LinePlace(1, 1)
    assert len(second) == store.lines(1)


def test_a_live_source_grows_and_shows_what_is_known_so_far() -> None:
    sources = find_sources(["-"])[0]
    store = EventStore(sources, live=True)
    store.start()
    rows = store.rows(Criteria(parts=True))
    data = log_bytes(4000)
    for begin in range(0, len(data), 70_001):
        store.feed(0, data[begin : begin + 70_001])
    store.end(0)
    assert store.wait(30)
    assert rows.wait(30)
    texts = [line.text for line in store.read(0, 1, len(rows))]
    store.close()
    assert texts == data.decode().splitlines()


def test_a_file_that_is_cut_while_it_is_shown_gives_fewer_lines(
    tmp_path: Path, opened: Callable[..., EventStore]
) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(log_bytes(5000))
    store = opened(path)
    with path.open("r+b") as file:
        file.truncate(100)
    assert store.read(0, 3000, 5) == []


def test_a_filter_that_is_cancelled_stops() -> None:
    store = EventStore(find_sources(["-"])[0], live=True)
    store.start()
    rows = store.rows(Criteria())
    rows.cancel()
    assert not rows.wait(10)
    assert not rows._thread.is_alive()
    store.close()


def test_a_log_of_many_ranks_keeps_few_classes(
    tmp_path: Path, opened: Callable[..., EventStore]
) -> None:
    path = tmp_path / "server.log"
    lines = [
        f"[2026-03-01 10:00:00 TP{n}] Load weight begin. avail mem=78.50 GB" for n in range(9000)
    ]
    path.write_text("\n".join(lines) + "\n")
    store = opened(path)
    assert store.lines(0) == 9000
    assert len(store.classes()) < 2100
