"""The argument parsers of the releases, as argparse parsers, built without the tool's own code.

`real` has the actions that each release's own source registered (scripts/release_parsers.py);
`declared` is made from the table that the tool ships, read as plain JSON.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]
LONG_NAMES = {
    "tensor_parallel_size": "tp_size",
    "pipeline_parallel_size": "pp_size",
    "data_parallel_size": "dp_size",
    "expert_parallel_size": "ep_size",
    "attention_context_parallel_size": "attn_cp_size",
    "moe_data_parallel_size": "moe_dp_size",
}
"""What `from_cli_args` copies by hand, in the releases that do."""


class Refused(ValueError):
    """What argparse would print before it exits."""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Refused(message)

    def values(self, arguments: list[str]) -> dict[str, Any]:
        """The values by the name that they have in ServerArgs."""
        return {LONG_NAMES.get(n, n): v for n, v in vars(self.parse_args(arguments)).items()}


class LoRAPaths(argparse.Action):
    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        items = [v.strip() for v in values]
        loaded = [json.loads(v) if v.startswith("{") and v.endswith("}") else v for v in items]
        setattr(namespace, self.dest, loaded)


class StoreFixed(argparse.Action):
    def __init__(self, *args: Any, fixed: Any, **words: Any) -> None:
        super().__init__(*args, **words)
        self.fixed = fixed

    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        setattr(namespace, self.dest, self.fixed)


class Ignored(argparse.Action):
    def __call__(self, parser: Any, namespace: Any, values: Any, option: Any = None) -> None:
        pass


TYPES: dict[str | None, Callable[[str], Any]] = {
    None: str,
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "loads": json.loads,
    "json_list_type": json.loads,
    "human_readable_int": int,
    "nullable_str": lambda text: None if text in ("", "None") else text,
    "parse_cuda_graph_config_arg": json.loads,
    "parse_cuda_graph_backend_arg": str,
}


@cache
def documents() -> dict[str, Any]:
    path = ROOT / "fixtures" / "launch" / "parsers.json.xz"
    found: dict[str, Any] = json.loads(lzma.decompress(path.read_bytes()))
    return found


@cache
def actions(version: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = documents()[version]["actions"]
    return found


@cache
def real(version: str) -> Parser:
    """The parser that the release itself builds."""
    parser = Parser(prog=version)
    for action in actions(version):
        _add(parser, action)
    return parser


def _add(parser: Parser, action: dict[str, Any]) -> None:
    words: dict[str, Any] = {"dest": action["dest"], "default": action["default"]}
    words["required"] = action["required"]
    kind = action["action"]
    if kind == "_StoreTrueAction":
        words["action"] = "store_true"
    elif kind == "BooleanOptionalAction":
        words["action"] = argparse.BooleanOptionalAction
        action = {**action, "flags": [f for f in action["flags"] if not f.startswith("--no-")]}
    elif kind in ("DeprecatedStoreTrueAction", "DeprecatedStoreConstAction", "DeprecatedAction"):
        words |= {"action": Ignored if kind == "DeprecatedAction" else StoreFixed}
        words |= {"nargs": action["nargs"], "choices": action["choices"]}
        if words["action"] is StoreFixed:
            words["fixed"] = action["const"]
    else:
        words |= {"type": TYPES[action["type"]], "nargs": action["nargs"]}
        words["choices"] = action["choices"]
        if kind == "LoRAPathAction":
            words["action"] = LoRAPaths
        if action["nargs"] == "?":
            words["const"] = action["const"]
    parser.add_argument(*action["flags"], **words)


@cache
def tables() -> dict[str, dict[str, Any]]:
    """The shipped table, its deltas put together: fields and further flags of each release."""
    packed = (ROOT / "forensics" / "releases.json.gz").read_bytes()
    now: dict[str, Any] = {"fields": {}, "flags": {}}
    found = {}
    document = json.loads(gzip.decompress(packed))
    for version, delta in document.items():
        now = {
            part: {k: v for k, v in now[part].items() if k not in delta[part]["drop"]}
            | delta[part]["set"]
            for part in ("fields", "flags")
        }
        found[version] = now
    return found


@cache
def declared(version: str) -> Parser:
    """A parser made from what the table says of the release."""
    parser = Parser(prog=version)
    for name, field in tables()[version]["fields"].items():
        if not field["flags"]:
            continue
        words: dict[str, Any] = {"dest": name, "default": field.get("default")}
        if field["kind"] == "bool":
            words["action"] = "store_true"
        elif field["kind"] == "tristate":
            words["action"] = argparse.BooleanOptionalAction
        elif name == "lora_paths":
            words |= {"action": LoRAPaths, "nargs": "*"}
        else:
            other = bool if field.get("default") is False else str
            kinds = {"other": other, "int": int, "float": float, "json": json.loads, "str": str}
            words["type"] = kinds[field.get("items", field["kind"])]
            words["nargs"] = field.get("nargs")
        flags = [f for f in field["flags"] if not f.startswith("--no-")]
        parser.add_argument(*flags, **words)
    return parser
