"""The launch as typed data, read from a log line and written back as a command."""

from forensics.launch.model import Launch, Value

__all__ = ["Launch", "Value"]
