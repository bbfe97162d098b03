"""Trials elsewhere: `--on ssh:HOST`, `docker:IMAGE`, `docker-exec:CONTAINER`, `kube:POD`.

Each is a command prefix. The launch elsewhere runs under a few lines of POSIX shell (`remote.sh`)
that end it when their input ends: so it ends when the connection does, however this side went. Of
a host that drops off the network, its own sshd has to notice first.
"""

from __future__ import annotations

import csv
import io
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

from forensics.launch.arguments import groups
from forensics.launch.model import Value

Kind = Literal["ssh", "docker", "docker-exec", "kube"]

FORMS = (
    "ssh:[USER@]HOST[:PORT], docker:IMAGE, docker-exec:CONTAINER, kube:[NAMESPACE/]POD[/CONTAINER]"
)

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HOST = re.compile(
    r"(?:(?P<user>[A-Za-z0-9_][\w.-]*)@)?(?P<host>[A-Za-z0-9_][\w.-]*|\[[0-9a-fA-F:.]+(?:%\w+)?\])"
    r"(?::(?P<port>\d{1,5}))?",
    re.ASCII,
)
_IMAGE = re.compile(r"[A-Za-z0-9][\w.:/@-]*", re.ASCII)
_CONTAINER = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
_POD = re.compile(r"[a-z0-9][a-z0-9.-]*")
_SSH = (
    *("ssh", "-T", "-o", "BatchMode=yes"),
    *("-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=4"),
)
"""No terminal, since it would change the log; no questions, since nobody is there to answer."""
_DOCKER = (
    *("docker", "run", "--rm", "-i", "--init"),
    *("--network", "host", "--ipc", "host", "--shm-size", "32g", "--env", "HF_TOKEN"),
)
"""The host's network, so that the server is reached at its port; HF_TOKEN is passed by name."""
_WRITTEN_TO = frozenset({"download_dir", "crash_dump_folder", "file_storage_path"})


class TransportError(ValueError):
    """Why `--on` is not understood, or a launch cannot go there, in one line."""


