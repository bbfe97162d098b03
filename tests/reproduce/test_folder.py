"""The folder: nothing outside it, nothing half written, nobody else in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from forensics.reproduce.folder import FolderError, RunFolder, checked_name, write
from forensics.reproduce.model import TrialResult
from forensics.reproduce.takedown import MARK
from tests.reproduce.conftest import is_alive, plan_of, planned


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "../x", "a/b", "/etc", "a\\b", "a\nb", "a b", "-x", ".lock", "x" * 70),
        *("control;rm", "$(x)", "plan.json", "reproduction.json", "con..trol", "Ä", "a\0b"),
    ],
)
def test_hostile_names_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(FolderError):
        checked_name(name)
    folder = RunFolder(tmp_path / "run")
    trial = planned(["x"]).model_copy(update={"name": name})
    with folder.held(), pytest.raises(FolderError):
        folder.begin(plan_of(trial))
    with folder.held(), pytest.raises(FolderError):
        folder.trial_folder(trial)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_hostile_plan_is_not_resumed(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    with folder.held():
        folder.begin(plan_of(planned(["x"])))
        path = folder.path / "plan.json"
        path.write_text(path.read_text().replace('"control"', '"../control"', 1))
        with pytest.raises(FolderError):
            folder.plan()


def test_a_link_leads_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = RunFolder(tmp_path / "run")
    with folder.held():
        (folder.path / "control").symlink_to(outside)
        with pytest.raises(FolderError, match="link"):
            folder.trial_folder(planned(["x"]))
    assert list(outside.iterdir()) == []


def test_two_trials_of_one_name_are_refused(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    with folder.held(), pytest.raises(FolderError, match="one name"):
        folder.begin(plan_of(planned(["x"]), planned(["y"])))


def test_one_program_at_a_time(tmp_path: Path) -> None:
    other = RunFolder(tmp_path).held()
    with RunFolder(tmp_path).held(), pytest.raises(FolderError, match=f"pid {os.getpid()}"), other:
        pass
    with RunFolder(tmp_path).held():
        pass


def test_a_plan_is_fixed_once(tmp_path: Path) -> None:
    plan = plan_of(planned(["x"]))
    with RunFolder(tmp_path).held() as folder:
        folder.begin(plan)
        assert folder.plan() == plan
        with pytest.raises(FolderError, match="resume"):
            folder.begin(plan)


def test_a_place_for_no_plan_is_told_before_anybody_is_asked(tmp_path: Path) -> None:
    RunFolder(tmp_path / "new" / "run").check_new()
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match="file is not a folder"):
        RunFolder(tmp_path / "file" / "run").check_new()
    with RunFolder(tmp_path / "run").held() as folder:
        folder.begin(plan_of(planned(["x"])))
    with pytest.raises(FolderError, match="holds a plan already"):
        RunFolder(tmp_path / "run").check_new()


def test_secrets_are_not_written(tmp_path: Path) -> None:
    trial = planned(["serve", "--api-key", "s3cret-1"], env={"HF_TOKEN": "t0ken-2"})
    with RunFolder(tmp_path).held() as folder:
        folder.begin(plan_of(trial))
        text = (tmp_path / "plan.json").read_text()
        assert "s3cret-1" not in text
        assert "t0ken-2" not in text
        assert folder.plan().trials[0].command == ["serve", "--api-key", "[redacted]"]


def test_the_folder_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with RunFolder(path).held():
        assert path.stat().st_mode & 0o077 == 0


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write(path, "new \ud800")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_not_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError), RunFolder(tmp_path / "file" / "run").held():
        pass
    with pytest.raises(FolderError, match="no plan"):
        RunFolder(tmp_path).plan()


def test_a_half_trial_is_put_aside_and_what_it_left_is_ended(tmp_path: Path) -> None:
    mark = "0123456789abcdef" * 2
    left = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(300)"], env={MARK: mark}
    )
    trial = planned(["x"])
    try:
        with RunFolder(tmp_path).held() as folder:
            path = folder.trial_folder(trial)
            (path / "log").write_text("half")
            (path / "environment.json").write_text(json.dumps({"mark": mark}))
            assert folder.result("control") is None
            assert list(folder.trial_folder(trial).iterdir()) == []
        assert (tmp_path / "control.aside-1" / "log").read_text() == "half"
        assert not is_alive(left.pid)
    finally:
        left.kill()
        left.wait()


@pytest.mark.parametrize("mark", ['"*"', '""', "null", "[]", '"0123"', '{"a": 1}'])
def test_a_false_mark_ends_nobody(tmp_path: Path, mark: str) -> None:
    with RunFolder(tmp_path).held() as folder:
        path = folder.trial_folder(planned(["x"]))
        (path / "environment.json").write_text(f'{{"mark": {mark}}}')
        folder.trial_folder(planned(["x"]))


@pytest.mark.parametrize(
    ("outcome", "finished"),
    [
        ("passed", True),
        ("failed", True),
        ("timed-out", True),
        ("interrupted", False),
        ("not-started", False),
    ],
)
def test_what_counts_as_finished(tmp_path: Path, outcome: str, finished: bool) -> None:
    result = TrialResult(
        name="control",
        role="control",
        command=["x"],
        started_at=datetime(2026, 1, 1),
        ended_at=datetime(2026, 1, 1),
        outcome=outcome,  # type: ignore[arg-type]
        phase="init",
        because="so",
        log="control/log",
    )
    with RunFolder(tmp_path).held() as folder:
        folder.trial_folder(planned(["x"]))
        folder.keep_result(result)
        assert folder.result("control") == (result if finished else None)
