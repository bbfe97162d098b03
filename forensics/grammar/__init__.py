"""The grammar of SGLang logs: `grammars/*.lark`, compiled for bulk lines.

`load()` gives the compiled grammar: `match` for messages, `head` for what stands in front of
them. The kinds of `prefix.lark` are heads, all others are messages.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from functools import cache
from pathlib import Path

import platformdirs

from forensics import __version__
from forensics.events import OTHER
from forensics.grammar.compiler import Kind, compile_files
from forensics.grammar.matcher import Match, Matcher
from forensics.grammar.notation import GrammarError, read_grammar
from forensics.resources import grammar_dir

__all__ = ["Grammar", "GrammarError", "Kind", "Match", "load"]

HEADS = "prefix"
"""The grammar file whose kinds are record heads."""

NESTED = frozenset({"launch_script", "server_args", "torch_oom"})
"""Grammar files with recursion or free order: Lark itself runs them, at run time."""

TOPICS = "topics"
"""The grammar file whose kinds know a line by its subject only, not by what it says."""


_TELLING = frozenset(
    {"batches", "capture", "distributed", "errors", "kernels", "kv_pool", "lifecycle"}
    | {"memory_errors", "nccl", "process", "progress", "torch", "weights"}
)
"""Grammar files of what servers and the libraries under them print."""

_PROSE = frozenset({"usage_line", "command_not_found", "file_missing", "permission_denied"})
"""Kinds of these files that manuals and scripts hold as well."""


class Grammar:
    """Every line kind, ready to match."""

    def __init__(self, kinds: list[Kind]) -> None:
        self.heads = Matcher(kind for kind in kinds if kind.file == HEADS)
        self.messages = Matcher(kind for kind in kinds if kind.file != HEADS)

    @property
    def kinds(self) -> dict[str, Kind]:
        """Message kinds by name."""
        return self.messages.kinds

    def match(self, message: str) -> Match | None:
        """The kind and fields of a message (the text after wrappers, escapes and head)."""
        return self.messages.match(message)

    def understands(self, kind: str) -> bool:
        """Whether a kind says what a line means, not only what it is about."""
        known = self.messages.kinds.get(kind)
        return known.file != TOPICS if known else kind != OTHER

    def tells(self, kind: str) -> bool:
        """Whether a line of this kind is a server's even without a head, no prose and no script."""
        known = self.messages.kinds.get(kind)
        return known is not None and known.file in _TELLING and kind not in _PROSE

    def head(self, text: str) -> Match | None:
        """The head at the start of a text; its field `message` is what follows."""
        return self.heads.match(text)


@cache
def load() -> Grammar:
    """The project's grammar. Compiled once and kept in the user's cache folder.

    Raises:
        GrammarError: a grammar file is wrong.
    """
    files = sorted(p for p in grammar_dir().glob("*.lark") if p.stem not in NESTED)
    digest = hashlib.sha256(__version__.encode())
    engine = (Path(__file__).with_name(name) for name in ("notation.py", "compiler.py"))
    for path in (*files, *engine):
        digest.update(path.read_bytes())
    stored = platformdirs.user_cache_path("forensics") / f"grammar-{digest.hexdigest()[:20]}.json"
    if (kinds := _restore(stored)) is None:
        kinds = compile_files(map(read_grammar, files))
        _store(stored, kinds)
    return Grammar(kinds)


def _restore(path: Path) -> list[Kind] | None:
    try:
        rows = json.loads(path.read_bytes())
        return [
            Kind(
                **{
                    **row,
                    "groups": {key: (pair[0], pair[1]) for key, pair in row["groups"].items()},
                    "labels": {key: (pair[0], pair[1]) for key, pair in row["labels"].items()},
                    "starts": tuple(row["starts"]),
                    "needles": tuple(row["needles"]),
                }
            )
            for row in rows
        ]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _store(path: Path, kinds: list[Kind]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{hashlib.sha256(str(id(kinds)).encode()).hexdigest()[:8]}.tmp")
        fresh.write_text(json.dumps([asdict(kind) for kind in kinds]), encoding="utf-8")
        fresh.replace(path)
        for old in path.parent.glob("grammar-*.json"):
            if old != path:
                old.unlink(missing_ok=True)
    except OSError:
        pass  # a cache that cannot be written costs a fraction of a second, nothing else
