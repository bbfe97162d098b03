"""The fixture of the releases' own parsers, against the wheels themselves.

Runs where `build/wheels` has them (`pip download --no-deps -d build/wheels sglang==0.5.9` ...), and
where `msgspec` is installed, of which late releases are made.
"""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path

import pytest
from own_parsers import ROOT, documents

SCRIPT = ROOT / "scripts" / "release_parsers.py"
WHEELS = ROOT / "build" / "wheels"
VERSIONS = ["0.4.4", "0.5.9", "0.5.16", "0.5.23"]


@pytest.mark.parametrize("version", VERSIONS)
def test_the_fixture_is_what_the_release_builds(version: str, tmp_path: Path) -> None:
    found = sorted(WHEELS.glob(f"sglang-{version}-*.whl"))
    if not found:
        pytest.skip(f"no wheel of {version} in build/wheels")
    pytest.importorskip("msgspec")
    spec = importlib.util.spec_from_file_location("release_parsers", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    shutil.copy(found[0], tmp_path)
    assert script.parser_of(version, tmp_path) == documents()[version]
