"""Files, environment and options: which wins, what is refused, what the rules get."""

from __future__ import annotations

import json
import subprocess
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from forensics.rules import registry, threshold
from forensics.settings import DEFAULT, Effective, SettingsError, effective, with_thresholds

Program = Callable[..., subprocess.CompletedProcess[str]]
LIMIT = threshold("test_share", 0.5, "of a test", "A number of this test", most=1.0)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own file lies in a home of its own."""
    monkeypatch.setattr("forensics.settings.user_config_path", lambda *a, **k: tmp_path / "home")
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "site" / "logs"
    folder.mkdir(parents=True)
    return folder


def read(
    work: Path, options: Mapping[str, object] | None = None, **environ: str
) -> Effective:  # fmt: skip
    return effective(options, start=work, environ=environ)


def test_without_files_there_are_defaults(work: Path) -> None:
    found = read(work)
    assert {setting.origin for setting in found.values.values()} == {DEFAULT}
    assert (found["fail_on"], found["color"], found["model_config"]) == ("critical", "auto", None)
    assert found.for_rules().wants(registry()[0].id)


def test_later_layers_win(work: Path, home: Path) -> None:
    (home / "forensics.toml").write_text('fail_on = "info"\ncolor = "never"\nignore = ["tp-split"]')
    (work.parent / "forensics.toml").write_text('fail_on = "warning"')
    found = read(work)
    assert (found["fail_on"], found["color"]) == ("warning", "never")
    assert found.values["fail_on"].origin == str(work.parent / "forensics.toml")
    assert found.values["color"].origin == str(home / "forensics.toml")
    assert read(work, FORENSICS_FAIL_ON="never")["fail_on"] == "never"
    found = read(work, {"fail_on": "critical"}, FORENSICS_FAIL_ON="never")
    assert (found["fail_on"], found.values["fail_on"].origin) == ("critical", "option")
    assert found.for_rules().ignore == {"tp-split"}


def test_tables_are_joined_entry_by_entry(work: Path, home: Path) -> None:
    (home / "forensics.toml").write_text(
        '[severity]\ntp-split = "info"\ndisk-full = "warning"\n[thresholds]\ntest_share = 0.25'
    )
    (work / "forensics.toml").write_text('[severity]\ntp-split = "critical"')
    rules = read(work, FORENSICS_THRESHOLDS="test_share=0.75").for_rules()
    assert rules.severity == {"tp-split": "critical", "disk-full": "warning"}
    assert rules.thresholds == {"test_share": 0.75}


def test_the_nearest_file_upwards_counts(work: Path) -> None:
    (work.parent / "forensics.toml").write_text('color = "never"')
    (work / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert read(work)["color"] == "never"
    (work / "pyproject.toml").write_text('[tool.forensics]\ncolor = "always"\n')
    found = read(work)
    assert (found["color"], found.values["color"].origin) == ("always", "pyproject.toml")
    (work / "pyproject.toml").write_text("somebody else's [broken file")
    assert read(work)["color"] == "never"


def test_a_path_is_relative_to_its_file(work: Path) -> None:
    (work.parent / "forensics.toml").write_text('model_config = "models/config.json"')
    assert read(work)["model_config"] == work.parent / "models/config.json"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('selct = ["x"]', "forensics.toml: selct: no such key; did you mean select?"),
        ('ignore = ["tp-splitt"]', "forensics.toml: ignore: no rule 'tp-splitt'; did you mean"),
        ('select = "tp-split"', "forensics.toml: select: 'tp-split' should be a list"),
        ('fail_on = "fatal"', "forensics.toml: fail_on: 'fatal' should be 'critical', 'warning'"),
        ('[severity]\ntp-split = "loud"', "severity.tp-split: 'loud' should be 'critical'"),
        ("[severity]\nnothing = 'info'", "severity: no rule 'nothing'"),
        ("[thresholds]\ntest_shar = 1", "no threshold 'test_shar'; did you mean test_share?"),
        ("[thresholds]\ntest_share = true", "thresholds.test_share: True should be a number"),
        ("[thresholds]\ntest_share = 2", "thresholds.test_share: 2 is not within 0 to 1"),
        ("[thresholds]\ntest_share = nan", "thresholds.test_share: nan should be a finite number"),
        ("color = ", "forensics.toml: not TOML: "),
    ],
)
def test_what_cannot_be_used_is_refused_on_one_line(work: Path, text: str, said: str) -> None:
    (work / "forensics.toml").write_text(text)
    with pytest.raises(SettingsError) as caught:
        read(work)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_environment_names_its_variable(work: Path) -> None:
    with pytest.raises(SettingsError, match="FORENSICS_SEVERITY: 'tp-split' is not of the form"):
        read(work, FORENSICS_SEVERITY="tp-split")
    with pytest.raises(SettingsError, match="FORENSICS_THRESHOLDS: test_share: 'much' is no numb"):
        read(work, FORENSICS_THRESHOLDS="test_share=much")
    with pytest.raises(SettingsError, match="FORENSICS_IGNORE: no rule 'x'"):
        read(work, FORENSICS_IGNORE="tp-split, x")
    assert read(work, FORENSICS_SELECT="")["select"] == []
    (notice,) = read(work, FORENSICS_FAILON="info").notices
    assert notice == "FORENSICS_FAILON is no setting; did you mean FORENSICS_FAIL_ON?"


def test_thresholds_are_shown_with_their_default(work: Path) -> None:
    found = with_thresholds(read(work))
    assert found.values["thresholds.test_share"].value == 0.5
    assert "thresholds.test_share" not in read(work).values


def test_the_program_shows_what_is_in_force(program: Program, tmp_path: Path) -> None:
    (tmp_path / "forensics.toml").write_text('ignore = ["tp-split"]\nfail_on = "info"')
    done = program("config", "--format", "json", cwd=tmp_path)
    data = json.loads(done.stdout)
    assert data["ignore"] == {"value": ["tp-split"], "origin": "forensics.toml"}
    assert data["select"] == {"value": [], "origin": "default"}
    text = program("config", cwd=tmp_path).stdout
    assert tomllib.loads(text)["ignore"] == ["tp-split"]
    assert any(line.endswith("# forensics.toml") for line in text.splitlines())


def test_the_program_refuses_a_bad_setting(program: Program, tmp_path: Path) -> None:
    (tmp_path / "forensics.toml").write_text("color = 7")
    for command in (["rules"], ["config"], ["analyze", str(tmp_path / "any.log")]):
        done = program(*command, cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr.startswith("forensics: forensics.toml: color: 7 should be 'auto'")
        assert len(done.stderr.splitlines()) == 1


def test_settings_reach_the_rules(program: Program, tmp_path: Path, fixtures: Path) -> None:
    log = str(fixtures / "sglang-glm5.log")
    (tmp_path / "pyproject.toml").write_text(
        '[tool.forensics]\nfail_on = "never"\nignore = ["scale-format"]\n'
        '[tool.forensics.severity]\ntransformers-rope = "warning"\n'
    )
    done = program("analyze", "--json", log, cwd=tmp_path)
    assert done.returncode == 0
    (run,) = json.loads(done.stdout)["runs"]
    severity = {finding["rule"]: finding["severity"] for finding in run["findings"]}
    assert "scale-format" not in severity
    assert severity["transformers-rope"] == "warning"
    assert program("analyze", log, "--fail-on", "critical", cwd=tmp_path).returncode == 1


@pytest.mark.parametrize(
    ("text", "problem"), [(None, "no such file"), ("{", "not JSON"), ("[1]", "no JSON object")]
)
def test_a_model_config_that_says_nothing_is_refused(
    work: Path, text: str | None, problem: str
) -> None:
    path = work / "config.json"
    if text is not None:
        path.write_text(text)
    found = effective({"model_config": path}, start=work, environ={})
    with pytest.raises(SettingsError, match=f"^option: model_config: {path}: {problem}$"):
        found.for_rules()
