"""Lines out of bytes that come in any portions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from forensics.reading import Block, LineCutter

PIECES = st.sampled_from(
    [
        b"[2025-07-29 18:14:43 TP0] x",
        b"\n",
        b"\r",
        b"\r\n",
        b"\xe2\x96\x88",
        b"\xe2\x96",
        b"\xff",
        b"\0",
    ]
)
TEXTS = st.lists(PIECES | st.binary(max_size=6), max_size=30).map(b"".join)


def cut(data: bytes, sizes: list[int], **limits: int) -> tuple[list[Block], list[str]]:
    cutter = LineCutter(**limits)
    blocks: list[Block | None] = []
    place = 0
    for size in sizes:
        blocks.append(cutter.feed(data[place : place + size]))
        place += size
    blocks.append(cutter.feed(data[place:]))
    blocks.append(cutter.flush())
    cut_up = [block for block in blocks if block]
    notices, before = [], 0
    for block in cut_up:
        notices += [cut.notice(before) for cut in block.cut]
        before += len(block.lines())
    return cut_up, notices


def lines_of(blocks: list[Block]) -> list[str]:
    return [line for block in blocks for line in block.lines()]


@given(TEXTS, st.lists(st.integers(0, 40), max_size=20))
def test_portions_do_not_change_the_lines(data: bytes, sizes: list[int]) -> None:
    assert lines_of(cut(data, sizes)[0]) == lines_of(cut(data, [])[0])


@given(TEXTS, st.lists(st.integers(0, 40), max_size=20))
def test_portions_do_not_change_utf16_lines(data: bytes, sizes: list[int]) -> None:
    wide = data.decode("utf-8", "replace").encode("utf-16")
    assert lines_of(cut(wide, sizes)[0]) == lines_of(cut(wide, [])[0])


@given(TEXTS, st.lists(st.integers(0, 40), max_size=20))
def test_portions_do_not_change_where_a_long_line_is_cut(data: bytes, sizes: list[int]) -> None:
    whole, said = cut(data, [], max_line_bytes=32, kept_line_bytes=8)
    parts, also_said = cut(data, sizes, max_line_bytes=32, kept_line_bytes=8)
    assert lines_of(parts) == lines_of(whole)
    assert also_said == said


@given(TEXTS, st.lists(st.integers(0, 40), max_size=20))
def test_blocks_know_their_place(data: bytes, sizes: list[int]) -> None:
    for block in cut(data, sizes)[0]:
        if not block.repaired and not data.startswith(b"\xef\xbb\xbf"):
            assert data[block.offset :].startswith(block.data)


def test_lines_are_counted_by_newline_alone() -> None:
    text = "a\rb\x0bc\x0cd\u2028e\x85f\ng\r\n"
    assert lines_of(cut(text.encode(), [])[0]) == ["a\rb\x0bc\x0cd\u2028e\x85f", "g\r"]


def test_blank_lines_count() -> None:
    assert lines_of(cut(b"a\n\n\nb\n", [])[0]) == ["a", "", "", "b"]


def test_a_last_line_without_newline_is_delivered_at_the_end() -> None:
    cutter = LineCutter()
    first = cutter.feed(b"the first line\nsecond")
    assert first is None or first.lines() == ["the first line"]
    last = cutter.flush()
    assert last is not None
    assert last.lines()[-1] == "second"


def test_an_empty_input_has_no_block() -> None:
    assert cut(b"", [])[0] == []


def test_invalid_bytes_are_replaced_and_said() -> None:
    (block,) = cut(b"caf\xe9 \xf0\x9f\nok\n", [])[0]
    assert block.lines() == ["caf\ufffd \ufffd", "ok"]
    assert block.repaired


def test_valid_text_is_not_repaired() -> None:
    (block,) = cut("100%|█████| 35/35\n".encode(), [])[0]
    assert not block.repaired


def test_a_bom_is_removed_at_the_start_only() -> None:
    (block,) = cut(b"\xef\xbb\xbffirst line of all\n", [])[0]
    assert block.lines() == ["first line of all"]
    assert block.offset == 3


def test_utf16_without_bom_is_recognised() -> None:
    for encoding in ("utf-16-le", "utf-16-be"):
        data = "[2025-07-29 18:14:43] server_args=█\nnext\n".encode(encoding)
        assert lines_of(cut(data, [])[0]) == ["[2025-07-29 18:14:43] server_args=█", "next"]


def test_a_line_of_some_megabytes_passes_whole() -> None:
    data = b"x" * (5 << 20) + b"\nnext\n"
    blocks, notices = cut(data, [1 << 20] * 5)
    assert [len(line) for line in lines_of(blocks)] == [5 << 20, 4]
    assert notices == []


def test_a_line_beyond_the_limit_keeps_its_beginning_and_its_number() -> None:
    data = b"one line before it\n" + b"x" * 5000 + b"\nnext\n"
    blocks, notices = cut(data, [10] * 300, max_line_bytes=1000, kept_line_bytes=50)
    assert lines_of(blocks) == ["one line before it", "x" * 50, "next"]
    assert len(notices) == 1
    assert notices[0].startswith("line 2 is ")


def test_a_follower_gets_lines_as_soon_as_they_are_whole() -> None:
    cutter = LineCutter()
    assert cutter.feed(b"[2025-07-29 18:14:43] Load") is None
    block = cutter.feed(b" weight begin.\n[2025")
    assert block is not None
    assert block.lines() == ["[2025-07-29 18:14:43] Load weight begin."]
