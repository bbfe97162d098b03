"""Commands against the argument parser of a real, installed SGLang: real imports, real choices.

Runs only with `-m sglang`; `scripts/sglang_cpu_venv.sh` makes the environment.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_parsers import LONG_NAMES, ROOT, actions, documents
from test_round_trip import launches, read, typable

pytestmark = pytest.mark.sglang

PYTHON = os.environ.get("SGLANG_CPU_PYTHON") or str(ROOT / "build/sglang-cpu/bin/python")
SHIM = ROOT / "tests" / "live" / "sglang_cpu" / "shim"
ASKED = """
import argparse, json, sys
from sglang import __version__
from sglang.srt.server_args import ServerArgs
parser = argparse.ArgumentParser()
ServerArgs.add_cli_args(parser)
found = [vars(parser.parse_args(argv)) for argv in json.load(sys.stdin)]
flags = {flag: a.dest for a in parser._actions for flag in a.option_strings}
print("\\n" + json.dumps({"version": __version__, "found": found, "flags": flags}, default=str))
"""


def ask(calls: list[list[str]]) -> dict[str, Any]:
    if not Path(PYTHON).exists():
        pytest.skip("scripts/sglang_cpu_venv.sh makes the Python with sglang that is missing")
    env = {**os.environ, "PYTHONPATH": str(SHIM), "SGLANG_USE_CPU_ENGINE": "1"}
    done = subprocess.run(
        [PYTHON, "-c", ASKED],
        input=json.dumps(calls),
        env=env,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=300,
    )
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return answer


def test_the_fixture_has_the_flags_of_the_real_parser() -> None:
    answer = ask([])
    here = {flag: a["dest"] for a in actions(answer["version"]) for flag in a["flags"]}
    assert {f: d for f, d in answer["flags"].items() if d != "help"} == here


def test_commands_come_to_the_same_values() -> None:
    version = ask([])["version"]
    cases: list[tuple[dict[str, Any], list[str]]] = []

    @settings(max_examples=150, deadline=None, database=None)
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        values = data.draw(launches(version))
        wanted = typable(version, values)
        # Their choices come from parts of SGLang that the fixture has none of.
        for name in ("reasoning_parser", "tool_call_parser", "kv_canary_real_data"):
            values.pop(name, None)
            wanted.pop(name, None)
        argv = read(version, values).argv()[3:]
        cases.append((wanted, argv if "model_path" in wanted else [*argv, "--model-path=m"]))

    collect()
    known = set(documents()[version]["fields"])
    found = ask([argv for _, argv in cases])["found"]
    for (wanted, argv), namespace in zip(cases, found, strict=True):
        there = {LONG_NAMES.get(n, n) if n not in known else n: v for n, v in namespace.items()}
        assert {name: there[name] for name in wanted} == wanted, argv
