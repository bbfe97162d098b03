"""The program: its commands are registered on `app`, its errors become one line and a code."""

from __future__ import annotations

import errno
import functools
import gc
import io
import os
import sys
from collections.abc import Callable
from typing import Annotated, ParamSpec

import typer

P = ParamSpec("P")

FOUND = 1
USAGE = 2
NOT_A_LOG = 3
INTERNAL = 70
INTERRUPTED = 130

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of writing alone; when a write fails, Python does not say to which file."""

app = typer.Typer(
    help="Diagnose SGLang launches from their logs.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def guarded(command: Callable[P, None]) -> Callable[P, None]:
    """A command whose errors become one line and an exit code; no traceback reaches a user."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except BrokenPipeError:
            from forensics.views.output import abandon_stdout

            abandon_stdout()
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except Exception as error:
            if kwargs.get("debug"):
                raise
            raise typer.Exit(_told(error)) from None
        finally:
            _tell_of_rules()

    return run


@app.callback(invoke_without_command=True)
def forensics(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """Diagnose SGLang launches from their logs."""
    if version:
        from forensics import __version__

        print(f"forensics {__version__}")
        raise typer.Exit


def main() -> None:
    """The `forensics` program."""
    # Imports and events make no cycles worth looking for: fewer collections, a tenth of the time.
    gc.set_threshold(100_000, 50, 100)
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal keeps its encoding; what is piped is UTF-8 whatever the locale says.
            encoding = None if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")
    try:
        app(prog_name="forensics")
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            # A reader thread may still wait for standard input and hold its lock, on which
            # Python would abort. Files and bars are closed by now.
            os._exit(INTERRUPTED)
        raise
    except OSError as error:  # of help and version, which no command guards
        sys.exit(_told(error))


def _open_closed_streams() -> None:
    """Give `forensics ... >&-` somewhere to write: the exit code is still worth having.

    A closed descriptor would also go to the next file that is opened, a log.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            mode = "r" if number == 0 else "w"
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))


def unknown_rule(rule: str, known: list[str]) -> str:
    """What to say of a rule id that does not exist."""
    from difflib import get_close_matches

    close = get_close_matches(rule, known, n=3, cutoff=0.4)
    hint = f"; did you mean {', '.join(close)}?" if close else "; `forensics rules` lists them"
    return f"no rule {rule!r}{hint}"


def _tell_of_rules() -> None:
    """Say which rules of other packages could not be loaded, if any were asked for."""
    if loaded := sys.modules.get("forensics.rules"):
        from forensics.views.console import error_line

        for problem in loaded.rules_not_loaded():
            error_line(problem)


def _told(error: Exception) -> int:
    """The exit code of an error, which has got its one line on standard error."""
    from forensics.pipeline import InputError, NotALog
    from forensics.settings import SettingsError
    from forensics.views.console import error_line
    from forensics.views.output import abandon_stdout

    if isinstance(error, NotALog):
        code, text = NOT_A_LOG, str(error)
    elif isinstance(error, InputError | SettingsError):
        code, text = USAGE, str(error)
    elif isinstance(error, OSError) and error.filename:
        code, text = USAGE, f"{error.filename}: {error.strerror}"
    elif isinstance(error, OSError) and error.errno in _DISK_FULL:
        abandon_stdout()
        code, text = USAGE, f"cannot write the output: {error.strerror}"
    else:
        hint = "rerun with --debug for the traceback"
        code, text = INTERNAL, f"internal error: {type(error).__name__}: {error} ({hint})"
    error_line(text)
    return code
