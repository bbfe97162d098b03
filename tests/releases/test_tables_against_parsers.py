"""The shipped table says of every release what the release's own parser does."""

from __future__ import annotations

from typing import Any

import pytest
from own_parsers import LONG_NAMES, actions, documents

from forensics.releases import NO_DEFAULT, releases, table

STAND_INS = {"--pre-warm-nccl"}
"""Its default is computed from the machine (ROCm or not)."""
NOT_ENFORCED = {"ep_dispatch_algorithm", "expert_distribution_recorder_mode"}
"""Typed `Literal` in the class; the parser takes any text."""


def by_flag(version: str) -> dict[str, tuple[str, dict[str, Any]]]:
    names = table(version).fields
    found = {}
    for action in actions(version):
        name = action["dest"]
        name = name if name in names else LONG_NAMES.get(name, name)
        found |= dict.fromkeys(action["flags"], (name, action))
    return found


@pytest.mark.parametrize("version", releases())
def test_fields(version: str) -> None:
    assert set(table(version).fields) == set(documents()[version]["fields"])


@pytest.mark.parametrize("version", releases())
def test_every_flag_sets_the_field_that_it_sets_there(version: str) -> None:
    release = table(version)
    there = {f: n if n in release.fields else None for f, (n, _) in by_flag(version).items()}
    here: dict[str, str | None] = {flag: extra.field for flag, extra in release.extra.items()}
    for declared in release.fields.values():
        here |= dict.fromkeys(declared.flags, declared.name)
    assert here == there


@pytest.mark.parametrize("version", releases())
def test_kinds_and_values(version: str) -> None:
    found = by_flag(version)
    for declared in table(version).fields.values():
        for flag in declared.flags:
            _, action = found[flag]
            kind = {
                "_StoreTrueAction": "bool",
                "DeprecatedStoreTrueAction": "bool",
                "BooleanOptionalAction": "tristate",
                "LoRAPathAction": "list",
            }.get(action["action"])
            if kind is None and action["nargs"] in ("+", "*"):
                kind = "list"
            types = {"loads": "json", "json_list_type": "json", "human_readable_int": "int"}
            types |= {"parse_cuda_graph_config_arg": "json", None: "str", "bool": "other"}
            types |= {"nullable_str": "str", "parse_cuda_graph_backend_arg": "str"}
            kind = kind or types.get(action["type"], action["type"])
            unlike = declared.kind == "other" and kind == "str"
            assert declared.kind == kind or unlike, (flag, action)
            if kind == "list":
                assert (declared.nargs, declared.items) == (action["nargs"], action["type"])
            elif kind not in ("bool", "tristate"):
                assert declared.nargs == action["nargs"], flag


@pytest.mark.parametrize("version", releases())
def test_what_a_launch_has_without_the_flag(version: str) -> None:
    found = by_flag(version)
    for declared in table(version).fields.values():
        if declared.default is NO_DEFAULT or not set(declared.flags) - STAND_INS:
            continue
        _, action = found[declared.flags[0]]
        assert declared.default == action["default"], declared.name
        if declared.name not in NOT_ENFORCED and declared.choices:
            assert set(declared.choices) - {None} == set(action["choices"]), declared.name
