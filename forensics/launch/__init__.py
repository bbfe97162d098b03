"""The launch as typed data, read from a log line and written back as a command."""

from forensics.launch.changes import DiffLine, diff, render, unsupported, with_changes, with_command
from forensics.launch.command import parse_command
from forensics.launch.dump import parse_dump
from forensics.launch.model import Argument, Launch, Value
from forensics.launch.redact import redact_line, redact_string

__all__ = [
    "Argument",
    "DiffLine",
    "Launch",
    "Value",
    "diff",
    "parse_command",
    "parse_dump",
    "redact_line",
    "redact_string",
    "render",
    "unsupported",
    "with_changes",
    "with_command",
]
