"""Where the data files are: grammars and playbooks, installed or in a source checkout.

Both folders stand at the top of the repository, because people edit them without reading Python;
the wheel carries them inside the package (`pyproject.toml`, `force-include`).
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def grammar_dir() -> Path:
    """The folder of `*.lark` files."""
    return _data_dir("grammars")


def playbook_dir() -> Path:
    """The folder of playbooks, one markdown file per rule."""
    return _data_dir("playbooks")


def _data_dir(name: str) -> Path:
    """The installed folder if there is one, else the checkout's."""
    installed = _PACKAGE / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
