"""Removes secrets from what the tool prints: keys, tokens, passwords.

A log carries whatever its launch carried, and reports get pasted into public threads, so every
view passes every string through `redact` (or `redact_value` for nested data) as its last step.
Applying it twice changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

REDACTED = "[redacted]"
"""Stands where a secret was."""

_NAME = (
    r"(?:api[_-]?key|apikey|secret(?:[_-](?:access[_-])?key)?|passw(?:or)?d"
    r"|passphrase|keyfile[_-]password|access[_-]token|auth[_-]token|hf[_-]token|session[_-]token"
    r"|bearer[_-]token|hub[_-]token|github[_-]token|private[_-]key)"
)
_VARIABLE = (
    r"(?:[A-Z][A-Z0-9_]{0,60})?(?:PASSWORD|(?<=_)(?:PWD|PASS|AUTH|DSN)|(?<=_)KEY|SECRET"
    r"|(?<![A-Z0-9])TOKEN|(?<=_)TOKEN)"
)
"""Variables of the environment are named more freely than flags: `PGPASSWORD`, `DB_PASS`."""
_EMPTY = r"""(?:\\?["'])?(?:none|null|true|false|\[redacted\])(?![\w.-])"""
_QUOTED = r"""\\?"(?:[^"\\]|\\[^"])+\\?"|\\?'(?:[^'\\]|\\[^'])+\\?'"""
_PLAIN = r"""\\?["'][^"'\\\s]{6,}\\?["']|(?!\d+(?:\.\d+)?(?![\w.-]))[^\s"'\\,;&)}\]|<>]{8,}"""
"""Enough to be a secret where its name alone says little: `token=` may count one."""
_BARE = r"""[^\s"'\\,;&)}\]|<>]+"""


def _keep_quotes(match: re.Match[str]) -> str:
    """Hides the value and leaves its quotes, so that JSON stays JSON."""
    quote = re.match(r"""\\?["']|""", match[2])
    mark = quote[0] if quote else ""
    return f"{match[1]}{mark}{REDACTED}{mark}"


_PATTERNS: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    # Vendors' own key shapes: OpenAI style, Hugging Face, GitHub, NVIDIA, Slack, Google, AWS, JWT.
    (re.compile(r"(?<![\w-])sk-[A-Za-z0-9_-]{6,}"), REDACTED),
    (re.compile(r"(?<![A-Za-z0-9])hf_[A-Za-z0-9]{8,}"), REDACTED),
    (re.compile(r"(?<![A-Za-z0-9])(?:gh[pousr]_|github_pat_|glpat-)\w{10,}"), REDACTED),
    (re.compile(r"(?<![\w-])(?:nvapi-|xox[abprs]-|AIza)[A-Za-z0-9_-]{10,}"), REDACTED),
    (re.compile(r"(?<![A-Za-z0-9])A(?:KIA|SIA)[0-9A-Z]{12,}"), REDACTED),
    (re.compile(r"(?<![A-Za-z0-9])eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*"), REDACTED),
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*-----|$)", re.S),
     REDACTED),
    # Headers, URLs with a user's password or a signature.
    (re.compile(r"(?i)\b(bearer|basic)(\s+)(?=[\w.~+/-]*[\d=.~+/])[\w.~+/-]{6,}=*"),
     rf"\1\2{REDACTED}"),
    (re.compile(r"(?i)(authorization['\"]?\s*[:=]\s*['\"]?(?:\w+\s+)?)"
                r"(?!\[redacted\]|\w+\s+\[redacted\])[\w.~+/=-]{6,}"),
     rf"\1{REDACTED}"),
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]{0,20}://)[^\s/@'\"]{0,200}:[^\s/@'\"]{1,200}@"),
     rf"\1{REDACTED}@"),
    (re.compile(r"(?i)([?&](?:x-amz-[a-z-]+|sig|signature|token|key)=)[^\s&'\"]+"),
     rf"\1{REDACTED}"),
    # A cookie's whole line, the user of curl, a value in pydantic's wrapper, a plain token.
    (re.compile(r"""(?i)(?<![\w-])((?:set-)?cookie\\?["']?\s?[:=]\s?\\?["']?)(?=[\w.-]{1,80}=)"""
                r"""(?!\[redacted\])[^\s"'\\][^"'\\\r\n]*"""), rf"\1{REDACTED}"),
    (re.compile(r"""(\bcurl\b[^\n|;]{0,400}?\s(?:-u|--user)[\s=]?\s?)"""
                r"""(?:'[^':]{1,80}:[^']{1,200}'|"[^":]{1,80}:[^"]{1,200}"|[^\s:"']{1,80}:(?!//)[^\s"']+)"""),
     rf"\1{REDACTED}"),
    (re.compile(r"""(Secret(?:Str|Bytes)\(b?\\?["'])(?!\*+\\?["']|\[redacted\])[^"'\\]+"""),
     rf"\1{REDACTED}"),
    (re.compile(rf"""(?i)(?<![\w.-])(_?(?:auth)?token\\?["']?(?:=|(?<=["']):\s?))(?!\s*{_EMPTY})"""
                rf"""({_PLAIN})"""), _keep_quotes),
    (re.compile(r"(?i)\b(https?://)[^\s/@:'\"?#\[]{1,200}@"), rf"\1{REDACTED}@"),
    (re.compile(r"(?i)\b((?:account|sharedaccess)key=)[^\s;'\"\[]+"), rf"\1{REDACTED}"),
    (re.compile(rf"""(?<![A-Za-z0-9_])({_VARIABLE}=)(?!(?i:{_EMPTY}))({_QUOTED}|{_BARE})"""),
     _keep_quotes),
    # name=value, "name": "value", --name value, for names that hold secrets.
    (re.compile(rf"""(?i)(?<![a-z0-9])({_NAME}\\?["']?\s*[:=]\s*)(?!\s*{_EMPTY}|secret(?:str|bytes)\()({_QUOTED}|{_BARE})"""),
     _keep_quotes),
    (re.compile(rf"""(?i)(--(?:[\w-]{{0,40}}?{_NAME}|token)(?:\s+|=|["'],\s*["']))(?!{_EMPTY})({_QUOTED}|{_BARE})"""),
     _keep_quotes),
)  # fmt: skip

