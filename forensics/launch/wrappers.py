"""What stands in front of a server on a command line: `env`, `nohup`, `numactl`, `docker run`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from forensics.launch.shell import LaunchError

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})

_MODULE = re.compile(r"sglang\.(?:launch_server|compile_deep_gemm)")
_FILE = re.compile(r"(?:.*/)?sglang/launch_server\.py")
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_NAME = re.compile(r"[A-Za-z_]\w*")
_DROPPED = frozenset({"exec", "nohup", "command", "builtin", "time", "setsid", "+", "$", "stdbuf"})
_KEPT = frozenset(
    {"numactl", "taskset", "nice", "ionice", "chrt", "uv", "uvx", "conda", "mamba", "micromamba"}
    | {"poetry", "pipenv", "pixi"}
)
_CONTAINERS = frozenset({"docker", "podman", "nerdctl"})
_REFUSED = {
    "sudo": "run the tool itself as that user",
    "su": "run the tool itself as that user",
    "srun": "start the tool within the job",
    "mpirun": "start the tool on each node",
    "torchrun": "SGLang starts its own ranks",
    "ssh": "use --on ssh:HOST with the command that it runs",
    "kubectl": "use --on kube:POD with the command that it runs",
    "tmux": "the server would leave the tool's hands",
    "screen": "the server would leave the tool's hands",
    "xargs": "write the command out",
    "eval": "write the command out",
    "watch": "write the command out",
}
_SWITCHES = frozenset(
    {"--detach", "--interactive", "--tty", "--rm", "--privileged", "--init", "--read-only"}
    | {"--publish-all", "--no-healthcheck", "--oom-kill-disable", "--sig-proxy", "--quiet"}
    | {"--disable-content-trust", "--replace", "--tls-verify", "--no-hosts"}
)
"""Options of `docker run` and `docker exec` that take no value."""


@dataclass(slots=True)
class Wrapped:
    """A server's command without what stood in front of it, and what that meant."""

    program: list[str]
    """With wrappers that stay: `numactl ... python3 -m sglang.launch_server`."""
    arguments: list[str]
    env: dict[str, str] = field(default_factory=dict)
    unset: list[str] = field(default_factory=list)
    container: str | None = None
    """The image, or the container, that it runs in: nothing of the outer environment is there."""
    notes: list[str] = field(default_factory=list)


def program_at(words: list[str]) -> tuple[int, int] | None:
    """Where the words of the program begin and end."""
    for i, word in enumerate(words):
        if _MODULE.fullmatch(word) and i and words[i - 1] == "-m":
            found = [k for k in range(i - 1) if _PYTHON.fullmatch(PurePosixPath(words[k]).name)]
            return (found[-1] if found else max(i - 2, 0)), i + 1
        if word == "serve" and i and PurePosixPath(words[i - 1]).name == "sglang":
            return i - 1, i + 1
        if _FILE.fullmatch(word) and i and _PYTHON.fullmatch(PurePosixPath(words[i - 1]).name):
            return i - 1, i + 1
    return None


def unwrapped(words: list[str], line: int, outer: Mapping[str, str]) -> Wrapped | None:
    """The server that words start; None if they do not, and say so in no known way.

    `outer` is the environment outside, of which `docker run -e NAME` takes values. Raises
    LaunchError for a wrapper that the server can not be taken out of.
    """
    words = _with_entrypoint(words)
    at = program_at(words)
    if at is None:
        return None
    found = Wrapped(words[at[0] : at[1]], words[at[1] :])
    prefix: list[str] = []
    for segment in _segments(words[: at[0]]):
        name = PurePosixPath(segment[0]).name
        if name in _REFUSED:
            raise LaunchError(f"line {line}: the server stands behind `{name}`: {_REFUSED[name]}")
        if name == "env":
            _env(segment[1:], found, line)
        elif name in _CONTAINERS:
            _container(segment, found, line, outer)
        elif name in _KEPT:
            prefix += segment
        elif name == "timeout":
            found.notes.append(
                f"line {line}: `timeout` is left out: trials have a limit of their own"
            )
        elif name not in _DROPPED:
            return None
    found.program = prefix + found.program
    return found


def _with_entrypoint(words: list[str]) -> list[str]:
    """`docker run --entrypoint P IMAGE -m ...` with P where it is run: after the image."""
    for i, word in enumerate(words[:-1]):
        if word.startswith("--entrypoint") and "-m" in words[i:]:
            _, equals, value = word.partition("=")
            rest = words[:i] + words[i + (1 if equals else 2) :]
            module = rest.index("-m", i)
            return [*rest[:module], value if equals else words[i + 1], *rest[module:]]
    return words


def _segments(words: list[str]) -> list[list[str]]:
    """Each known wrapper with its own words."""
    known = _DROPPED | _KEPT | _CONTAINERS | _REFUSED.keys() | {"env", "timeout"}
    segments: list[list[str]] = []
    for word in words:
        in_container = segments and PurePosixPath(segments[-1][0]).name in _CONTAINERS
        if not segments or (PurePosixPath(word).name in known and not in_container):
            segments.append([word])
        else:
            segments[-1].append(word)
    return segments


def _env(words: list[str], found: Wrapped, line: int) -> None:
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if word in ("-u", "--unset") and rest:
            found.unset.append(rest.pop(0))
        elif word.startswith("--unset="):
            found.unset.append(value)
        elif word.startswith("-u") and len(word) > 2:
            found.unset.append(word[2:])
        elif equals and _NAME.fullmatch(name):
            found.env[name] = value
        elif word != "--":
            raise LaunchError(f"line {line}: `env {word}` is not understood")


def _container(segment: list[str], found: Wrapped, line: int, outer: Mapping[str, str]) -> None:
    """`docker run OPTIONS IMAGE` or `docker exec OPTIONS CONTAINER`."""
    rest = segment[1:]
    if rest[:1] == ["container"]:
        rest = rest[1:]
    if not rest or rest[0] not in ("run", "exec"):
        raise LaunchError(f"line {line}: `{segment[0]}` without `run` or `exec` starts no server")
    verb, rest = rest[0], rest[1:]
    while rest and rest[0].startswith("-"):
        option, value = _option(rest)
        if option in ("-e", "--env") and value is not None:
            name, equals, text = value.partition("=")
            if equals:
                found.env[name] = text
            elif name in outer:
                found.env[name] = outer[name]
            else:
                found.notes.append(f"line {line}: {name} is taken from your environment")
        elif option == "--env-file":
            found.notes.append(f"line {line}: the variables of {value} are not read")
    if not rest:
        raise LaunchError(f"line {line}: `{segment[0]} {verb}` names no image or container")
    image = rest[0]
    found.container = image
    kind = "docker" if verb == "run" else "docker-exec"
    found.notes.append(
        f"line {line}: it ran in the container {image}; here it runs without one, unless you add"
        f" --on {kind}:{image}"
    )


def _option(rest: list[str]) -> tuple[str, str | None]:
    """The option in front, with its value, taken off the list."""
    word = rest.pop(0)
    name, equals, value = word.partition("=")
    if equals:
        return name, value
    if name in _SWITCHES or (not name.startswith("--") and set(name[1:]) <= set("ditP")):
        return name, None
    if not name.startswith("--") and len(name) > 2:
        return name[:2], name[2:]
    return name, rest.pop(0) if rest else None
