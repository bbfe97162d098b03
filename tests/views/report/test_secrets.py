"""Secrets are in no output of any command; names of people and places in none that hides them."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.views.report.conftest import NAMES, SECRETS

Program = Callable[..., "subprocess.CompletedProcess[str]"]

FORMS = ["text", "json", "markdown", "html", "sarif", "junit"]
COMMANDS = {
    **{f"analyze {form}": ("analyze", "LOG", "--format", form) for form in FORMS},
    "analyze verbose": ("analyze", "LOG", "--verbose"),
    **{f"report {form}": ("report", "LOG", "--format", form) for form in FORMS},
    "report issue": ("report", "LOG", "--for", "issue", "--no-redact"),
    "events ndjson": ("events", "LOG"),
    "events csv": ("events", "LOG", "--format", "csv"),
    "coverage": ("coverage", "LOG"),
    "coverage json": ("coverage", "LOG", "--format", "json"),
    "watch": ("watch", "LOG", "--timeout", "1"),
    "watch ndjson": ("watch", "LOG", "--timeout", "1", "--format", "ndjson"),
    "reproduce": ("reproduce", "LOG", "--dry-run", "--set", "max_running_requests=2"),
    "reproduce json": (
        *("reproduce", "LOG", "--dry-run", "--set", "max_running_requests=2"),
        *("--format", "json"),
    ),
}
HIDING = {
    **{f"analyze {form}": ("analyze", "LOG", "--redact", "--format", form) for form in FORMS},
    "analyze verbose": ("analyze", "LOG", "--redact", "--verbose"),
    **{f"report {form}": ("report", "LOG", "--redact", "--format", form) for form in FORMS},
    "report issue": ("report", "LOG", "--for", "issue"),
}


def said_by(program: Program, words: tuple[str, ...], log: Path) -> str:
    """Both streams of a command that ends without an error of its own."""
    done = program(*[str(log) if word == "LOG" else word for word in words], cwd=log.parent)
    assert done.returncode != 70, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def test_the_log_has_all_of_them(planted: Path) -> None:
    text = planted.read_text()
    assert [what for what, said in {**SECRETS, **NAMES}.items() if said not in text] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_no_output_has_a_secret(program: Program, planted: Path, name: str) -> None:
    said = said_by(program, COMMANDS[name], planted)
    assert len(said) > 100
    assert [what for what, secret in SECRETS.items() if secret in said] == []
    assert "PLANTED" not in said


@pytest.mark.parametrize("name", HIDING)
def test_no_output_that_hides_names_has_one(program: Program, planted: Path, name: str) -> None:
    said = said_by(program, HIDING[name], planted)
    assert re.search(r"(?:host|user|ipv4)-\d", said)
    assert [what for what, text in {**NAMES, **SECRETS}.items() if text in said] == []
    assert "aliceplanted" not in said
    assert "acme" not in said


def test_an_error_has_none(program: Program, tmp_path: Path) -> None:
    for words in (("analyze", "no-such-file?token=hf_PLANTEDbbbbbbbbbb2"),
                  ("report", "--run", "9", "hf_PLANTEDbbbbbbbbbb2.log")):  # fmt: skip
        done = program(*words, cwd=tmp_path)
        assert done.returncode == 2
        assert "PLANTED" not in done.stdout + done.stderr


def test_a_reproduction_is_hidden_too(program: Program, planted: Path, reproduction: Path) -> None:
    text = reproduction.read_text().replace("ready and answered", f"ready on {NAMES['host']}")
    reproduction.write_text(text)
    words = ("report", "LOG", "--redact", "--reproduction", str(reproduction))
    said = said_by(program, words, planted)
    assert "ready on host-" in said
    assert NAMES["host"] not in said
