"""Read what each SGLang release declares, from its wheel, with `ast` alone.

Usage: python scripts/make_releases.py WHEEL_DIR [OUT]

For every `sglang-*.whl` in WHEEL_DIR: the ServerArgs fields in their order, literal defaults,
flags, kinds and choices. Nothing is imported or executed. The result is written as deltas from
release to release, gzipped JSON, deterministic. Get a wheel with
`pip download --no-deps -d WHEEL_DIR sglang==0.5.9`.
"""

from __future__ import annotations

import ast
import gzip
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fold_constants import MISSING, Constants

from forensics.releases import version_key

FIELDS = "sglang/srt/arg_groups/fields/"
SOURCES = (
    "sglang/srt/server_args.py",
    "sglang/srt/arg_groups/choices.py",
    "sglang/srt/arg_groups/field_order.py",
    "sglang/srt/model_executor/cuda_graph_config.py",
)
Record = dict[str, Any]
"""A field: `flags`, `kind`, and where known `default`, `fallback`, `choices`, `nargs`, `items`.

`default` is what a launch has without the flag, so the parser's where it differs from the class's;
`items` is what the values of a list are: int, float or str.
"""


def read_wheel(path: Path) -> Record:
    """One release: `{"fields": {name: Record}, "flags": {flag: Record}}`, in declared order."""
    with zipfile.ZipFile(path) as wheel:
        names = [n for n in wheel.namelist() if n in SOURCES or n.startswith(FIELDS)]
        trees = {n: ast.parse(wheel.read(n)) for n in sorted(names) if n.endswith(".py")}
    constants = Constants(list(trees.values()))
    fields: dict[str, Record] = {}
    for name, tree in trees.items():
        for node in tree.body:
            namespace = name.startswith(FIELDS) and "_NS_PATH" in ast.unparse(node)
            if isinstance(node, ast.ClassDef) and (node.name == "ServerArgs" or namespace):
                fields.update(read_class(node, constants))
    order = {n: i for i, n in enumerate(constants.values.get("POSITIONAL_FIELD_ORDER", ()))}
    fields = dict(sorted(fields.items(), key=lambda item: order.get(item[0], len(order))))
    flags: dict[str, Record] = {}
    for call in argument_calls(trees[SOURCES[0]]):
        read_argument(call, fields, flags, constants)
    for record in fields.values():
        record.setdefault("flags", [])
    return {"fields": fields, "flags": flags}


def read_class(node: ast.ClassDef, constants: Constants) -> Iterator[tuple[str, Record]]:
    """The annotated assignments of a class that are ServerArgs fields."""
    for statement in node.body:
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        annotation, name = statement.annotation, statement.target.id
        metadata = annotated_metadata(annotation)
        if ast.unparse(annotation).startswith("ClassVar"):
            continue
        kind_of = annotation
        if metadata is not None and isinstance(annotation, ast.Subscript):
            kind_of = getattr(annotation.slice, "elts", [annotation.slice])[0]
            if any(ast.unparse(item).startswith("Derived") for item in metadata):
                continue
        record: Record = {"kind": kind(ast.unparse(kind_of))}
        if record["kind"] == "literal":
            record["choices"] = literal_choices(kind_of)
            first = next((c for c in record["choices"] if c is not None), "")
            record["kind"] = type(first).__name__
        elif record["kind"] == "list":
            record["items"] = item_kind(ast.unparse(kind_of))
        default = MISSING if statement.value is None else constants.fold(statement.value)
        if default is not MISSING:
            record["default"] = default
        if metadata is not None:
            apply_metadata(name, record, metadata, constants)
        yield name, record


def annotated_metadata(annotation: ast.expr) -> list[ast.expr] | None:
    """What follows the type in `A[type, ...]`; None for a plain annotation."""
    if not isinstance(annotation, ast.Subscript) or ast.unparse(annotation.value) != "A":
        return None
    return list(annotation.slice.elts[1:]) if isinstance(annotation.slice, ast.Tuple) else []


