"""Pseudonyms: learnt from all that will be shown, then put in everywhere."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterable

from forensics.views.privacy import patterns as p

_MARKERS = frozenset(
    {
        *("site-packages", "dist-packages", "sglang", "lib", "bin", ".cache", ".venv", "venv"),
        *(".conda", ".local", ".triton", "miniconda3", "anaconda3", "miniforge3", "conda"),
    }
)
"""Parts of a path below a home from which on it tells of software, not of its owner."""

_HOST_BITS = (1 << 64) - 1


class Names:
    """The pseudonym of every name; the same name has the same one everywhere."""

    def __init__(self) -> None:
        self._of: dict[str, str] = {}
        self._count: Counter[str] = Counter()
        self._known: re.Pattern[str] | None = None

    def add(self, kind: str, name: str) -> str:
        """The pseudonym of a name, a new one if it has none: `host-1`, `user-2`."""
        key = name.lower() if kind in ("ipv6", "mac", "host") else name
        if key not in self._of:
            self._count[kind] += 1
            self._of[key] = f"{kind}-{self._count[kind]}"
            self._known = None
        return self._of[key]

    def add_host(self, name: str) -> None:
        """Learns a name that a fact calls a host."""
        name = name.strip("[]'\"")
        if p.is_host_name(name, plain=True):
            self.add("host", name)

    def add_user(self, name: str) -> None:
        """Learns a name that a fact calls a user."""
        if len(name) > 1 and name not in p.GENERIC_USERS and not p.PSEUDONYM.fullmatch(name):
            self.add("user", name)

    def add_folder(self, path: str) -> None:
        """Learns the folder of an absolute path, if it tells anything of its owner."""
        folder = path.rstrip("/").rpartition("/")[0]
        parts = [part for part in folder.split("/") if part not in p.GENERIC_FOLDERS]
        if folder and parts and not p.HOME.match(path) and not p.PSEUDONYM.search(folder):
            self.add("path", folder)

    def learn(self, text: str) -> str:
        """Learns the names of hosts and users in a text, and gives it back."""
        for _, name in p.HOME.findall(text):
            self.add_user(name)
        for pattern in p.USERS:
            for name in pattern.findall(text):
                self.add_user(name)
        for user, host in p.AT_HOST.findall(text):
            if p.is_host_name(host, plain=True):
                self.add_user(user)
                self.add("host", host)
        for host in p.URL_HOST.findall(text):
            self._host(host, plain=True)
        for pattern in (p.FULL_NAME, *p.HOSTS):
            for host in pattern.findall(text):
                self._host(host)
        return text

    def _host(self, name: str, *, plain: bool = False) -> None:
        if p.is_host_name(name, plain=plain):
            self.add("host", name)

    def hide(self, text: str) -> str:
        """The text with pseudonyms in place of names, and without texts of requests."""
        for requests, instead in p.REQUESTS:
            text = requests.sub(instead, text)
        text = p.EMAIL.sub(lambda m: self._email(m[0]), text)
        text = p.HOME_PATH.sub(lambda m: _shortened(m[0]), text)
        text = p.GPU_UUID.sub(lambda m: self.add("gpu-uuid", m[0]), text)
        text = p.IDENTITY.sub(lambda m: self.add("id", m[0]), text)
        text = p.AWS_NAME.sub(lambda m: self.add("host", m[0]), text)
        if pattern := self._pattern():
            text = pattern.sub(lambda m: self._again(m[0]), text)
        return self._addresses(text)

    def _email(self, text: str) -> str:
        host = text.rpartition("@")[2]
        public = not p.is_host_name(host, plain=True)
        return text if public and text.startswith("git@") else self.add("email", text)

    def _addresses(self, text: str) -> str:
        text = p.GID.sub(lambda m: self._ipv6(_of_bytes(m[0]), m[0]), text)
        text = p.MAC.sub(lambda m: self.add("mac", m[0]), text)
        text = p.IPV6.sub(lambda m: self._ipv6(m[0], m[0]), text)
        return p.IPV4.sub(lambda m: self._ipv4(m[0]), text)

    def _ipv4(self, text: str) -> str:
        try:
            address = ipaddress.IPv4Address(text)
        except ValueError:
            return text
        if address.is_loopback or address.is_unspecified or text == "255.255.255.255":
            return text
        return self.add("link-local" if address.is_link_local else "ipv4", text)

    def _ipv6(self, text: str, shown: str) -> str:
        try:
            address = ipaddress.IPv6Address(text)
        except ValueError:
            return shown
        is_network = address.is_link_local and not int(address) & _HOST_BITS  # fe80:: alone
        if address.is_loopback or address.is_unspecified or is_network:
            return shown
        return self.add("link-local" if address.is_link_local else "ipv6", shown)

    def _again(self, name: str) -> str:
        return self._of.get(name) or self._of.get(name.lower()) or name

    def _pattern(self) -> re.Pattern[str] | None:
        """All names that were learnt, longest first."""
        if self._known is None:
            kinds = ("host-", "user-", "path-")
            names = [name for name, given in self._of.items() if given.startswith(kinds)]
            if not names:
                return None
            either = "|".join(map(re.escape, sorted(names, key=lambda n: (-len(n), n))))
            self._known = re.compile(rf"(?i)(?<![\w-])(?:{either})(?![\w-])")
        return self._known


def learn_all(names: Names, texts: Iterable[str]) -> None:
    """Learns from texts in order, so that numbers follow the first appearance."""
    for text in texts:
        names.learn(text)


def _shortened(path: str) -> str:
    """A path below a home without the folders that are its owner's own affair."""
    parts = path.split("/")
    head, below = parts[:3], parts[3:]
    if len(below) < 2 or "..." in below:
        return path
    marked = next((at for at, part in enumerate(below) if part in _MARKERS), None)
    kept = below[-1:] if marked is None else below[marked:]
    return "/".join([*head, *(["..."] if len(kept) < len(below) else []), *kept])


def _of_bytes(gid: str) -> str:
    """A GID of 16 bytes as an IPv6 address."""
    octets = gid.split(":")
    return ":".join(octets[at] + octets[at + 1] for at in range(0, 16, 2))
