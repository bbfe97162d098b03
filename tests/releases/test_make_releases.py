"""The table maker reads every layout that releases have used, without running it."""

from __future__ import annotations

import gzip
import importlib.util
import json
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"

EARLY = """
CHOICES = ["auto", "dummy"]
@dataclasses.dataclass
class ServerArgs:
    model_path: str
    load_format: str = "auto"
    tp_size: int = 1
    cuda_graph_bs: Optional[List[int]] = None
    limit: int = 10 * 1000
    trust_remote_code: bool = False
    names: List[str] = dataclasses.field(default_factory=list)

    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--model-path", "--model", type=str)
        parser.add_argument("--load-format", choices=CHOICES)
        parser.add_argument("--tensor-parallel-size", "--tp-size", type=int)
        parser.add_argument("--cuda-graph-bs", type=int, nargs="+")
        parser.add_argument("--limit", type=int)
        parser.add_argument("--trust-remote-code", action="store_true")
        parser.add_argument("--config", type=str)
raise SystemExit("must not run")
"""

LATE = """
class Settings(msgspec.Struct):
    _NS_PATH = "settings"
    model_path: A[str, Arg(help="x", aliases=["--model"])]
    gemm_runner_backend: A[str, Arg(cli_name="--gemm-backend")] = "auto"
    flag: A[Optional[bool], Arg(action=argparse.BooleanOptionalAction, fallback=False)] = None
    hidden: A[int, Arg(no_cli=True)] = 1
    rank: A[int, Derived(doc="x")] = 0
    sizes: A[Optional[List[int]], Arg(nargs="+")] = None
"""


@pytest.fixture
def maker(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    spec = importlib.util.spec_from_file_location("make_releases", SCRIPTS / "make_releases.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "make_releases", module)
    spec.loader.exec_module(module)
    return module


def wheel(folder: Path, version: str, files: dict[str, str]) -> Path:
    path = folder / f"sglang-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


def test_early_layout(maker: ModuleType, tmp_path: Path) -> None:
    path = wheel(tmp_path, "0.4.1", {"sglang/srt/server_args.py": EARLY})
    found = maker.read_wheel(path)
    fields = found["fields"]
    assert "default" not in fields["model_path"]
    assert fields["model_path"]["flags"] == ["--model-path", "--model"]
    assert fields["load_format"]["choices"] == ["auto", "dummy"]
    assert fields["tp_size"]["flags"] == ["--tensor-parallel-size", "--tp-size"]
    assert fields["cuda_graph_bs"]["kind"] == "list"
    assert (fields["cuda_graph_bs"]["items"], fields["cuda_graph_bs"]["nargs"]) == ("int", "+")
    assert fields["limit"]["default"] == 10_000
    assert fields["trust_remote_code"]["kind"] == "bool"
    assert fields["names"] == {**{"kind": "list", "default": [], "flags": [], "items": "str"}}
    assert found["flags"] == {"--config": {"takes": "1"}}


def test_late_layout(maker: ModuleType, tmp_path: Path) -> None:
    files = {
        "sglang/srt/server_args.py": "class ServerArgs:\n    pass\n",
        "sglang/srt/arg_groups/fields/settings.py": LATE,
    }
    fields = maker.read_wheel(wheel(tmp_path, "0.5.20", files))["fields"]
    assert fields["gemm_runner_backend"]["flags"] == ["--gemm-backend"]
    assert fields["flag"]["kind"] == "tristate"
    assert fields["flag"]["flags"] == ["--flag", "--no-flag"]
    assert fields["flag"]["fallback"] is False
    assert fields["hidden"]["flags"] == []
    assert fields["sizes"]["kind"] == "list"
    assert "rank" not in fields


def test_deltas_are_written_deterministically(maker: ModuleType, tmp_path: Path) -> None:
    wheel(tmp_path, "0.4.1", {"sglang/srt/server_args.py": EARLY})
    wheel(tmp_path, "0.4.2", {"sglang/srt/server_args.py": EARLY.replace("limit", "bound")})
    out = tmp_path / "out.json.gz"
    assert maker.main([str(tmp_path), str(out)]) == 0
    first = out.read_bytes()
    assert maker.main([str(tmp_path), str(out)]) == 0
    assert out.read_bytes() == first
    second = json.loads(gzip.decompress(first))["0.4.2"]
    assert list(second["fields"]["set"]) == ["bound"]
    assert second["fields"]["drop"] == ["limit"]


def test_no_wheels_is_a_usage_error(maker: ModuleType, tmp_path: Path) -> None:
    assert maker.main([str(tmp_path)]) == 2
    assert maker.main([]) == 2
