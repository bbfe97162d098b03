"""From a message to its kind and fields, with the compiled rules."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from forensics.events import Value
from forensics.grammar.compiler import Kind
from forensics.grammar.values import CONVERTERS

LONGEST = 65_536
"""Characters of a message that are looked at; what follows is text that no rule needs."""

_CACHED = 600
_KEY = 3


@dataclass(frozen=True, slots=True)
class Match:
    """The kind of a message and its fields, typed. Shared: do not change `fields`."""

    kind: str
    fields: Mapping[str, Value]


class Matcher:
    """Finds the kind of a message among many, by its first characters or a text it contains."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        ordered = sorted(kinds, key=lambda kind: (-kind.priority, -kind.weight, kind.name))
        self.kinds = {kind.name: kind for kind in ordered}
        self._order = {kind.name: place for place, kind in enumerate(ordered)}
        self._by_start: defaultdict[str, list[tuple[Kind, tuple[str, ...]]]] = defaultdict(list)
        self._anywhere: list[tuple[Kind, tuple[str, ...]]] = []
        self._patterns: dict[str, re.Pattern[str]] = {}
        for kind in ordered:
            if kind.starts and min(map(len, kind.starts)) >= _KEY:
                for key in {start[:_KEY] for start in kind.starts}:
                    self._by_start[key].append((kind, kind.starts))
            else:
                self._anywhere.append((kind, kind.needles or ("",)))
        self._cached = lru_cache(maxsize=32_768)(self._match)

    def match(self, message: str) -> Match | None:
        """The kind of a message, None if no rule knows it."""
        if len(message) <= _CACHED:
            return self._cached(message)
        return self._match(message[:LONGEST])

    def match_as(self, kind: str, message: str) -> Match | None:
        """The fields of a message read as one kind, None if it does not fit."""
        return self._try(self.kinds[kind], message)

    def _match(self, message: str) -> Match | None:
        candidates = [
            kind
            for kind, starts in self._by_start.get(message[:_KEY], ())
            if message.startswith(starts)
        ]
        for kind, needles in self._anywhere:
            for needle in needles:
                if needle in message:
                    candidates.append(kind)
                    break
        if len(candidates) > 1:
            candidates.sort(key=lambda kind: self._order[kind.name])
        for kind in candidates:
            if found := self._try(kind, message):
                return found
        return None

    def _try(self, kind: Kind, message: str) -> Match | None:
        pattern = self._patterns.get(kind.name)
        if pattern is None:
            pattern = self._patterns[kind.name] = re.compile(kind.regex)
        if not (found := pattern.match(message)):
            return None
        return Match(kind.name, fields_of(kind, found.groupdict()))


def fields_of(kind: Kind, texts: Mapping[str, str | None]) -> dict[str, Value]:
    """Typed fields from the texts of a kind's groups; groups that took no part are left out."""
    fields: dict[str, Value] = {}
    for group, (name, terminal) in kind.groups.items():
        text = texts.get(group)
        if text is None:
            continue
        convert = CONVERTERS.get(terminal)
        try:
            fields[name] = convert(text) if convert else text
        except ValueError:
            fields[name] = None  # a number that is none, such as "?" in a progress bar
    return fields
