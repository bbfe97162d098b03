"""Dump, command, and the same values again, as each release's own parser reads them.

For every release: values of every kind stand in a dump of that release's layout; the command that
the tool makes of it, as an argument list and as text for a shell, gives the same values.
"""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_parsers import LONG_NAMES, Parser, actions, declared, documents, real, tables

from forensics.launch import Launch, parse_command, parse_dump
from forensics.launch.arguments import tokens, untypable
from forensics.launch.redact import is_secret
from forensics.redact import redact_value
from forensics.releases import releases, table, version_key

SERVER = ["python3", "-m", "sglang.launch_server"]
LAYOUTS = ["0.4.1.post7", "0.4.4", "0.5.9", "0.5.14", "0.5.18", "0.5.19", "0.5.23"]
NOT_TYPED = {"custom_sigquit_handler", "cuda_graph_config"}
"""A function, and what resolution always rewrites (its own test below)."""


def is_harmless(value: Any) -> bool:
    """Nothing in it reads as a secret, which a dump never keeps."""
    return bool(redact_value(value) == value)


NASTY = (
    *("", " ", "-", "-x", "--", "--model-path", "--tp=2", "-1", "-1e5", "it's", 'a "b" c', "$(id)"),
    *("`id`", "; rm -rf /", "a\nb", "\\", "\\n", "${X}", "!", "#", "~", "*", "ü 模型 🙂", "a=b"),
    *("{", "[1]", '{"a": 1}', "None", "True", "<x>", "'", '"', "a,b", "\t", "%s", "@file", "\x7f"),
)
nasty = st.sampled_from(NASTY)
words = (nasty | st.text(max_size=12)).filter(is_harmless)
numbers = st.integers(-(10**12), 10**12) | st.integers(-3, 300)
floats = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([-0.5, 1e-05, 0.9])
json_leaves = st.none() | st.booleans() | numbers | floats | words
json_values = st.recursive(
    st.dictionaries(words, json_leaves, max_size=3) | st.lists(json_leaves, max_size=3),
    lambda inner: st.dictionaries(words, inner, max_size=2) | st.lists(inner, max_size=2),
    max_leaves=5,
).filter(is_harmless)
lora = words.map(str.strip) | st.fixed_dictionaries(
    {"lora_name": words, "lora_path": words, "pinned": st.booleans()}
)


def values_for(action: dict[str, Any]) -> st.SearchStrategy[Any]:
    """What this argument can come to, as its release declares it."""
    if action["action"] in ("_StoreTrueAction", "DeprecatedStoreTrueAction"):
        return st.just(True)
    if action["action"] == "BooleanOptionalAction":
        return st.booleans()
    if action["action"] == "LoRAPathAction":
        return st.lists(lora.filter(lambda v: not str(v).startswith("{")), max_size=3) | st.lists(
            st.fixed_dictionaries({"lora_name": words, "lora_path": words}), min_size=1, max_size=2
        )
    kinds = {"int": numbers, "human_readable_int": numbers, "float": floats}
    kinds |= {"loads": json_values, "json_list_type": json_values, "bool": st.just(True)}
    nullable = words.filter(lambda v: v not in ("", "None"))
    one = kinds.get(action["type"], nullable if action["type"] == "nullable_str" else words)
    if action["choices"]:
        one = st.sampled_from(action["choices"])
    if action["nargs"] in ("+", "*"):
        return st.lists(one, min_size=action["nargs"] == "+", max_size=4)
    return one


def candidates(version: str) -> dict[str, dict[str, Any]]:
    """The arguments that set a field, by the field."""
    known = set(documents()[version]["fields"])
    found = {}
    for action in actions(version):
        name = action["dest"] if action["dest"] in known else LONG_NAMES.get(action["dest"], "")
        own = not action["action"].startswith("Deprecated") or action["dest"] == name
        if name in known and own and name not in NOT_TYPED and not is_secret(name):
            found.setdefault(name, action)
    return found


def dump(version: str, values: dict[str, Any]) -> str:
    """The line that the release prints."""
    if version_key(version) >= version_key("0.5.19"):
        return f"[2026-02-18 23:47:15] server_args={values!r}"
    call = ", ".join(f"{name}={value!r}" for name, value in values.items())
    return f"[2026-02-18 23:47:15] server_args=ServerArgs({call})"


def read(version: str, values: dict[str, Any]) -> Launch:
    launch = parse_dump(dump(version, values))
    assert launch is not None
    launch.release = version
    launch.typed = set(values)
    return launch


@st.composite
def launches(draw: st.DrawFn, version: str) -> dict[str, Any]:
    known = candidates(version)
    names = draw(st.lists(st.sampled_from(sorted(known)), unique=True, min_size=1, max_size=8))
    values = {name: draw(values_for(known[name])) for name in names}
    return {"model_path": draw(words.filter(bool)), **values}


def typable(version: str, values: dict[str, Any]) -> dict[str, Any]:
    """What a command line of the release can and need say.

    A value that the release falls back to by itself is left to it.
    """
    release = table(version)
    own = {n for n, v in values.items() if v == tables()[version]["fields"][n].get("fallback")}
    return {n: v for n, v in values.items() if n not in own and not untypable(n, v, release)}


