"""Parsers for nested text: grammar files that Lark itself runs.

A built parser is kept in the user's cache folder by Lark, which checks that it belongs to the
grammar at hand.
"""

from __future__ import annotations

from typing import Any

import lark
import platformdirs

from forensics.resources import grammar_dir


def nested_parser(name: str, **options: Any) -> lark.Lark:
    """The LALR parser of `grammars/{name}.lark`; call once and keep the result."""
    text = (grammar_dir() / f"{name}.lark").read_text(encoding="utf-8")
    options |= {"parser": "lalr", "lexer": "contextual"}
    try:
        folder = platformdirs.user_cache_path("forensics")
        folder.mkdir(parents=True, exist_ok=True)
        return lark.Lark(text, cache=str(folder / f"{name}.parser"), **options)
    except OSError:
        return lark.Lark(text, **options)
