"""Whatever the text, Markdown shows it as it is: no heading, link, image, HTML or table."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from forensics.views.report.markdown import NO_BREAK, cell, code, fence, prose, table, wrapped

GITHUB = MarkdownIt("gfm-like", {"linkify": False}).enable("table")
HARMLESS = {"paragraph_open", "paragraph_close", "inline", "text", "softbreak", "code_inline"}
HOSTILE = [
    "# Heading",
    "- item\n- item",
    "1. one",
    "> quote",
    "***",
    "--- ---",
    "a\n===",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[text](javascript:alert(1))",
    "![image](http://evil/x.png)",
    "[ref]: http://evil",
    "[^1]: note",
    "| a | b |\n|---|---|",
    "`` ` code ` ``",
    "``` fence",
    "*bold* **strong** _em_ __strong__ ~~gone~~",
    "a_b_c _d_ snake_case_name",
    "&lt;script&gt; &#60;",
    "http://evil.example/x www.evil.example",
    "ping @everyone and org/repo#123 GH-4",
    "$x^2$ :bomb: \\escaped\\ end\\",
    "94.40 * (1 - 0.95) = 4.72",
    "- 0.95) = 4.72",
    "+ 1",
    "10) ten",
    "    indented",
    "<!-- comment --> <?php ?> <![CDATA[ x ]]>",
    "x" * 200,
    "set --flag=<your value here> NAME=<x y>",
]


def tokens(markdown: str) -> list[Token]:
    flat = []
    for token in GITHUB.parse(markdown):
        flat += [token, *(token.children or [])]
    return flat


def shown(markdown: str) -> str:
    """The text a reader sees."""
    return "".join(
        " " if token.type == "softbreak" else token.content
        for token in tokens(markdown)
        if token.type in ("text", "code_inline", "softbreak")
    )


def as_read(text: str) -> str:
    """What should be seen: marks of code come off, blanks fold."""
    return re.sub(r"`([^`\n]+)`", r"\1", text)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("width", [None, 20, 80])
def test_prose_is_one_harmless_paragraph(text: str, width: int | None) -> None:
    line = " ".join(text.split())
    markdown = wrapped(prose(line), width).replace(NO_BREAK, " ")
    assert {token.type for token in tokens(markdown)} <= HARMLESS
    assert shown(markdown).split() == as_read(line).split()


TEXT = st.text(
    st.sampled_from("ab1 -_*`<>[]()!#|&:;@/\\$~=+.\"'^{}") | st.characters(codec="utf-8"),
    max_size=60,
).map(lambda text: " ".join("".join(c for c in text if c.isprintable() or c == " ").split()))


@given(TEXT, st.sampled_from([None, 8, 30]))
@example("`a`b`", None)
@example("a `- b` c", 8)
@example("1. - # x", 8)
def test_any_text_is_shown_as_it_is(text: str, width: int | None) -> None:
    markdown = wrapped(prose(text), width).replace(NO_BREAK, " ")
    assert {token.type for token in tokens(markdown)} <= HARMLESS
    assert "".join(shown(markdown).split()) == "".join(as_read(text).split())


@given(TEXT)
def test_a_cell_stays_a_cell(text: str) -> None:
    for as_code in (False, True):
        markdown = table(["a", "b"], [[cell(text, as_code=as_code), "end"]]).replace(NO_BREAK, " ")
        kinds = [token.type for token in tokens(markdown)]
        assert kinds.count("td_open") == 2
        assert "html_inline" not in kinds
        assert "link_open" not in kinds


@given(st.lists(TEXT, min_size=1, max_size=5))
@example(["```", "~~~", "````text"])
def test_a_fence_holds_all_its_lines(lines: list[str]) -> None:
    (token,) = GITHUB.parse(fence(lines))
    assert (token.type, token.content) == ("fence", "\n".join(lines) + "\n")


@given(TEXT)
def test_code_is_one_span(text: str) -> None:
    if text:
        markdown = f"a {code(text)} b".replace(NO_BREAK, " ")
        (span,) = [token for token in tokens(markdown) if token.type == "code_inline"]
        assert span.content == text


def test_flags_and_names_are_set_as_code() -> None:
    said = prose("Lower --mem-fraction-static from 0.95, set A_B=1 (log.txt:142) for glm_moe_dsa.")
    assert said == (
        "Lower `--mem-fraction-static` from 0.95, set `A_B=1` (`log.txt:142`) for `glm_moe_dsa`."
    )


def test_columns_of_a_table_line_up_in_a_pager() -> None:
    assert table(["Ranks", "Free"], [["TP0", "0.96"], ["TP1-TP7", "12.00"]], numbers=1) == (
        "| Ranks   |  Free |\n| ------- | ----: |\n| TP0     |  0.96 |\n| TP1-TP7 | 12.00 |"
    )
