"""Secrets are replaced where a launch is read, so that no later stage can print or run one."""

from __future__ import annotations

from forensics.redact import REDACTED, is_secret_name, redact


def is_secret(name: str) -> bool:
    """Whether a field, flag or variable of this name holds a secret.

    Watermark keys too: dumps hide them only from 0.5.22.
    """
    return is_secret_name(name) or name.startswith("watermark_key")


def redact_named(name: str, text: str) -> str:
    """A value that stands under a name; an empty one hides nothing."""
    return REDACTED if text and is_secret(name) else redact(text)