@dataclass(frozen=True, slots=True)
class Transport:
    """Where trials run."""

    kind: Kind
    target: str
    """Host, image, container or pod."""
    port: int | None = None
    """Of ssh."""
    namespace: str | None = None
    container: str | None = None
    """Of a pod."""
    gpus: bool = True
    """Whether `docker run` hands on the GPUs."""

    @staticmethod
    def parse(text: str) -> Transport:
        """What `--on` names; raises TransportError."""
        kind, colon, rest = text.partition(":")
        made = {"ssh": _ssh, "docker": _docker, "docker-exec": _docker_exec, "kube": _kube}.get(
            kind
        )
        if made is None or not colon:
            raise TransportError(f"--on {text!r} is none of {FORMS}")
        return made(rest)

    def wrap(
        self, argv: Sequence[str], env: Mapping[str, str], unset: Sequence[str] = ()
    ) -> list[str]:
        """The words to run here for a launch there, that live and die with each other.

        `env` and `unset` are for there: nothing of the environment here goes along. Raises
        TransportError for what cannot be passed.
        """
        source = files("forensics.reproduce").joinpath("remote.sh").read_text(encoding="utf-8")
        inner = [*_env(env, unset), "sh", "-c", source, "forensics", *_checked(argv)]
        holder = Path(__file__).with_name("holding.py")
        return [sys.executable, str(holder), *self._there(inner, self._mounts(argv, env))]

    def ask(
        self, argv: Sequence[str], env: Mapping[str, str], unset: Sequence[str] = ()
    ) -> list[str]:
        """The words for a short command there, that ends by itself."""
        return self._there([*_env(env, unset), *_checked(argv)], self._mounts(argv, env))

    def prefix(self) -> list[str]:
        """What stands in front of each command, to be shown."""
        return self._there([], ())[: -1 if self.kind == "ssh" else None]

    def describe(self) -> str:
        """Where that is, for people."""
        if self.kind == "ssh":
            return f"on {self.target}" + (f", port {self.port}" if self.port else "")
        if self.kind == "docker":
            return f"in a new container of {self.target}"
        if self.kind == "docker-exec":
            return f"in the running container {self.target}"
        within = f" of namespace {self.namespace}" if self.namespace else ""
        return f"in the pod {self.target}{within}"

    @property
    def is_local_network(self) -> bool:
        """Whether a server there answers at the ports of this machine."""
        return self.kind == "docker"

    def _there(self, inner: list[str], mounts: Sequence[str]) -> list[str]:
        if self.kind == "ssh":
            port = ("-p", str(self.port)) if self.port else ()
            # The remote shell gets one string: `exec`, so that what it starts leads the session.
            return [*_SSH, *port, "--", self.target, f"exec {shlex.join(inner)}"]
        if self.kind == "docker":
            gpus = ("--gpus", "all") if self.gpus else ()
            return [*_DOCKER, *gpus, *mounts, self.target, *inner]
        if self.kind == "docker-exec":
            return ["docker", "exec", "-i", self.target, *inner]
        namespace = ("--namespace", self.namespace) if self.namespace else ()
        container = ("--container", self.container) if self.container else ()
        return ["kubectl", "exec", "-i", *namespace, self.target, *container, "--", *inner]

    def _mounts(self, argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
        """What a new container must see of this machine: the model's files, and the hub's cache."""
        if self.kind != "docker":
            return []
        cache = Path(env.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
        there = cache if "HF_HOME" in env else Path("/root/.cache/huggingface")
        found = {str(there): _mount(cache, there, writable=True)} if cache.is_dir() else {}
        for path, writable in _paths(argv):
            if path.exists():
                found.setdefault(str(path), _mount(path, path, writable=writable))
        return [word for mount in found.values() for word in ("--mount", mount)]


def _ssh(rest: str) -> Transport:
    found = _HOST.fullmatch(rest)
    if found is None:
        raise TransportError(f"--on ssh:{rest!r} is no [USER@]HOST[:PORT]")
    port = int(found["port"]) if found["port"] else None
    if port is not None and not 0 < port < 65536:
        raise TransportError(f"--on ssh: {port} is no port")
    host = found["host"].strip("[]")
    return Transport("ssh", f"{found['user']}@{host}" if found["user"] else host, port=port)


def _docker(rest: str) -> Transport:
    if not _IMAGE.fullmatch(rest):
        raise TransportError(f"--on docker:{rest!r} is no image")
    return Transport("docker", rest)


def _docker_exec(rest: str) -> Transport:
    if not _CONTAINER.fullmatch(rest):
        raise TransportError(f"--on docker-exec:{rest!r} is no container")
    return Transport("docker-exec", rest)


def _kube(rest: str) -> Transport:
    """One part is the pod, two are namespace and pod; `/POD/CONTAINER` keeps the namespace."""
    parts = rest.split("/")
    namespace, pod, container = _three(parts)
    named = [part for part in (namespace, container) if part]
    if len(parts) > 3 or not all(_POD.fullmatch(part) for part in [pod, *named]):
        raise TransportError(f"--on kube:{rest!r} is no [NAMESPACE/]POD[/CONTAINER]")
    return Transport("kube", pod, namespace=namespace or None, container=container or None)


def _three(parts: list[str]) -> tuple[str, str, str]:
    if len(parts) == 1:
        return "", parts[0], ""
    return parts[0], parts[1], parts[2] if len(parts) > 2 else ""


def _env(env: Mapping[str, str], unset: Sequence[str]) -> list[str]:
    for name in (*env, *unset):
        if not _NAME.fullmatch(name):
            raise TransportError(f"{name!r} is no name of a variable")
    _checked(list(env.values()))
    gone = [word for name in unset for word in ("-u", name)]
    return ["env", *gone, *(f"{name}={value}" for name, value in env.items())]


def _checked(words: Sequence[str]) -> list[str]:
    if any("\0" in word for word in words):
        raise TransportError("an argument with a NUL byte cannot be passed")
    return list(words)


def _paths(argv: Sequence[str]) -> Iterator[tuple[Path, bool]]:
    """Absolute paths among the arguments, and whether the server writes there."""
    for group in groups(list(argv), None):
        for text in _texts(group.value):
            path = Path(text)
            if path.is_absolute() and len(path.parts) > 1 and "\0" not in text:
                yield _whole(path), group.field in _WRITTEN_TO


def _texts(value: Value) -> list[str]:
    items = value if isinstance(value, list) else [value]
    return [item for item in items if isinstance(item, str)]


def _whole(path: Path) -> Path:
    """A snapshot of the hub's cache is made of links to its neighbours: its repository's folder."""
    for folder in (path, *path.parents):
        if folder.name.startswith(("models--", "datasets--")):
            return folder
    return path


def _mount(source: Path, target: Path, *, writable: bool) -> str:
    """The value of `--mount`, which is a row of CSV."""
    fields = ["type=bind", f"source={source}", f"target={target}"]
    row = io.StringIO()
    csv.writer(row, lineterminator="").writerow(fields if writable else [*fields, "readonly"])
    return row.getvalue()
