"""The program: its commands are registered on `app`, its errors become one line and a code."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Annotated, NoReturn, ParamSpec

import typer

P = ParamSpec("P")

FOUND = 1
USAGE = 2
NOT_A_LOG = 3
INTERNAL = 70
INTERRUPTED = 130

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
            sys.stdout.flush()
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            _close_stdout()
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except Exception as error:
            if kwargs.get("debug"):
                raise
            _fail(error)

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
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="forensics")


def unknown_rule(rule: str, known: list[str]) -> str:
    """What to say of a rule id that does not exist."""
    from difflib import get_close_matches

    close = get_close_matches(rule, known, n=3, cutoff=0.4)
    hint = f"; did you mean {', '.join(close)}?" if close else "; `forensics rules` lists them"
    return f"no rule {rule!r}{hint}"


def _fail(error: Exception) -> NoReturn:
    """One line on standard error, and the exit code of the error."""
    from forensics.pipeline import InputError, NotALog
    from forensics.views.console import error_line

    if isinstance(error, NotALog):
        code, text = NOT_A_LOG, str(error)
    elif isinstance(error, InputError):
        code, text = USAGE, str(error)
    elif isinstance(error, OSError) and error.filename:
        code, text = USAGE, f"{error.filename}: {error.strerror}"
    else:
        hint = "rerun with --debug for the traceback"
        code, text = INTERNAL, f"internal error: {type(error).__name__}: {error} ({hint})"
    error_line(text)
    raise typer.Exit(code)


def _close_stdout() -> None:
    """The reader of our output is gone: say nothing, also not when Python flushes at its end."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, sys.stdout.fileno())
