"""Write down the argument parser that each SGLang release really builds.

Usage: python scripts/release_parsers.py BUILD_DIR OUT VERSION ...

Downloads the wheel of every version into BUILD_DIR (`pip download --no-deps`; one that lies there
is used), takes the modules out of it that declare arguments, and lets them build their own
`argparse` parser in a process of its own. Whatever else they import (torch, kernels) is a stand-in
that does nothing; so it needs neither a GPU nor SGLang's dependencies, only `msgspec`.
OUT gets, per version, the actions of that parser: the tests build argparse parsers from it and
hold the tool's commands against them, without network.
"""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
import zipfile
from pathlib import Path

MODULES = (
    "sglang/srt/server_args.py",
    "sglang/srt/environ.py",
    "sglang/srt/arg_groups/",
    "sglang/srt/model_executor/cuda_graph_config.py",
)
"""What declares arguments in any layout; all else is a stand-in."""

INSIDE = r'''
import importlib.abc, importlib.machinery, json, sys, types

class Meta(type):
    """A class of which everything can be asked, and which knows nothing."""
    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in(name)
    def __call__(cls, *args, **words):
        return args[0] if len(args) == 1 and callable(args[0]) and not words else cls
    def __iter__(cls):
        return iter(())
    def __len__(cls):
        return 0
    def __bool__(cls):
        return True
    def __contains__(cls, item):
        return False
    def __getitem__(cls, item):
        return cls
    def __or__(cls, other):
        return cls
    __ror__ = __add__ = __radd__ = __sub__ = __mul__ = __or__
    def __enter__(cls):
        return cls
    def __exit__(cls, *_):
        return False

def stand_in(name):
    return Meta(name, (), {"STAND_IN": True})

class Module(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = stand_in(name)
        setattr(self, name, value)
        return value

class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Comes last: only what is not there is replaced."""
    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, self, is_package=True)
    def create_module(self, spec):
        return Module(spec.name)
    def exec_module(self, module):
        pass

sys.path.insert(0, sys.argv[1])
sys.meta_path.append(Finder())
import argparse
from sglang.srt.server_args import ServerArgs

def plain(value):
    """A value as JSON has it; None for one that a stand-in made."""
    if isinstance(value, (list, tuple, set, frozenset)):
        items = [plain(item) for item in value]
        return sorted(items, key=str) if isinstance(value, (set, frozenset)) else items
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(type(value))

def described(action):
    kind = getattr(action.type, "__name__", None) if action.type is not None else None
    listed = isinstance(action.choices, (list, tuple, set, frozenset))
    choices = plain(action.choices if listed else list(action.choices or ()))
    const = getattr(action, "const_value", None)
    return {
        "flags": list(action.option_strings), "dest": action.dest,
        "action": type(action).__name__, "nargs": action.nargs, "type": kind,
        "default": plain(action.default),
        "choices": None if choices in ([], ["auto"]) else choices,  # the rest is a stand-in's
        "const": plain(action.const if const is None else const), "required": action.required,
    }

parser = argparse.ArgumentParser()
ServerArgs.add_cli_args(parser)
found = [described(a) for a in parser._actions if a.dest != "help"]
import dataclasses
if dataclasses.is_dataclass(ServerArgs):
    fields = [f.name for f in dataclasses.fields(ServerArgs)]
else:
    import msgspec.structs
    fields = [f.name for f in msgspec.structs.fields(ServerArgs)]
print(json.dumps({"fields": fields, "actions": found}))
'''


def wheel(version: str, folder: Path) -> Path:
    """The wheel of a version, downloaded unless it lies there."""
    for _ in range(2):
        found = sorted(folder.glob(f"sglang-{version}-*.whl"))
        if found:
            return found[0]
        subprocess.run(
            [
                *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"),
                *("--only-binary=:all:", "--python-version", "3.12", "--dest", str(folder)),
                f"sglang=={version}",
            ],
            check=True,
        )
    raise FileNotFoundError(f"no wheel of sglang {version} in {folder}")


def unpack(path: Path, folder: Path) -> Path:
    """The modules that declare arguments, alone in a folder."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.startswith(MODULES) and name.endswith(".py"):
                archive.extract(name, folder)
    return folder


def parser_of(version: str, folder: Path) -> dict[str, object]:
    """The fields of ServerArgs and the actions of the parser that a release builds."""
    modules = unpack(wheel(version, folder), folder / f"modules-{version}")
    command = [sys.executable, "-c", INSIDE, str(modules)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    answer: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main(argv: list[str]) -> int:
    """Write OUT; exit code 2 for a wrong call."""
    if len(argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    folder, out = Path(argv[0]), Path(argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    document = {version: parser_of(version, folder) for version in argv[2:]}
    text = json.dumps(document, separators=(",", ":"), sort_keys=True)
    out.write_bytes(lzma.compress(text.encode(), preset=9))
    for version, found in document.items():
        actions = found["actions"]
        print(version, len(actions) if isinstance(actions, list) else 0, "actions")
    print(f"{out}: {out.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
