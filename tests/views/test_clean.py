from __future__ import annotations

import pytest

from forensics.views.clean import clean, one_line, window


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
        ("\x1b]52;c;Zm9v\x1b\\rest", "rest"),
        ("a\x9b2Jb\x00\x08c", "a2Jbc"),
        ("abc\u202edef\u2066\ufeff", "abcdef"),
        ("cut\x1b", "cut"),
        ("[bold]stays[/bold]", "[bold]stays[/bold]"),
        ("bad \udc80 byte", "bad  byte"),
    ],
)
def test_nothing_reaches_a_terminal_that_it_would_obey(text: str, expected: str) -> None:
    assert clean(text) == expected


def test_one_line() -> None:
    assert one_line(" a\n  b\tc\r\n") == "a b c"


def test_a_window_keeps_what_the_keys_name() -> None:
    text = f"{'x ' * 60}Tried to allocate 694.00 MiB of which 247.44 MiB is free{' y' * 60}"
    cut = window(text, 70, ["694", "247"])
    assert len(cut) <= 70
    assert "Tried to allocate 694.00 MiB of which 247.44 MiB" in cut
    assert (cut.startswith("... "), cut.endswith(" ...")) == (True, True)
    assert window("short", 70) == "short"
    assert window("a" * 100, 40) == f"{'a' * 36} ..."
    assert window(f"{'word ' * 30}end", 40, ["end"]).endswith("word end")
