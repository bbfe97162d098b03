"""The `server_args=` line: both forms, nested values, cuts, damage and hostile text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forensics.launch import Launch, parse_dump
from forensics.releases import table

CALL = (
    "[2026-02-18 23:47:15] server_args=ServerArgs(model_path='org/m', tp_size=8, "
    "mem_fraction_static=0.95, trust_remote_code=True, context_length=None, "
    "json_model_override_args='{\"a\": 1}', cuda_graph_bs=[1, 2, 4, 8], mm_process_config={}, "
    "schedule_conservativeness=1.0)"
)


def parsed(text: str) -> Launch:
    launch = parse_dump(text)
    assert launch is not None
    return launch


def test_call_form() -> None:
    launch = parsed(CALL)
    assert launch.flags == {
        "model_path": "org/m",
        "tp_size": 8,
        "mem_fraction_static": 0.95,
        "trust_remote_code": True,
        "context_length": None,
        "json_model_override_args": '{"a": 1}',
        "cuda_graph_bs": [1, 2, 4, 8],
        "mm_process_config": {},
        "schedule_conservativeness": 1.0,
    }
    assert not launch.truncated
    assert launch.release_range is not None
    assert launch.release_range[1] <= "0.5.18"


def test_dict_form_belongs_to_late_releases() -> None:
    launch = parsed("server_args={'model_path': 'm', 'tp_size': 4, 'x': {'a': [1, None]}, 'y': ()}")
    assert launch.flags == {"model_path": "m", "tp_size": 4, "x": {"a": [1, None]}, "y": []}
    assert launch.release_range == ("0.5.19", "0.5.23")


def test_nested_values() -> None:
    launch = parsed(
        "server_args=ServerArgs(cuda_graph_config=CudaGraphConfig(decode=PhaseConfig("
        "backend='full', max_bs=256, bs=[1, 2]), prefill=None), lora_paths=[LoRARef(lora_name='a',"
        " lora_path='/p', pinned=False)], custom_sigquit_handler=<function f.<locals>.<lambda> at "
        "0x7f>, path=PosixPath('/x'), dtype=torch.bfloat16, e=1e-05, n=-1, s={1, 2}, q=Mode.FAST)"
    )
    assert launch.flags == {
        "cuda_graph_config": {
            "decode": {"backend": "full", "max_bs": 256, "bs": [1, 2]},
            "prefill": None,
        },
        "lora_paths": [{"lora_name": "a", "lora_path": "/p", "pinned": False}],
        "custom_sigquit_handler": "<function f.<locals>.<lambda> at 0x7f>",
        "path": "/x",
        "dtype": "torch.bfloat16",
        "e": 1e-05,
        "n": -1,
        "s": [1, 2],
        "q": "Mode.FAST",
    }


def test_quotes_and_escapes() -> None:
    launch = parsed(r"""server_args=ServerArgs(a='it\'s', b="it's", c='tab\t', d=b'raw', e='\x')""")
    assert launch.flags["a"] == launch.flags["b"] == "it's"
    assert launch.flags["c"] == "tab\t"
    assert launch.flags["e"] == r"\x"


@pytest.mark.parametrize("length", range(20, len(CALL), 7))
def test_cut_anywhere(length: int) -> None:
    launch = parse_dump(CALL[:length])
    if launch is None:
        return
    assert launch.truncated
    whole = parsed(CALL).flags
    assert launch.flags == {name: whole[name] for name in launch.flags}


def test_a_cut_number_is_not_a_number() -> None:
    assert "mem_fraction_static" not in parsed(CALL[: CALL.index("0.95") + 3]).flags


def test_damage_costs_one_field() -> None:
    launch = parsed("server_args=ServerArgs(model_path='m', odd=?%!, tp_size=8)")
    assert launch.flags == {"model_path": "m", "tp_size": 8}
    assert launch.truncated


def test_damage_in_depth_ends_the_reading() -> None:
    launch = parsed("server_args=ServerArgs(tp_size=8, c=Config(a=?%, max_bs=1), dp_size=2)")
    assert launch.flags == {"tp_size": 8}


def test_the_last_dump_counts() -> None:
    assert parsed(f"{CALL} server_args=ServerArgs(tp_size=2)").flags == {"tp_size": 2}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "server_args",
        "global_server_args_dict={'tp_size': 8}",
        "Global server args updated! get_global_server_args()=ServerArgs(tp_size=8)",
        "server_args=ServerArgs(",
        "server_args=None",
    ],
)
def test_no_dump(text: str) -> None:
    assert parse_dump(text) is None


def test_secrets_are_hidden() -> None:
    launch = parsed(
        "server_args=ServerArgs(api_key='sekrit', admin_api_key=None, ssl_keyfile_password='pw', "
        "model_path='https://user:pw@host/m', tokenizer_path='t', max_total_tokens=5, "
        "served_model_name='hf_abcdefghijklmnop', extra={'hub_token': 'abc'})"
    )
    assert "sekrit" not in str(launch)
    assert "pw" not in str(launch)
    assert "abc" not in str(launch)
    assert launch.flags["api_key"] == "[redacted]"
    assert launch.flags["admin_api_key"] is None
    assert launch.flags["tokenizer_path"] == "t"
    assert launch.flags["max_total_tokens"] == 5


def test_every_default_reads_back() -> None:
    for version in ("0.4.4", "0.5.9", "0.5.16"):
        fields = table(version).fields.values()
        known = {f.name: f.default for f in fields if isinstance(f.default, bool | int | float)}
        text = ", ".join(f"{name}={value!r}" for name, value in known.items())
        assert parsed(f"server_args=ServerArgs({text})").flags == known


HOSTILE = {
    "depth": "server_args=ServerArgs(a=" + "[" * 1_000_000,
    "calls": "server_args=ServerArgs(a=" + "f(" * 500_000,
    "quote": "server_args=ServerArgs(a='" + "x\\'" * 300_000,
    "items": "server_args=ServerArgs(a=[" + "1," * 500_000,
    "fields": "server_args=ServerArgs(" + "a=1, " * 200_000,
    "damage": "server_args=ServerArgs(" + "a=%, " * 200_000,
    "angles": "server_args=ServerArgs(a=" + "<" * 1_000_000,
    "digits": "server_args=ServerArgs(a=" + "9" * 100_000 + ")",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_costs_little(name: str) -> None:
    parse_dump(CALL)
    started = time.perf_counter()
    parse_dump(HOSTILE[name])
    assert time.perf_counter() - started < 3


def test_depth_is_bounded() -> None:
    text = f"server_args=ServerArgs(tp_size=8, a={'[' * 30}{']' * 30}, dp_size=2)"
    launch = parsed(text)
    assert launch.flags == {"tp_size": 8}
    assert launch.truncated


def test_a_usual_dump_is_fast() -> None:
    fields = ", ".join(f"some_field_of_a_release_{i}='value'" for i in range(250))
    text = f"server_args=ServerArgs({fields})"
    assert len(text) > 8_000
    parse_dump(text)
    started = time.perf_counter()
    for _ in range(5):
        parse_dump(text)
    assert (time.perf_counter() - started) / 5 < 0.06  # 0.01 on a quiet machine


literals = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**12), 10**12)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="ascii"), max_size=8).filter(lambda s: "://" not in s),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=8,
)
names = st.from_regex(r"value_[a-z]{1,8}", fullmatch=True)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(names, literals, min_size=1, max_size=6), st.booleans())
def test_reprs_read_back(values: dict[str, object], as_dict: bool) -> None:
    call = ", ".join(f"{name}={value!r}" for name, value in values.items())
    launch = parsed(f"server_args={values!r}" if as_dict else f"server_args=ServerArgs({call})")
    assert launch.flags == values
    assert not launch.truncated


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_survived(text: str) -> None:
    parse_dump(f"server_args=ServerArgs({text}")
    parse_dump(f"server_args={{{text}")
