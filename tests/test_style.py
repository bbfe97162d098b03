"""One idea a module: nothing grows longer than one can take in."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

MODULE_LINES = 300
FUNCTION_LINES = 40
ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted((ROOT / "forensics").rglob("*.py"))


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body, without the docstring: a signature is no logic."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_and_functions_are_short(path: Path) -> None:
    text = path.read_text()
    assert len(text.splitlines()) <= MODULE_LINES
    long = {node.name: length(node) for node in functions(ast.parse(text))}
    assert {name: lines for name, lines in long.items() if lines > FUNCTION_LINES} == {}
