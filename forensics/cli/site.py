"""What holds for a command: the settings of files and environment, and its own options."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from forensics.settings import Effective

_OPTIONS = ("select", "ignore", "fail_on", "color", "model_config")


def site(context: typer.Context) -> Effective:
    """The settings in force; an option that was not typed does not count.

    Raises:
        SettingsError: a setting cannot be used.
    """
    from forensics.settings import effective
    from forensics.views.console import error_line

    options = {}
    for name in _OPTIONS:
        source = context.get_parameter_source(name) if name in context.params else None
        if source is not None and source.name == "COMMANDLINE":
            options[name] = context.params[name]
    found = effective(options)
    for notice in found.notices:
        error_line(notice)
    return found
