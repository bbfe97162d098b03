"""The launch as typed data, read from a log line and written back as a command."""

from forensics.launch.changes import DiffLine, diff, render, unsupported, with_changes, with_command
from forensics.launch.command import parse_command
from forensics.launch.dump import parse_dump
from forensics.launch.minimal import not_repeated
from forensics.launch.model import Argument, Launch, Value

__all__ = [
    "Argument",
    "DiffLine",
    "Launch",
    "Value",
    "diff",
    "not_repeated",
    "parse_command",
    "parse_dump",
    "render",
    "unsupported",
    "with_changes",
    "with_command",
]
