"""Put the program's present output into README.md.

Each block that begins with `$ forensics ...` is run in the repository's root, its output in a pipe,
80 columns wide, and written below the command. `tests/test_readme.py` checks that nothing would
change; run this when it does.

    python scripts/refresh_readme.py
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
_BLOCK = re.compile(r"^```console\n\$ forensics (?P<argv>.*)\n(?P<output>(?:.*\n)*?)```$", re.M)
_TERMINAL = frozenset({"COLUMNS", "TERM", "NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"})


def output(argv: str) -> str:
    """What the program prints when its output goes to a pipe."""
    done = subprocess.run(
        [sys.executable, "-m", "forensics", *shlex.split(argv)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name not in _TERMINAL},
        stdin=subprocess.DEVNULL,
    )
    if done.returncode > 1:
        raise SystemExit(f"forensics {argv}: {done.stderr}")
    return done.stdout


def refreshed(text: str) -> str:
    """The README with the output of its commands as it is now."""
    return _BLOCK.sub(
        lambda block: f"```console\n$ forensics {block['argv']}\n{output(block['argv'])}```", text
    )


if __name__ == "__main__":
    README.write_text(refreshed(README.read_text(encoding="utf-8")), encoding="utf-8")
