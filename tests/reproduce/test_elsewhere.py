"""Trials elsewhere: the launch gets its variables there, and is asked only where it is near."""

from __future__ import annotations

import json
import os
from pathlib import Path

from forensics.reproduce.elsewhere import terms_on
from forensics.reproduce.probe_requests import Target
from forensics.reproduce.takedown import MARK
from forensics.reproduce.transport import Transport
from forensics.reproduce.trial import Terms
from tests.reproduce.conftest import FAILED, FIXED, Try, stand_in

SSH = """#!/bin/sh
# Stands in for ssh: like sshd it hands the last word to a shell of another environment.
for word; do :; done
exec env -i PATH="$PATH" sh -c "$word"
"""


def with_ssh(tmp_path: Path) -> Terms:
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(SSH)
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    terms = Terms(env={**os.environ, "PATH": path, "HERE": "alone"}, grace_s=5.0)
    return terms_on(Transport.parse("ssh:somewhere"), terms)


def test_a_launch_elsewhere_is_judged_like_one_here(attempt: Try, tmp_path: Path) -> None:
    terms = with_ssh(tmp_path)
    failed = attempt(stand_in(FAILED, "--then", "exit-1", until=None), terms=terms)
    assert (failed.outcome, failed.failure and failed.failure.class_) == (
        "failed",
        "graph_capture_oom",
    )
    assert failed.cleaned_up


def test_it_is_ended_there_too(attempt: Try, tmp_path: Path) -> None:
    passed = attempt(stand_in(FIXED), terms=with_ssh(tmp_path), name="fix")
    assert (passed.outcome, passed.cleaned_up, passed.gpu_returned) == ("passed", True, None)
    environment = json.loads((tmp_path / "fix" / "environment.json").read_text())
    mark = f"{MARK}={environment['mark']}".encode()
    left = [path for path in Path("/proc").glob("[0-9]*/environ") if mark in _read(path)]
    assert left == []


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def test_a_server_is_asked_only_where_it_is_near() -> None:
    far = terms_on(Transport.parse("ssh:somewhere"), Terms())
    near = terms_on(Transport.parse("docker:image"), Terms())
    assert far.reach(Target()) is None
    assert near.reach(Target()) == Target()