@pytest.mark.parametrize("version", releases())
@settings(max_examples=20, deadline=None)
@given(st.data())
def test_dump_to_command_to_the_same_values(version: str, data: st.DataObject) -> None:
    values = data.draw(launches(version))
    launch = read(version, values)
    assert launch.flags == values
    argv = launch.argv()
    assert argv[:3] == SERVER
    assert shlex.split(shlex.join(argv)) == argv
    wanted = typable(version, values)
    for parser in (real(version), declared(version)):
        assert_same(parser, argv[3:], wanted)


def assert_same(parser: Parser, arguments: list[str], wanted: dict[str, Any]) -> None:
    """The arguments give the wanted values, and nothing else is touched."""
    if "model_path" not in wanted:
        arguments = [*arguments, "--model-path=m"]
    found = parser.values(arguments)
    untouched = parser.values(["--model-path=m"])
    for name, value in found.items():
        expected = wanted.get(name, untouched[name])
        if name != "model_path" or name in wanted:
            assert (value, type(value)) == (expected, type(expected)) or (
                isinstance(value, float) and value == expected
            ), name


@pytest.mark.parametrize("version", releases())
def test_a_launch_without_flags_has_none_in_its_command(version: str) -> None:
    known = candidates(version)
    values = {name: action["default"] for name, action in known.items()}
    launch = read(version, {**values, "model_path": "m"})
    launch.typed = set()
    found = [a.field for a in launch.minimal_flags()]
    assert found == ["model_path"]


@pytest.mark.parametrize("version", releases())
@settings(max_examples=10, deadline=None)
@given(st.data())
def test_what_is_typed_is_read_as_the_release_reads_it(version: str, data: st.DataObject) -> None:
    """The tool's own reading of a command line against the release's parser."""
    values = typable(version, data.draw(launches(version)))
    release = table(version)
    argv = [*SERVER, *(w for n, v in values.items() for w in tokens(n, v, release) or [])]
    if any("\n" in word or set(word) & set("();<>|&`") for word in argv):
        return  # a line of a log does not tell a quoted operator from one that ends the command
    launch = parse_command(shlex.join(argv), release)
    if launch is None:  # it reads as a mention
        return
    there = real(version).values([*argv[3:], *([] if "model_path" in values else ["--model=m"])])
    for name, value in launch.flags.items():
        if is_harmless(there[name]):
            assert value == there[name], name


@pytest.mark.parametrize("version", LAYOUTS)
@pytest.mark.parametrize("text", ["", "-", "-x", "-1", "--", "--tp-size", "--tp-size=2", "-1.5 a"])
def test_text_that_reads_as_a_flag(version: str, text: str) -> None:
    release = table(version)
    written = tokens("served_model_name", text, release)
    if untypable("served_model_name", text, release):
        assert (text, written) == ("--", [])
        return
    assert written
    found = real(version).values(["--model-path=m", *written, "--tp-size=1"])
    assert (found["served_model_name"], found["tp_size"]) == (text, 1)


@pytest.mark.parametrize("version", ["0.5.14", "0.5.16", "0.5.18", "0.5.19", "0.5.23"])
def test_the_graph_configuration_as_json(version: str) -> None:
    config = {"decode": {"backend": "full", "max_bs": 64, "bs": [1, 2]}}
    written = tokens("cuda_graph_config", config, table(version))
    assert written
    assert real(version).values(["--model-path=m", *written])["cuda_graph_config"] == config


@pytest.mark.parametrize(
    ("version", "old", "field", "value"),
    [
        ("0.5.13", ["--cuda-graph-max-bs", "8"], "cuda_graph_max_bs", 8),
        ("0.5.14", ["--cuda-graph-max-bs", "8"], "cuda_graph_max_bs_decode", 8),
        ("0.5.19", ["--cuda-graph-bs", "1", "2"], "cuda_graph_bs_decode", [1, 2]),
        ("0.5.19", ["--disable-piecewise-cuda-graph"], "cuda_graph_backend_prefill", "disabled"),
        ("0.5.19", ["--enable-breakable-cuda-graph"], "cuda_graph_backend_prefill", "breakable"),
        ("0.5.16", ["--nsa-decode-backend", "fa3"], "dsa_decode_backend", "fa3"),
        ("0.5.19", ["--mamba-scheduler-strategy", "x"], "mamba_radix_cache_strategy", "x"),
        ("0.5.23", ["--disable-cuda-graph"], "disable_cuda_graph", True),
        ("0.5.23", ["--enable-dp-attention"], "enable_dp_attention", True),
        ("0.5.23", ["--monokernel-backend", "amd"], "enable_amd_monokernel", True),
        ("0.5.9", ["--mem-fraction", "0.9"], "mem_fraction_static", 0.9),
        ("0.5.9", ["--tp", "8"], "tp_size", 8),
        ("0.5.23", ["--max-total-tokens", "8k"], "max_total_tokens", 8000),
    ],
)
def test_old_and_short_spellings(version: str, old: list[str], field: str, value: Any) -> None:
    if "8k" not in old:
        choices = {a["dest"]: a["choices"] for a in actions(version)}.get(field)
        if not choices or value in choices:
            assert real(version).values(["--model-path=m", *old])[field] == value
    launch = parse_command(shlex.join([*SERVER, "--model-path", "m", *old]), table(version))
    assert launch is not None
    assert launch.flags == {"model_path": "m", field: value}
