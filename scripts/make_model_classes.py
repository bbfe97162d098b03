"""Make `forensics/rules/model_classes.toml`: the first release that has a model's class.

    python scripts/make_model_classes.py WHEEL... > forensics/rules/model_classes.toml

A module of `sglang/srt/models` names the classes that it implements in `EntryClass`. Read with
`re` alone; nothing is imported. Classes of the oldest wheel are left out.
"""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

from forensics.releases import version_key

_ENTRY = re.compile(r"^EntryClass\s*=\s*(\[[^\]]*\]|\w+)", re.M)


def classes_of(wheel: Path) -> set[str]:
    """The model classes of one release."""
    found: set[str] = set()
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.startswith("sglang/srt/models/") and name.endswith(".py"):
                for entry in _ENTRY.findall(archive.read(name).decode()):
                    found.update(re.findall(r"\w+", re.sub(r"#.*", "", entry)))
    return found


def main() -> None:
    """Print the table of the wheels named on the command line."""
    wheels = sorted(map(Path, sys.argv[1:]), key=lambda w: version_key(w.name.split("-")[1]))
    first: dict[str, str] = {}
    for wheel in wheels:
        for name in classes_of(wheel):
            first.setdefault(name, wheel.name.split("-")[1])
    oldest = wheels[0].name.split("-")[1]
    print("# First SGLang release, of those read, that implements a model class.")
    print(f"# Made by scripts/make_model_classes.py; {oldest} and before are left out.\n")
    for name, version in sorted(first.items()):
        if version != oldest:
            print(f'{name} = "{version}"')


if __name__ == "__main__":
    main()
