"""What a log says stays text in every form: it marks nothing up, runs nothing, ends nothing."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

Render = Callable[..., str]
GITHUB = MarkdownIt("gfm-like", {"linkify": False})
PROOF = "document.title='pwned'"
"""Part of the hostile text: where it stands, the rest was not lost."""


def kinds(markdown: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for token in GITHUB.parse(markdown):
        found.update([token.type, *(child.type for child in token.children or [])])
    return found


@pytest.mark.parametrize("options", [(), ("--for", "issue")])
def test_markdown(report: Render, hostile: Path, harmless: Path, options: tuple[str, ...]) -> None:
    text, other = report(hostile, *options), report(harmless, *options)
    assert PROOF in text
    structural = ("heading_open", "fence", "table_open", "html_block", "html_inline", "link_open",
                  "image", "hr", "bullet_list_open", "blockquote_open")  # fmt: skip
    seen, expected = kinds(text), kinds(other)
    assert {kind: seen[kind] for kind in structural} == {
        kind: expected[kind] for kind in structural
    }
    assert "\n@everyone" not in re.sub(r"`[^`]*`|```.*?```", "", text, flags=re.S)


class Page(HTMLParser):
    """Tags and attributes of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html(report: Render, hostile: Path, harmless: Path) -> None:
    page, other = (Page(report(log, "--format", "html")) for log in (hostile, harmless))
    assert PROOF in page.text
    for tag in ("script", "img", "iframe", "object", "embed", "form", "input", "link", "base", "a"):
        assert page.tags[tag] == 0
    without_code = {tag: n for tag, n in page.tags.items() if tag != "code"}
    assert without_code == {tag: n for tag, n in other.tags.items() if tag != "code"}
    assert [a for a in page.attributes if a[1].startswith("on") or a[1] in ("style", "href")] == []
    (policy,) = [v for t, n, v in page.attributes if (t, n) == ("meta", "content") and "src" in v]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")


def test_html_fetches_nothing(report: Render, root: Path) -> None:
    text = report(root / "fixtures" / "sglang-glm5.log", "--format", "html")
    page = Page(text)
    assert [a for a in page.attributes if a[1] in ("src", "srcset", "href", "xlink:href")] == []
    assert not re.search(r"url\(|@import", text)
    assert {"svg", "path", "rect"} <= set(page.tags)


def test_sarif(report: Render, hostile: Path) -> None:
    log = json.loads(report(hostile, "--format", "sarif"))
    (result,) = [r for r in log["runs"][0]["results"] if r["ruleId"] == "unknown-failure"]
    assert PROOF in result["message"]["text"]
    seen = kinds(result["message"]["markdown"])
    assert (seen["html_inline"], seen["html_block"], seen["link_open"], seen["image"]) == (
        0,
        0,
        0,
        0,
    )
    assert seen["heading_open"] == 0


def test_junit(report: Render, hostile: Path) -> None:
    suites = ElementTree.fromstring(report(hostile, "--format", "junit"))
    (failure,) = suites.iter("failure")
    assert PROOF in (failure.text or "")
    assert {element.tag for element in suites.iter()} <= {
        "testsuites", "testsuite", "properties", "property", "testcase", "failure", "skipped",
        "system-out",
    }  # fmt: skip


@pytest.mark.parametrize("form", ["text", "markdown", "html", "sarif", "junit", "json"])
def test_no_character_that_a_terminal_obeys(report: Render, tmp_path: Path, form: str) -> None:
    from tests.views.report.conftest import log_of

    log = tmp_path / "escapes.log"
    log.write_text(log_of("\x1b]0;pwned\x07\x1b[2J\x9b31m\u202etxt.exe\u200b\x00\x08 end"))
    text = report(log, "--format", form)
    assert not [c for c in text if (ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0]
    assert not set(text) & {"\u202e", "\u200b"}