_SECRET_NAME = re.compile(rf"(?i)(?:.*[_-])?{_NAME}$|.*_token$|(?-i:{_VARIABLE})$")
_HINTS = (
    *("sk-", "hf_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "nvapi-"),
    *("xox", "aiza", "akia", "asia", "eyj", "bearer", "basic", "authorization", "://", "?", "&"),
    *("key", "secret", "pass", "pwd=", "_auth=", "_dsn=", "token="),
    *("cookie", "token'", 'token"', "token\\", "curl"),
)
_TOKEN = re.compile(r"[_-]token(?!s|iz)")
_NOT_SECRET_TOKENS = re.compile(r"(?i)(?:bos|eos|pad|unk|sep|cls|mask|image|video|audio)_token$")


def may_hold_secret(text: str) -> bool:
    """Whether a pattern could match, told fast: most texts of a log hold none of the hints."""
    lower = text.lower()
    for hint in _HINTS:  # a loop is three times as fast as `any` here
        if hint in lower:
            return True
    return "token" in lower and bool(_TOKEN.search(lower))


def redact(text: str) -> str:
    """The text without its secrets."""
    if not may_hold_secret(text):
        return text
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether a flag, variable or key of this name holds a secret: `api_key`, `HF_TOKEN`."""
    return bool(_SECRET_NAME.match(name)) and not _NOT_SECRET_TOKENS.search(name)


def redact_argv(argv: list[str]) -> list[str]:
    """An argument list without the values of its secret options."""
    result: list[str] = []
    secret_next = False
    for argument in argv:
        result.append(REDACTED if secret_next else redact(argument))
        secret_next = argument.startswith("--") and is_secret_name(argument)
    return result


def redact_value(value: Any, name: str = "") -> Any:
    """Nested data without its secrets; `name` is the key that holds it."""
    if isinstance(value, dict):
        return {redact(str(key)): redact_value(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        strings = [item for item in value if isinstance(item, str)]
        if len(strings) == len(value) and not is_secret_name(name):
            return redact_argv(strings)
        return [redact_value(item, name) for item in value]
    if is_secret_name(name) and value not in (None, "", True, False):
        return REDACTED
    return redact(value) if isinstance(value, str) else value