def kind(annotation: str) -> str:
    """How a value of this type is written on a command line."""
    text = annotation.replace("typing.", "")
    for wrapper in ("Optional[", "Union["):
        if text.startswith(wrapper):
            text = text[len(wrapper) : -1]
    text = text.removesuffix(" | None").removesuffix(", None")
    lowered = text.lower()
    for prefix in ("literal", "list", "dict", "bool", "int", "float", "str"):
        if lowered.startswith(prefix):
            return {"dict": "json"}.get(prefix, prefix)
    return "list" if "list[" in lowered else "other"


def item_kind(annotation: str) -> str:
    """What a list of this type holds; text where it says nothing better."""
    inner = annotation.lower().rpartition("list[")[2]
    return next((name for name in ("int", "float") if inner.startswith(name)), "str")


def literal_choices(annotation: ast.expr) -> list[Any]:
    """The values of a `Literal[...]` somewhere in a type."""
    for node in ast.walk(annotation):
        if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("Literal"):
            try:
                value = ast.literal_eval(node.slice)
            except ValueError:
                return []
            return list(value) if isinstance(value, tuple) else [value]
    return []


def apply_metadata(
    name: str, record: Record, metadata: list[ast.expr], constants: Constants
) -> None:
    """Flags and kind as `Arg(...)` states them (from 0.5.14)."""
    words: dict[str, ast.expr] = {}
    on_command_line = False
    for item in metadata:
        if isinstance(item, ast.Call) and ast.unparse(item.func) == "Arg":
            words = {word.arg: word.value for word in item.keywords if word.arg}
            on_command_line = True
        on_command_line |= isinstance(constants.fold(item), str)
    if "fallback" in words and (value := constants.fold(words["fallback"])) is not MISSING:
        record["fallback"] = value
    if not on_command_line or ("no_cli" in words and constants.fold(words["no_cli"]) is True):
        record["flags"] = []
        return
    main = constants.fold(words["cli_name"]) if "cli_name" in words else f"--{dashed(name)}"
    aliases = constants.fold(words["aliases"]) if "aliases" in words else []
    record["flags"] = [main, *aliases]
    describe(record, words, constants)
    if record["kind"] == "list":
        record.setdefault("nargs", "+")


def describe(record: Record, words: dict[str, ast.expr], constants: Constants) -> None:
    """Refine a record by the words that `Arg` and `add_argument` have in common."""
    action = ast.unparse(words["action"]) if "action" in words else ""
    parser = "type" if "type" in words else "type_parser"
    type_name = ast.unparse(words[parser]) if parser in words else ""
    if "BooleanOptional" in action:
        record["kind"] = "tristate"
        record["flags"] += [f"--no-{flag[2:]}" for flag in record["flags"][:1]]
    elif "StoreTrue" in action or action == "'store_true'":
        record["kind"] = "bool"
    elif "json" in type_name or "cuda_graph_config" in type_name:
        record["kind"] = "json"
    elif type_name in ("int", "float", "str"):
        record["kind"] = type_name
    elif "int" in type_name:
        record["kind"] = "int"
    elif type_name == "bool":
        record["kind"] = "other"
    nargs = constants.fold(words["nargs"]) if "nargs" in words else None
    if nargs in ("+", "*") or "LoRAPath" in action:
        record["kind"] = "list"
        record["items"] = type_name if type_name in ("int", "float") else record.get("items", "str")
    if nargs in ("+", "*", "?"):
        record["nargs"] = nargs
    if "LoRAPath" in action:
        record["nargs"], record["items"] = "*", "str"
    if record["kind"] != "list":
        record.pop("items", None)
    choices = constants.fold(words["choices"]) if "choices" in words else MISSING
    if isinstance(choices, list | tuple | set):
        record["choices"] = sorted(choices) if isinstance(choices, set) else list(choices)
    if "default" in words and (default := constants.fold(words["default"])) is not MISSING:
        record["default"] = default
    elif action == "'store_true'" and record.get("default") is True and "default" not in words:
        record["default"] = False


