"""Lines that a container runtime or a log shipper wrote as JSON objects."""

from __future__ import annotations

import json
from dataclasses import dataclass

_TEXT_KEYS = ("log", "message", "msg", "textPayload", "line")
_TIME_KEYS = ("time", "timestamp", "@timestamp", "asctime", "ts")
_NODE_KEYS = ("pod_name", "pod", "container_name", "host", "hostname")

_DOCKER_KEYS = {"log", "stream", "time", "attrs"}


@dataclass(slots=True)
class JsonLine:
    """What a JSON line carries."""

    text: str
    time: str | None
    node: str | None
    stream: str | None
    ended: bool
    """Its end is certain. Docker ends a line with a newline; without one the rest may follow."""


def read_json_line(text: str) -> JsonLine | None:
    """Read a line of Docker's json-file driver or a shipper; None if it is neither.

    A time must stand beside the text, so that JSON which a program printed is left alone.
    """
    if not (text.startswith("{") and text.rstrip().endswith("}")):
        return None
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    message = _first(fields, _TEXT_KEYS)
    time = _first(fields, _TIME_KEYS)
    stream = _first(fields, ("stream",))
    if message is None or (time is None and stream is None):
        return None
    kubernetes = fields.get("kubernetes")
    node = _first(kubernetes if isinstance(kubernetes, dict) else fields, _NODE_KEYS)
    mark = _first(fields, ("_p", "logtag"))
    ended = mark == "F" if mark else not fields.keys() <= _DOCKER_KEYS or message[-1:] == "\n"
    return JsonLine(message.removesuffix("\n"), time, node, stream, ended)


def _first(fields: dict[str, object], keys: tuple[str, ...]) -> str | None:
    for key in keys:
        value = fields.get(key)
        if isinstance(value, str):
            return value
    return None
