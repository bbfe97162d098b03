"""From the text of a field to its value: the terminal of a field gives its type."""

from __future__ import annotations

from collections.abc import Callable

from forensics.events import Value

UNIT_GIB = {
    "bytes": 2.0**-30,
    "B": 2.0**-30,
    "KiB": 2.0**-20,
    "MiB": 2.0**-10,
    "GiB": 1.0,
    "TiB": 2.0**10,
    "KB": 2.0**-20,
    "MB": 2.0**-10,
    "GB": 1.0,
}
"""Size of each unit in GiB. SGLang prints GiB as "GB" (release 0.4.1 to 0.5.23)."""


def size_gib(text: str) -> float:
    """`694.00 MiB` or `1024 bytes` in GiB."""
    number, _, unit = text.strip().partition(" ")
    return float(number) * UNIT_GIB.get(unit.strip(), 1.0)


def integers(text: str) -> Value:
    """`[1, 2, 4, 8]` as a list; what is cut off by `...` is left out."""
    parts = text.strip("[]() ").replace(" ", "").split(",")
    return [int(part) for part in parts if part.lstrip("-").isdigit()]


def real(text: str) -> float:
    """A number; `1,234.5` is read too."""
    return float(text.replace(",", ""))


CONVERTERS: dict[str, Callable[[str], Value]] = {
    "INT": lambda text: int(text.replace(",", "")),
    "FLOAT": real,
    "BOOL": lambda text: text.lower() == "true",
    "SIZE": size_gib,
    "PERCENT": lambda text: real(text.rstrip("% ")),
    "INT_LIST": integers,
}
"""Terminal name to conversion; every other terminal stays text."""

PYTHON_TYPES: dict[str, type] = {
    "INT": int,
    "FLOAT": float,
    "BOOL": bool,
    "SIZE": float,
    "PERCENT": float,
    "INT_LIST": list[int],
}
"""Terminal name to the type of the field in the pydantic class of a kind."""
