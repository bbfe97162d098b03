"""Where the data files are: grammars and playbooks, installed or in a source checkout.

Both folders stand at the top of the repository, because people edit them without reading Python;
the wheel carries them inside the package (`pyproject.toml`, `force-include`).
"""

from __future__ import annotations

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def grammar_dir() -> Path:
    """The folder of `*.lark` files."""
    return _data_dir("grammars")


def playbook_dir() -> Path:
    """The folder of playbooks, one markdown file per rule."""
    return _data_dir("playbooks")


def playbook(name: str, package: str = "forensics") -> str | None:
    """The text of a playbook; rules of another package bring theirs in its folder `playbooks`."""
    if "/" in name or name.startswith("."):
        return None
    if package.split(".")[0] == "forensics":
        path: Traversable = playbook_dir() / f"{name}.md"
    else:
        path = files(package) / "playbooks" / f"{name}.md"
    return path.read_text(encoding="utf-8") if path.is_file() else None


def playbook_names() -> list[str]:
    """The names of our own playbooks."""
    return sorted(path.stem for path in playbook_dir().glob("*.md") if path.stem != "README")


def _data_dir(name: str) -> Path:
    """The installed folder if there is one, else the checkout's."""
    installed = _PACKAGE / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
