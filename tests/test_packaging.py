"""The wheel is whole: data files are inside, and it works where there is no checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

WITHOUT_CHECKOUT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--wheel-dir", folder, root], check=True, stdin=subprocess.DEVNULL)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a fresh environment that holds the wheel.

    Its dependencies are those of the environment that runs the tests, by path: nothing is
    downloaded twice, and `.pth` files over there, such as an editable install's, have no effect.
    """
    folder = tmp_path_factory.mktemp("fresh") / "venv"
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index"]
    subprocess.run([*pip, "--no-deps", wheel], check=True, stdin=subprocess.DEVNULL)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin"


def run(program: Path, *argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *argv],
        cwd=cwd,
        env=WITHOUT_CHECKOUT,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_data_files_are_inside(wheel: Path, root: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    grammars = {f"forensics/grammars/{path.name}" for path in root.glob("grammars/*.lark")}
    playbooks = {f"forensics/playbooks/{path.name}" for path in root.glob("playbooks/*.md")}
    package = {
        str(path.relative_to(root))
        for path in root.glob("forensics/**/*")
        if path.is_file() and path.suffix not in (".pyc", ".pyo")
    }
    assert grammars
    assert playbooks
    assert {"forensics/releases.json.gz"} < package
    assert any(name.startswith("forensics/rules/signatures/") for name in package)
    assert grammars | playbooks | package <= inside


def test_nothing_else_is_inside(wheel: Path) -> None:
    tops = {name.split("/")[0].split("-")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert tops == {"forensics", "sglang_forensics"}


def test_the_installed_program_diagnoses(installed: Path, fixtures: Path, tmp_path: Path) -> None:
    shutil.copy(fixtures / "sglang-glm5.log", tmp_path)
    where = "import forensics; print(forensics.__file__)"
    assert str(installed.parent) in run(installed / "python", "-c", where, cwd=tmp_path).stdout
    done = run(installed / "forensics", "analyze", "sglang-glm5.log", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert "lower --mem-fraction-static from 0.95 to 0.88" in done.stdout


def test_the_installed_program_explains(installed: Path, tmp_path: Path) -> None:
    done = run(installed / "forensics", "explain", "graph-capture-oom", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
