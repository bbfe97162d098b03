"""The index of playbooks is what the script writes, and names all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from forensics.resources import playbook_names
from forensics.rules import registry


def test_the_index_is_not_stale(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(root / "scripts"))
    from make_playbook_index import page

    text = (root / "playbooks" / "README.md").read_text(encoding="utf-8")
    assert text == page(), "run python scripts/make_playbook_index.py"


def test_every_playbook_and_rule_is_listed_once(root: Path) -> None:
    text = (root / "playbooks" / "README.md").read_text(encoding="utf-8")
    assert [name for name in playbook_names() if text.count(f"]({name}.md)") != 1] == []
    assert [rule.id for rule in registry() if text.count(f"`{rule.id}`") != 1] == []