def argument_calls(tree: ast.Module) -> Iterator[ast.Call]:
    """Every `....add_argument(...)` call, in the order of the source."""
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "add_argument"
    ]
    return iter(sorted(calls, key=lambda call: call.lineno))


def read_argument(
    call: ast.Call, fields: dict[str, Record], flags: dict[str, Record], constants: Constants
) -> None:
    """One explicit argument: the flags of a field, or a deprecated way to set one."""
    words = {word.arg: word.value for word in call.keywords if word.arg}
    longs = [str(f) for arg in call.args if str(f := constants.fold(arg)).startswith("--")]
    if not longs:
        return
    dest = destination(longs, words, fields, constants)
    action = ast.unparse(words["action"]) if "action" in words else ""
    record = fields.get(dest)
    own = "Deprecated" not in action or ("Store" in action and undashed(longs[0]) == dest)
    if record is not None and own and not record.get("flags"):
        record["flags"] = longs
        describe(record, words, constants)
        return
    extra: Record = {"takes": takes(action, words, constants)}
    if record is not None:
        extra["field"] = dest
    const = words.get("const_value", words.get("const"))
    if const is not None and (value := constants.fold(const)) is not MISSING:
        extra["const"] = value
    elif "StoreTrue" in action or action == "'store_true'":
        extra["const"] = True
    flags.update(dict.fromkeys(longs, extra))


def destination(
    longs: list[str], words: dict[str, ast.expr], fields: dict[str, Record], constants: Constants
) -> str:
    """The field an argument sets; parallel sizes are copied from their long name by hand."""
    if "dest" in words:
        return str(constants.fold(words["dest"]))
    return next((n for n in map(undashed, longs) if n in fields), undashed(longs[0]))


def takes(action: str, words: dict[str, ast.expr], constants: Constants) -> str:
    """How many values follow the flag: "0", "1" or "*"."""
    nargs = constants.fold(words["nargs"]) if "nargs" in words else MISSING
    if nargs in ("+", "*"):
        return "*"
    if "nargs" in words and nargs is None:
        return "1"
    valueless = ("StoreTrue", "StoreConst", "DeprecatedAction", "'store_true'")
    return "0" if any(word in action for word in valueless) else "1"


def dashed(name: str) -> str:
    """The flag of a field by the default rule, without its dashes in front."""
    return name.replace("_", "-")


def undashed(flag: str) -> str:
    """The field that argparse derives from a flag."""
    return flag[2:].replace("-", "_")


def deltas(tables: dict[str, Record]) -> dict[str, Any]:
    """Each release as its difference from the one before; `order` only where names changed."""
    document: dict[str, Any] = {}
    before: Record = {"fields": {}, "flags": {}}
    for version in sorted(tables, key=version_key):
        now = tables[version]
        delta: dict[str, Any] = {}
        for part in ("fields", "flags"):
            changed = {k: v for k, v in now[part].items() if before[part].get(k) != v}
            gone = [k for k in before[part] if k not in now[part]]
            delta[part] = {"set": changed, "drop": gone}
        if list(now["fields"]) != list(before["fields"]):
            delta["order"] = list(now["fields"])
        document[version] = delta
        before = now
    return document


def main(argv: list[str]) -> int:
    """Write the table of every wheel in a directory; exit code 2 without wheels."""
    if not argv:
        print(__doc__, file=sys.stderr)
        return 2
    wheels = sorted(Path(argv[0]).glob("sglang-*.whl"))
    if not wheels:
        print(f"no sglang wheels in {argv[0]}", file=sys.stderr)
        return 2
    out = Path(argv[1] if len(argv) > 1 else "forensics/releases.json.gz")
    tables = {wheel.name.split("-")[1]: read_wheel(wheel) for wheel in wheels}
    text = json.dumps(deltas(tables), separators=(",", ":"))
    out.write_bytes(gzip.compress(text.encode(), mtime=0))
    for version in sorted(tables, key=version_key):
        table = tables[version]
        unknown = [n for n, record in table["fields"].items() if "default" not in record]
        print(version, len(table["fields"]), "fields; no literal default:", *unknown)
    print(f"{out}: {out.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
