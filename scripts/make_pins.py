"""Make `forensics/rules/pins.toml`: the packages that each SGLang release pins.

    python scripts/make_pins.py WHEEL... > forensics/rules/pins.toml

The versions stand in the metadata of the published wheels (`Requires-Dist`).
"""

from __future__ import annotations

import re
import sys
import zipfile
from pathlib import Path

from forensics.releases import version_key

PACKAGES = (
    "torch",
    "transformers",
    "sgl-kernel",
    "sglang-kernel",
    "flashinfer-python",
    "flashinfer-cubin",
    "sgl-deep-gemm",
    "xgrammar",
)
_PIN = re.compile(r"^Requires-Dist: ([\w.-]+)(?:\[[\w,]+\])? ?\(?==([\w.]+)", re.M)


def pins_of(wheel: Path) -> dict[str, str]:
    """Package to pinned version; of several (one for each platform) the first."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(n for n in archive.namelist() if n.endswith(".dist-info/METADATA"))
        metadata = archive.read(name).decode()
    found: dict[str, str] = {}
    for package, version in _PIN.findall(metadata):
        found.setdefault(package.lower().replace("_", "-"), version)
    return {package: found[package] for package in PACKAGES if package in found}


def main() -> None:
    """Print the table of the wheels named on the command line."""
    table = {Path(wheel).name.split("-")[1]: pins_of(Path(wheel)) for wheel in sys.argv[1:]}
    print("# Packages pinned by each SGLang release (metadata of its wheel).")
    print("# Made by scripts/make_pins.py; do not edit.\n")
    for version in sorted(table, key=version_key):
        pins = ", ".join(f'{package} = "{pin}"' for package, pin in table[version].items())
        print(f'"{version}" = {{ {pins} }}')


if __name__ == "__main__":
    main()
