"""Secrets are replaced where text enters, so that no later stage can print one."""

from __future__ import annotations

import re

HIDDEN = "***"

_SECRET_WORDS = frozenset(
    {"token", "secret", "password", "passwd", "credential", "credentials", "apikey"}
)
_SHAPES = re.compile(
    r"\bhf_[A-Za-z0-9]{8,}|\b(?:sk|pk)-[A-Za-z0-9_-]{16,}|\bgh[pousr]_[A-Za-z0-9]{16,}"
    r"|\bAKIA[0-9A-Z]{16}\b|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*"
)
_BEARER = re.compile(r"\b([Bb]earer\s+)[^\s'\",]{4,}")
_USERINFO = re.compile(r"(?<=://)[^/\s@'\"]+@")
_NAMED = re.compile(
    r"""(?P<head>(?P<dashes>--)?(?P<name>[A-Za-z][\w-]{0,80})['"]?(?:\s*[=:]\s*|(?(dashes)\s+|=)))"""
    r"""(?P<value>'[^']*'?|"[^"]*"?|[^\s,)}\]'"]+)"""
)


def is_secret(name: str) -> bool:
    """Whether a field, flag or variable of this name holds a secret.

    A word of the name decides, so that `tokenizer_path`, `max_total_tokens` and
    `speculative_token_map` are none.
    """
    words = re.split(r"[_-]+", name.strip("-").lower())
    if words[-1] in _SECRET_WORDS or {"secret", "password", "passwd"} & set(words):
        return True
    joined = "_".join(words)
    return "api_key" in joined or "access_key" in joined or joined.startswith("watermark_key")


def redact_string(text: str) -> str:
    """A value with everything that looks like a credential replaced."""
    text = _SHAPES.sub(HIDDEN, text)
    if "earer" in text:
        text = _BEARER.sub(rf"\1{HIDDEN}", text)
    return _USERINFO.sub(f"{HIDDEN}@", text) if "://" in text and "@" in text else text


def redact_named(name: str, text: str) -> str:
    """A value that stands under a name; an empty one hides nothing."""
    return HIDDEN if text and is_secret(name) else redact_string(text)


def redact_line(text: str) -> str:
    """A line of a log as evidence: values of secret names and credential shapes replaced."""
    return redact_string(_NAMED.sub(_hide_value, text))


def _hide_value(match: re.Match[str]) -> str:
    value = match["value"]
    if not is_secret(match["name"]) or value in ("None", "''", '""', "True", "False"):
        return match[0]
    quote = value[0] if value[0] in "'\"" else ""
    return f"{match['head']}{quote}{HIDDEN}{quote}"
