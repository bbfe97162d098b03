"""Folds the literal constants of a Python source, without importing or running it."""

from __future__ import annotations

import ast
from typing import Any

MISSING = object()
"""What an expression that is no literal folds to."""


class Constants:
    """Literal constants of the modules read, `NAME` and `Class.NAME`, to fold defaults with."""

    def __init__(self, trees: list[ast.Module]) -> None:
        self.values: dict[str, Any] = {}
        self._inside = ""
        for tree in trees:
            self._collect(tree.body, "")
            for node in tree.body:
                if isinstance(node, ast.ClassDef):
                    self._collect(node.body, f"{node.name}.")
        self._inside = ""

    def _collect(self, body: list[ast.stmt], prefix: str) -> None:
        self._inside = prefix
        for node in body:
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if isinstance(node, ast.AnnAssign):
                target = node.target
            value = getattr(node, "value", None)
            if isinstance(target, ast.Name) and value is not None:
                folded = self.fold(value)
                if folded is not MISSING:
                    self.values[prefix + target.id] = folded

    def fold(self, node: ast.expr) -> Any:
        """The literal value of an expression, or MISSING where it is not one."""
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError):
            pass
        if isinstance(node, ast.Name | ast.Attribute):
            name = ast.unparse(node)
            if name == "sys.maxsize":
                return 2**63 - 1
            return self.values.get(self._inside + name, self.values.get(name, MISSING))
        if isinstance(node, ast.BinOp):
            return self._arithmetic(node)
        if isinstance(node, ast.List | ast.Tuple):
            items = [self.fold(item) for item in node.elts]
            return MISSING if MISSING in items else items
        if isinstance(node, ast.Call):
            return self._factory(node)
        if isinstance(node, ast.Subscript):
            return self._item(node)
        return MISSING

    def _item(self, node: ast.Subscript) -> Any:
        items, index = self.fold(node.value), self.fold(node.slice)
        inside = isinstance(items, list | tuple) and isinstance(index, int)
        return items[index] if inside and -len(items) <= index < len(items) else MISSING

    def _arithmetic(self, node: ast.BinOp) -> Any:
        left, right = self.fold(node.left), self.fold(node.right)
        numbers = isinstance(left, int | float) and isinstance(right, int | float)
        if numbers and isinstance(node.op, ast.Mult):
            return left * right
        joined = isinstance(left, list | int | float) and type(left) is type(right)
        return left + right if joined and isinstance(node.op, ast.Add) else MISSING

    def _factory(self, node: ast.Call) -> Any:
        words = {word.arg: word.value for word in node.keywords}
        if "default" in words:
            return self.fold(words["default"])
        factory = words.get("default_factory")
        if isinstance(factory, ast.Lambda):
            made = factory.body
            copied = isinstance(made, ast.Call) and ast.unparse(made.func) == "list" and made.args
            return self.fold(made.args[0] if copied else made)
        name = factory.id if isinstance(factory, ast.Name) else ""
        return {"list": [], "dict": {}}.get(name, MISSING)
