"""List the launch, memory, capture, batch and process lines of SGLang releases, filled in.

Reads wheels without running them: each message of a logging call, a raise or an assert is built
again from the syntax tree, with a mark for every value that is filled in at run time. The result,
`fixtures/catalogue/lines.jsonl`, is what `tests/grammar/test_catalogue.py` holds the grammar to.

    python scripts/make_catalogue.py sglang-0.5.16-*.whl sglang-0.5.23-*.whl
"""

from __future__ import annotations

import argparse
import ast
import itertools
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from catalogue_values import fill

ROOT = Path(__file__).resolve().parent.parent
OUTPUT = ROOT / "fixtures" / "catalogue" / "lines.jsonl"
SELECTED = ROOT / "fixtures" / "catalogue" / "selected.txt"
"""One regular expression a line: the templates that the fixture holds."""

_LOGGED = re.compile(r"(?:debug|info|warning|warn|error|exception|critical|log|print)(?:_\w+)?$")
_PERCENT = re.compile(r"%(?P<spec>[-#0 +]*\d*(?:\.\d+)?)(?P<type>[dsrfg%])")
_MOST_VARIANTS = 8


@dataclass(frozen=True)
class Hole:
    """A value that is filled in at run time: the expression behind it and its format."""

    expression: str
    spec: str = ""


Parts: TypeAlias = "tuple[str | Hole, ...]"


@dataclass
class Messages(ast.NodeVisitor):
    """Collects the messages of one source file."""

    found: list[Parts] = field(default_factory=list)
    scopes: list[dict[str, list[tuple[int, bool, ast.expr]]]] = field(default_factory=lambda: [{}])

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Names that hold text are looked up in the function that builds them."""
        self.scopes.append({})
        self.generic_visit(node)
        self.scopes.pop()

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_Assign(self, node: ast.Assign) -> None:
        """`text = ...` starts a message."""
        for target in node.targets:
            if isinstance(target, ast.Name):
                self._piece(target.id, node.lineno, False, node.value)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """`text += ...` continues it; every piece is kept, so optional ones are all present."""
        if isinstance(node.target, ast.Name) and isinstance(node.op, ast.Add):
            self._piece(node.target.id, node.lineno, True, node.value)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        """A logging call, by its name; a leading logger argument is passed over."""
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        if _LOGGED.match(name.lstrip("_")):
            arguments = [arg for arg in node.args if not ast.unparse(arg).endswith("logger")]
            if arguments:
                self._keep(arguments[0], arguments[1:])
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        """The message of an exception shows as the last line of a traceback."""
        if isinstance(node.exc, ast.Call) and node.exc.args:
            self._keep(node.exc.args[0], [])
        self.generic_visit(node)

    def visit_Assert(self, node: ast.Assert) -> None:
        """The message of an assertion, likewise."""
        if node.msg is not None:
            self._keep(node.msg, [])
        self.generic_visit(node)

    def _piece(self, name: str, line: int, more: bool, value: ast.expr) -> None:
        self.scopes[-1].setdefault(name, []).append((line, more, value))

    def _keep(self, node: ast.expr, arguments: list[ast.expr]) -> None:
        variants = itertools.islice(self._parts(node, arguments), _MOST_VARIANTS)
        self.found.extend(parts for parts in variants if any(isinstance(p, str) for p in parts))

    def _parts(self, node: ast.expr, arguments: list[ast.expr]) -> Iterator[Parts]:
        match node:
            case ast.Constant(str(text)):
                yield _percent(text, arguments) if arguments else (text,)
            case ast.JoinedStr(values):
                yield from self._sequence(list(values))
            case ast.FormattedValue(ast.IfExp() as choice, _, None) | (ast.IfExp() as choice):
                yield from self._parts(choice.body, [])
                yield from self._parts(choice.orelse, [])
            case ast.FormattedValue(value, _, spec):
                yield (Hole(ast.unparse(value), _spec_text(spec)),)
            case ast.BinOp(left, ast.Add(), right):
                yield from self._sequence([left, right])
            case ast.BinOp(ast.Constant(str(text)), ast.Mod(), right):
                yield _percent(text, right.elts if isinstance(right, ast.Tuple) else [right])
            case ast.Name(name) if pieces := self._bound(name, node.lineno):
                yield from self._sequence(pieces)
            case _:
                yield (Hole(ast.unparse(node)),)

    def _sequence(self, nodes: list[ast.expr]) -> Iterator[Parts]:
        for choice in itertools.product(*(list(self._parts(node, [])) for node in nodes)):
            yield tuple(part for parts in choice for part in parts)

    def _bound(self, name: str, line: int) -> list[ast.expr]:
        pieces = [piece for piece in self.scopes[-1].get(name, []) if piece[0] < line]
        starts = [place for place, (_, more, _) in enumerate(pieces) if not more]
        values = [value for _, _, value in pieces[starts[-1] if starts else 0 :]]
        return [] if any(ast.unparse(value) == name for value in values) else values


def _spec_text(spec: ast.expr | None) -> str:
    return ast.unparse(spec)[2:-1] if spec is not None else ""


def _percent(text: str, arguments: list[ast.expr]) -> Parts:
    parts: list[str | Hole] = []
    queue, end = list(arguments), 0
    for found in _PERCENT.finditer(text):
        parts.append(text[end : found.start()])
        end = found.end()
        if found["type"] == "%":
            parts.append("%")
        else:
            expression = ast.unparse(queue.pop(0)) if queue else "?"
            kind = "" if found["type"] in "sr" else found["type"]
            parts.append(Hole(expression, found["spec"] + kind))
    return (*parts, text[end:])


def template(parts: Parts) -> str:
    """The first line of a message with `{}` for each value."""
    text = "".join(part if isinstance(part, str) else "{}" for part in parts)
    return text.split("\n", 1)[0]


def messages(wheel: Path) -> Iterator[Parts]:
    """Every message of the serving runtime in one wheel; files that do not parse are left out."""
    with zipfile.ZipFile(wheel) as archive:
        for name in sorted(archive.namelist()):
            if name.startswith("sglang/srt/") and name.endswith(".py"):
                visitor = Messages()
                try:
                    visitor.visit(ast.parse(archive.read(name)))
                except (SyntaxError, ValueError, RecursionError):
                    continue
                yield from visitor.found


def release_key(version: str) -> tuple[int, ...]:
    """Sorts `0.5.10.post1` behind `0.5.9`."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


def catalogue(wheels: list[Path]) -> list[dict[str, object]]:
    """The selected lines of these wheels, one row for each template and way of filling it."""
    patterns = [re.compile(line) for line in SELECTED.read_text().splitlines() if line]
    rows: dict[str, dict[str, object]] = {}
    seen: dict[str, set[str]] = {}
    for wheel in wheels:
        version = wheel.name.split("-")[1]
        for parts in messages(wheel):
            text = template(parts)
            if any(pattern.search(text) for pattern in patterns):
                example, values = fill(parts)
                rows.setdefault(
                    example,
                    {"template": text, "releases": [], "example": example, "values": values},
                )
                seen.setdefault(example, set()).add(version)
    for example, row in rows.items():
        row["releases"] = sorted(seen[example], key=release_key)
    return [rows[example] for example in sorted(rows)]


def main() -> int:
    """Write the fixture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("wheels", nargs="+", type=Path)
    rows = catalogue(parser.parse_args().wheels)
    OUTPUT.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(f"{len(rows)} lines -> {OUTPUT}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
